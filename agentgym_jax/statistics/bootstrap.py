"""Stratified bootstrap: runs are drawn again with replacement within each task; percentile intervals.

Efron 1979; for runs and tasks Agarwal et al. 2021 (arXiv:2108.13264), section 4.1. What varies between repetitions of an
experiment is the run, so it is runs that are drawn, never episodes. With few runs the intervals are too narrow (Colas et al.
2018, arXiv:1806.08295), and one run gives none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError, check_whole

_NUMBERS_AT_ONCE = 4_000_000  # of float64: 32 MB a temporary array

Statistic = Callable[..., Any]


def interval(
    statistic: Statistic, scores: Any, replicates: int = 50_000, seed: int = 0, level: float = 0.95
) -> tuple[Any, Any]:
    """The lower and the upper end of the percentile interval of `statistic`.

    Args:
      statistic: takes [B, R, T, ...] and gives [B, ...], as all of `aggregates` do.
      scores: [R, T] of R runs on T tasks, [R] of one task, or [R, T, X] of curves.

    Returns:
      (low, high), each shaped like the statistic; NaN for a single run. Raises ConfigError for scores that are not finite, as
      the statistic does, and for a statistic that does not keep the axis in front.
    """
    return percentiles(replicate(statistic, (scores,), replicates, seed), level)


def difference_interval(
    statistic: Statistic, x: Any, y: Any, replicates: int = 50_000, seed: int = 0, level: float = 0.95
) -> tuple[Any, Any]:
    """The interval of statistic(x) − statistic(y) for runs that were drawn independently, [R, T] and [S, T]."""
    return percentiles(replicate(lambda a, b: statistic(a) - statistic(b), (x, y), replicates, seed), level)


def replicate(
    statistic: Statistic, samples: Sequence[Any], replicates: int, seed: int = 0, width: int | None = None
) -> np.ndarray:
    """`statistic` of so many redrawn samples, [replicates, ...]; NaN throughout when a sample has a single run.

    Args:
      statistic: takes one array [B, R, T, ...] a sample. samples: [R, T, ...] each, or [R]; drawn independently.
      width: numbers that the statistic makes of one replicate, which bounds how many are made at once.
    """
    check_whole("replicates", replicates)
    arrays = [array[:, None] if array.ndim == 1 else array for array in (np.asarray(x, np.float64) for x in samples)]
    undrawn = np.asarray(statistic(*(array[None] for array in arrays)))  # refuses what it cannot take, naming the runs
    if min(array.shape[0] for array in arrays) < 2:
        return np.full_like(undrawn, math.nan)
    random = np.random.default_rng(seed)
    at_once = max(1, _NUMBERS_AT_ONCE // max(width or 1, *(array.size for array in arrays)))
    parts = []
    for start in range(0, replicates, at_once):
        count = min(at_once, replicates - start)
        drawn = [redrawn(array, count, random) for array in arrays]
        parts.append(np.asarray(statistic(*drawn)))
        if parts[-1].shape[:1] != (count,):
            raise ConfigError(f"statistic: must keep the axis in front, [{count}, ...], got shape {list(parts[-1].shape)}")
    return np.concatenate(parts)


def redrawn(array: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """`count` samples of R runs out of [R, T, ...], drawn anew for each task: [count, R, T, ...]."""
    runs, tasks = array.shape[:2]
    return array[random.integers(runs, size=(count, runs, tasks)), np.arange(tasks)]


def percentiles(values: np.ndarray, level: float) -> tuple[Any, Any]:
    """The ends [...] between which the middle share `level` of the replicates [B, ...] lies."""
    if not 0 < level < 1:
        raise ConfigError(f"level: must be between 0 and 1, got {level!r}")
    low, high = np.quantile(values, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return low, high

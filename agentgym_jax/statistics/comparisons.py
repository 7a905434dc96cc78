"""Which of two algorithms is better, and how sure that is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.statistics import bootstrap
from agentgym_jax.statistics.aggregates import refuse

_ROUNDING = 1e-9


def probability_of_improvement(x: Any, y: Any) -> Any:
    """How likely a run of X beats a run of Y on a task drawn at random; ties count ½.

    The mean over tasks of Mann and Whitney's U / (R · S) (Agarwal et al. 2021, arXiv:2108.13264, section 4.3). It needs no
    normalisation. A run without a number can be given as −∞: it loses to every other.

    Args:
      x: [..., R, T], or [R] of one task. y: [..., S, T], or [S].

    Raises:
      ConfigError: NaN, or other tasks in x than in y.
    """
    x, y = _ranked(x), _ranked(y)
    if x.shape[-1] != y.shape[-1]:
        raise ConfigError(f"scores: {x.shape[-1]} tasks cannot be compared with {y.shape[-1]}")
    return sum(_wins(x[..., task], y[..., task]) for task in range(x.shape[-1])) / x.shape[-1]


def _wins(x: np.ndarray, y: np.ndarray) -> Any:
    """The share of the pairs of [..., R] and [..., S] that x wins."""
    ours, theirs = x[..., :, None], y[..., None, :]
    return np.mean(0.5 * (ours > theirs) + 0.5 * (ours >= theirs), axis=(-2, -1))


def _ranked(scores: Any) -> np.ndarray:
    array = np.asarray(scores, np.float64)
    array = array[:, None] if array.ndim == 1 else array
    refuse("NaN", np.isnan(array))
    return array


def improvement_interval(x: Any, y: Any, replicates: int = 2000, seed: int = 0, level: float = 0.95) -> tuple[float, float]:
    """The stratified bootstrap interval of `probability_of_improvement`; (NaN, NaN) when either has a single run.

    An interval without ½ in it (`excludes_half`) says that one is better; of few runs it says so too easily (`enough_runs`).
    """
    width = np.asarray(x).shape[0] * np.asarray(y).shape[0]
    low, high = bootstrap.percentiles(
        bootstrap.replicate(probability_of_improvement, (x, y), replicates, seed, width=width), level
    )
    return float(low), float(high)


def excludes_half(low: float, high: float) -> bool:
    """Whether ½ lies outside an interval; one that ends there, but for rounding, does not exclude it, nor does NaN."""
    return low > 0.5 + _ROUNDING or high < 0.5 - _ROUNDING


def enough_runs(first: int, second: int, significance: float = 0.05) -> bool:
    """Whether any outcome of so many runs could be told from chance.

    When every run of X beats every run of Y, the two-sided rank test of Mann and Whitney has p = 2 / (R + S choose R). With
    fewer than four runs each that is above 0.05, though a bootstrap then gives the interval [1, 1].
    """
    return 2 / math.comb(first + second, first) <= significance

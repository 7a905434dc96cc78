"""One number of many runs: scores [R, T] of R runs on T tasks, or [R] of one task; higher is better.

Agarwal et al. 2021, Deep reinforcement learning at the edge of the statistical precipice (arXiv:2108.13264). Over several tasks
scores must be normalised first (`normalise`). Each function also takes axes in front, [..., R, T], and keeps them, so that a
bootstrap is one call. Scores that are not finite raise ConfigError: leave such runs out and say how many they were.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError

_TRIMMED = 0.25  # of the scores at each end


def as_scores(scores: Any) -> np.ndarray:
    """`scores` as float64 [..., R, T]; [R] becomes [R, 1]. Raises ConfigError for no runs and for NaN or infinity."""
    array = np.asarray(scores, np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim < 2 or 0 in array.shape:
        raise ConfigError(f"scores: must be [runs, tasks] or [runs] with at least one of each, got shape {list(array.shape)}")
    refuse("not finite", ~np.isfinite(array))
    return array


def refuse(what: str, bad: np.ndarray) -> None:
    """Raises ConfigError where a score [..., R, T] is `bad`, naming the runs."""
    if np.any(bad):
        runs = np.flatnonzero(np.any(np.moveaxis(bad, -2, 0).reshape(bad.shape[-2], -1), axis=1))
        named = ", ".join(map(str, runs[:8])) + (", …" if len(runs) > 8 else "")
        raise ConfigError(
            f"scores: {len(runs)} of {bad.shape[-2]} runs hold a number that is {what} (runs {named}); leave them out"
            " and state their number"
        )


def iqm(scores: Any) -> Any:
    """The interquartile mean: of all R · T scores together, the mean of the middle half.

    ⌊R · T / 4⌋ scores are cut at each end. Robust like the median, at the statistical efficiency of a mean.
    """
    array = as_scores(scores)
    pooled = np.sort(array.reshape(*array.shape[:-2], -1), axis=-1)
    cut = int(_TRIMMED * pooled.shape[-1])
    return np.mean(pooled[..., cut : pooled.shape[-1] - cut], axis=-1)


def mean(scores: Any) -> Any:
    """The mean over tasks of each task's mean over runs."""
    return np.mean(as_scores(scores), axis=(-2, -1))


def median(scores: Any) -> Any:
    """The median over tasks of each task's mean over runs; of one task the median over its runs."""
    array = as_scores(scores)
    return np.median(array[..., 0] if array.shape[-1] == 1 else np.mean(array, axis=-2), axis=-1)


def optimality_gap(scores: Any, threshold: float = 1.0) -> Any:
    """By how much scores miss `threshold` on average: threshold − mean of min(score, threshold). Lower is better."""
    return threshold - np.mean(np.minimum(as_scores(scores), threshold), axis=(-2, -1))

"""From episodes to the numbers of a summary: mean over the episodes of a member first, then statistics over members."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import trim_mean

from agentgym_jax.statistics import aggregates, bootstrap

_REPLICATES = 5000  # of a summary's intervals; `agentgym compare` draws the 50 000 that papers state
_MOST_DRAWN = 4_000_000  # numbers: populations of thousands get fewer replicates, and need fewer


def iqm(values: np.ndarray) -> float:
    """The interquartile mean (Agarwal et al. 2021, arXiv:2108.13264): the mean of the middle half. NaN for no values."""
    return float(aggregates.iqm(values)) if len(values) else float("nan")


def over_members(per_member: Any, replicates: int = _REPLICATES) -> dict[str, Any]:
    """The statistics of one number a member [P]: {mean, std, iqm, per_seed, interval, missing}.

    `interval` has the ends of the 95 % bootstrap intervals of mean and IQM, None for fewer than two members. `missing` counts
    those without a finite number, which show in `per_seed` alone.
    """
    values = np.asarray(per_member, np.float64)
    known = values[np.isfinite(values)]
    mean, std = (float(known.mean()), float(known.std())) if len(known) else (float("nan"), float("nan"))
    return {
        "mean": mean,
        "std": std,
        "iqm": iqm(known),
        "per_seed": values.tolist(),
        "interval": intervals(known, replicates),
        "missing": len(values) - len(known),
    }


def intervals(known: np.ndarray, replicates: int) -> dict[str, Any]:
    """{mean, iqm: [low, high]} of finite numbers [P], from the same redrawn members; None for fewer than two."""
    if len(known) < 2:
        return {"mean": None, "iqm": None}
    replicates = max(200, min(replicates, _MOST_DRAWN // len(known)))
    both = lambda x: np.stack([aggregates.mean(x), aggregates.iqm(x)], axis=-1)  # noqa: E731
    low, high = bootstrap.interval(both, known, replicates)
    return {name: [float(low[i]), float(high[i])] for i, name in enumerate(("mean", "iqm"))}


def episodes_over_members(results: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """The statistics of every name in {name: [P, E]}."""
    return {name: over_members(np.mean(values, axis=-1, dtype=np.float64)) for name, values in results.items()}


def iqm_band(curves: np.ndarray, replicates: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """IQM over members of curves [P, X], with the lower and upper end of its 95 % bootstrap interval, [X] each.

    Missing numbers (NaN) are left out point by point; a point without numbers gives NaN.
    """
    members = curves.shape[0]
    drawn = np.random.default_rng(0).integers(members, size=(replicates, members))
    middle = np.array([iqm(column[np.isfinite(column)]) for column in curves.T])
    low, high = middle.copy(), middle.copy()
    if members > 1:
        for x, column in enumerate(curves.T):
            known = column[np.isfinite(column)]
            if len(known) > 1:
                resampled = trim_mean(known[drawn[:, : len(known)] % len(known)], 0.25, axis=1)
                low[x], high[x] = np.percentile(resampled, (2.5, 97.5))
    return middle, low, high


def nan_mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean without NaNs; NaN where there is nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy warns of a slice that is empty; NaN is the wanted answer
        return np.nanmean(values, axis=axis)

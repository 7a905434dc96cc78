"""Performance profiles: how many runs reach which score (Dolan & Moré 2002; Agarwal et al. 2021, arXiv:2108.13264)."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym_jax.statistics import bootstrap
from agentgym_jax.statistics.aggregates import as_scores


def performance_profile(scores: Any, taus: Any) -> np.ndarray:
    """The share of runs and tasks whose score is above each τ.

    Args:
      scores: normalised, [..., R, T] or [R]. taus: [N].

    Returns:
      [..., N], falling in τ. The curve of one algorithm above another's everywhere is stochastic dominance; where curves
      cross, no single number can order them. The area under it between 0 and 1 is 1 − the optimality gap of scores ≥ 0.
    """
    array = as_scores(scores)
    pooled = array.reshape(*array.shape[:-2], 1, -1)
    return np.mean(pooled > np.asarray(taus, np.float64)[:, None], axis=-1)


def profile_band(
    scores: Any, taus: Any, replicates: int = 2000, seed: int = 0, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """The pointwise stratified bootstrap interval of `performance_profile`, ([N], [N])."""
    width = np.asarray(scores).size * len(taus)
    replicates_of = bootstrap.replicate(lambda x: performance_profile(x, taus), (scores,), replicates, seed, width=width)
    return bootstrap.percentiles(replicates_of, level)

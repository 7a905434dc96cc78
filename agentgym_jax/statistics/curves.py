"""What a learning curve tells: how soon, how much, how steadily. Curves are [..., X] over X points; higher is better."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.statistics import bootstrap
from agentgym_jax.statistics.aggregates import iqm


def sample_efficiency(curves: Any) -> np.ndarray:
    """The IQM over runs and tasks at each point (Agarwal et al. 2021, arXiv:2108.13264): curves [..., R, T, X] -> [..., X]."""
    return iqm(np.moveaxis(np.asarray(curves, np.float64), -1, -3))


def sample_efficiency_band(
    curves: Any, replicates: int = 5000, seed: int = 0, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """The pointwise stratified bootstrap interval of `sample_efficiency` of [R, T, X]; whole curves are drawn."""
    return bootstrap.interval(sample_efficiency, curves, replicates, seed, level)


def steps_to_threshold(curve: Any, steps: Any, threshold: float, stays: bool = False) -> Any:
    """The steps at the first point that reaches `threshold`; infinity where none does.

    Args:
      curve: [..., X]; NaN reaches nothing. steps: [X], environment steps. stays: count only a point after which every
        further one reaches it too.
    """
    curve, steps = _matching(curve, steps)
    reached = curve >= threshold
    if stays:
        reached = np.logical_and.accumulate(reached[..., ::-1], axis=-1)[..., ::-1]
    return np.where(np.any(reached, axis=-1), steps[np.argmax(reached, axis=-1)], math.inf)[()]


def seconds_to_threshold(curve: Any, seconds: Any, threshold: float, stays: bool = False) -> Any:
    """`steps_to_threshold` in training time: `seconds` [X] at each point, without compilation and evaluation."""
    return steps_to_threshold(curve, seconds, threshold, stays)


def area_under_curve(curve: Any, steps: Any, budget: float | None = None) -> Any:
    """The area under the curve divided by the budget, so the mean height over the run, in the units of the curve.

    Trapezoids between the points [X]; the first value holds back to step 0, the last on to `budget` (None: the last step).
    """
    curve, steps = _matching(curve, steps)
    budget = float(steps[-1]) if budget is None else float(budget)
    if budget < steps[-1] or budget <= 0:
        raise ConfigError(f"budget: must be positive and at least the last step, {steps[-1]:,.0f}, got {budget:,.0f}")
    middle = np.sum(0.5 * (curve[..., 1:] + curve[..., :-1]) * np.diff(steps), axis=-1)
    return (curve[..., 0] * steps[0] + middle + curve[..., -1] * (budget - steps[-1])) / budget


def smoothness(curve: Any) -> Any:
    """|last − first| / Σ |change from point to point|: 1 for a curve that never turns back, towards 0 the more it does."""
    curve = np.asarray(curve, np.float64)
    way = np.sum(np.abs(np.diff(curve, axis=-1)), axis=-1)
    net = np.abs(curve[..., -1] - curve[..., 0])
    return np.where(way == 0, 1.0, net / np.where(way == 0, 1.0, way))[()]


def drawdown(curve: Any) -> Any:
    """The largest fall from the highest point so far, ≥ 0, in the units of the curve."""
    curve = np.asarray(curve, np.float64)
    return np.max(np.maximum.accumulate(curve, axis=-1) - curve, axis=-1)


def final_gap(curve: Any) -> Any:
    """The best point minus the last one, ≥ 0: what stopping early would have won. The best of X noisy points flatters."""
    curve = np.asarray(curve, np.float64)
    return np.max(curve, axis=-1) - curve[..., -1]


def worst_seed(scores: Any) -> tuple[int, float]:
    """The place and the score of the worst of R runs [R]; one without a finite number is worse than any other."""
    scores = np.asarray(scores, np.float64)
    worst = int(np.argmin(np.where(np.isfinite(scores), scores, -math.inf)))
    return worst, float(scores[worst])


def solved_share(scores: Any, threshold: float) -> float:
    """The share of R runs [R] that reach `threshold`; NaN reaches nothing."""
    return float(np.mean(np.asarray(scores, np.float64) >= threshold))


def cvar(episodes: Any, share: float = 0.1) -> Any:
    """The mean of the worst `share` of the episodes [..., E] (conditional value at risk; Rockafellar & Uryasev 2000).

    The episode on the border counts by the part of it that is within the share; NaN among the episodes gives NaN.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"share: must be above 0 and at most 1, got {share!r}")
    ordered = np.sort(np.asarray(episodes, np.float64), axis=-1)
    wanted = share * ordered.shape[-1]
    weights = np.clip(wanted - np.arange(ordered.shape[-1]), 0.0, 1.0)
    return np.sum(ordered * weights, axis=-1) / wanted


def _matching(curve: Any, steps: Any) -> tuple[np.ndarray, np.ndarray]:
    curve, steps = np.asarray(curve, np.float64), np.asarray(steps, np.float64)
    if steps.ndim != 1 or curve.shape[-1:] != steps.shape or not len(steps):
        raise ConfigError(f"steps: must be [X] for curves [..., X], got {list(steps.shape)} for {list(curve.shape)}")
    if np.any(np.diff(steps) <= 0):
        raise ConfigError("steps: must rise from point to point")
    return curve, steps

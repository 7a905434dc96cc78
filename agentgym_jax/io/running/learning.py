"""How a run learned and how it was measured, for its summary: the protocol of Gorsane et al. 2022 (arXiv:2209.10485)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agentgym_jax.io.running.statistics import over_members
from agentgym_jax.statistics import curves

if TYPE_CHECKING:
    from agentgym_jax.io.running.run import Run

SEEDS_FOR_CLAIMS = 10
_RISK = 0.1  # share of the episodes that `cvar` looks at


def protocol(run: Run) -> dict[str, Any]:
    """How the run was measured, so that another can be measured alike, and whether its seeds suffice for claims."""
    evaluation, steps = run.experiment.eval, np.diff(run.evaluation_steps)
    even = len(set(steps.tolist())) <= 1
    return {
        "points": len(run.evaluation_steps),
        "evaluation_steps": run.evaluation_steps.tolist(),
        "even": even,
        "interval_steps": int(steps[0]) if even and len(steps) else None,
        "episodes": evaluation.episodes,
        "absolute_episodes": run.absolute["return"].shape[1] if run.absolute else 0,
        "evaluation_seed": evaluation.seed,
        "seeds": len(run.experiment.seeds),
        "enough_seeds_for_claims": len(run.experiment.seeds) >= SEEDS_FOR_CLAIMS,
        "environment_version": run.env.spec.version,
    }


def learning(run: Run) -> dict[str, Any]:
    """What the curves of the greedy evaluation's return tell of the members [P].

    Steps and seconds are counted at evaluation points; seconds are training time at the run's mean speed, of all members
    together. A member that never reaches the threshold, or whose numbers are not finite, has None there.
    """
    episodes = np.asarray(run.evaluation["greedy"]["return"], np.float64)
    episodes = np.where(np.isfinite(episodes), episodes, np.nan)
    curve, steps = np.mean(episodes, axis=-1), run.evaluation_steps
    last, threshold = curve[:, -1], run.experiment.eval.threshold
    worst, score = curves.worst_seed(last)
    result: dict[str, Any] = {
        "area_under_curve": over_members(curves.area_under_curve(curve, steps)),
        "smoothness": over_members(curves.smoothness(curve)),
        "drawdown": over_members(curves.drawdown(curve)),
        "final_gap": over_members(curves.final_gap(curve)),
        "cvar": over_members(curves.cvar(episodes[:, -1], _RISK)),
        "worst_seed": {**run.experiment.members[worst], "return": score},
        "threshold": threshold,
        "steps_to_threshold": None,
        "seconds_to_threshold": None,
        "solved_share": None,
    }
    if threshold is not None:
        seconds = steps * (run.seconds.train / run.total_steps)
        result["steps_to_threshold"] = over_members(curves.steps_to_threshold(curve, steps, threshold))
        result["seconds_to_threshold"] = over_members(curves.seconds_to_threshold(curve, seconds, threshold))
        result["solved_share"] = curves.solved_share(last, threshold)
    return result

"""A tiny experiment: seconds to compile, a known answer."""

from __future__ import annotations

from typing import Any

from agentgym_jax.io.config.load import load_experiment

PLAIN: dict[str, Any] = {
    "env": "probe/policy_observation",
    "algorithm": {"name": "ppo", "learning_rate": 0.01, "epochs": 1, "minibatches": 1},
    "network": {"hidden": [8]},
    "train": {"total_steps": 64, "num_envs": 4, "rollout_length": 4},
    "eval": {"points": 2, "episodes": 4},
    "seeds": 2,
}


def tiny(*overrides: str):
    """The tiny experiment with overrides: two members, four iterations, two evaluations of four episodes."""
    return load_experiment(PLAIN, overrides)

"""Run directories of made-up numbers, as a run would have left them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_jax.io.config.load import load_experiment, to_yaml
from agentgym_jax.io.loggers import JsonLines
from agentgym_jax.io.running.run_directory import create

PROVENANCE = {
    "seeds": [0],
    "started": "2026-01-02T03:04:05+0000",
    "command": ["/home/somebody/.venv/bin/agentgym", "train", "gymnax/cartpole_ppo"],
    "versions": {"python": "3.11.9", "jax": "0.10.2", "gymnax": "1.0.1"},
    "machine": {"backend": "cpu", "devices": ["cpu:0", "cpu:1"], "device_kind": "cpu", "cores": 2},
    "agentgym_jax_git": {"commit": "abc123", "changed": False},
}


def returns_of(seeds: int, points: int, level: float, draw: int = 0) -> np.ndarray:
    """Learning curves [seeds, points] that rise towards `level` with noise."""
    random = np.random.default_rng(draw)
    rise = 1 - np.exp(-np.arange(1, points + 1) / (0.35 * points))
    height = 1 + 0.12 * random.standard_normal((seeds, 1))
    return level * (rise * height + 0.04 * random.standard_normal((seeds, points)))


def run_directory(
    folder: Path,
    *overrides: str,
    curves: Any,
    algorithm: str = "ppo",
    env: str = "gymnax/CartPole-v1",
    absolute: Any = None,
    finished: bool = True,
    budget: int = 64_000,
) -> Path:
    """A run whose member m returns curves[m, x] in every episode at point x; `absolute` [P], None: as the last point."""
    curves = np.asarray(curves, np.float64)
    members, points = curves.shape
    sizes = {"train": {"total_steps": budget}, "eval": {"points": points, "episodes": 4}, "seeds": members}
    experiment = load_experiment({"env": env, "algorithm": algorithm, **sizes}, overrides)
    assert len(experiment.members) == members
    directory = create(folder)
    directory.config.write_text(to_yaml(experiment))
    directory.provenance.write_text(json.dumps(PROVENANCE))
    logger = JsonLines(directory.metrics, directory.evaluations)
    for point in range(points):
        for index, member in enumerate(experiment.members):
            values = {"return": np.full(4, curves[index, point]), "length": np.full(4, 7.0)}
            logger.evaluation(index, member, budget * (point + 1) // points, {"greedy": values, "sampled": values})
    logger.close()
    if finished:
        absolute = curves[:, -1] if absolute is None else np.asarray(absolute)
        measured = {"return": absolute, "length": np.full(members, 7.0)}
        summary = {
            "env": env,
            "algorithm": algorithm,
            "total_steps": budget,
            "protocol": {"environment_version": "v1", "absolute_episodes": 40},
            "absolute": {name: {"per_seed": list(values)} for name, values in measured.items()},
            "diverged": [],
            "train_seconds": 12.5,
            "steps_per_second": 81_920.0,
        }
        directory.summary.write_text(json.dumps(summary))
    return folder


def external(curves: np.ndarray, task: str, algorithm: str, budget: int = 64_000) -> dict[str, Any]:
    """A document in marl-eval's schema: four episodes a point, all alike."""
    points = curves.shape[1]
    runs = {
        f"seed_{seed}": {
            **{
                f"step_{k}": {"step_count": budget * (k + 1) // points, "elapsed_time": float(k), "return": [value] * 4}
                for k, value in enumerate(curve.tolist())
            },
            "absolute_metrics": {"return": [float(curve[-1])]},
        }
        for seed, curve in enumerate(curves)
    }
    return {"gymnax": {task: {algorithm: runs}}}

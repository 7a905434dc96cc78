"""Run directories with made-up numbers, in the files of a real run."""

from __future__ import annotations

import copy
import json

import numpy as np

from agentgym_jax.io.config.load import to_yaml
from agentgym_jax.io.loggers import JsonLines, finite
from agentgym_jax.io.running.statistics import episodes_over_members
from tests.io.support import tiny

PROVENANCE = {
    "command": ["agentgym", "train"],
    "seeds": [],
    "versions": {"python": "3.11.9", "jax": "0.10.2", "agentgym-jax": "0.1.0"},
    "machine": {
        "platform": "Linux",
        "backend": "cpu",
        "device_kind": "cpu",
        "devices": ["0", "1"],
        "cores": 2,
        "xla_flags": "",
    },
    "git": None,
    "agentgym_jax_git": {"commit": "0123456789abcdef", "changed": False},
}


def write_run(folder, returns, *overrides, changes=None, total_steps=64):
    """A finished run whose seed p returns `returns[p]` on average, one less at the point before; episodes differ by ±1.

    `overrides` are those of the tiny experiment; `changes`: {(file, section, …): value} in provenance and summary.
    """
    returns = np.asarray(returns, np.float64)
    experiment = tiny(f"seeds={len(returns) // len(tiny(*overrides).points)}", *overrides)
    points, episodes = experiment.eval.points, experiment.eval.episodes
    spread = np.where(np.arange(episodes) % 2, 1.0, -1.0)
    folder.mkdir(parents=True)
    lines = JsonLines(folder / "metrics.jsonl", folder / "evaluations.jsonl")
    for point in range(points):
        step = total_steps * (point + 1) // points
        for index, member in enumerate(experiment.members):
            results = {"return": returns[index] + 1 + point - points + spread, "length": np.full(episodes, 10.0)}
            lines.metrics(index, member, step, {"loss": float(index)})
            lines.evaluation(index, member, step, {"greedy": results, "sampled": results})
    lines.close()
    absolute = {"return": np.repeat(returns[:, None] + 0.5, 10 * episodes, axis=1), "length": np.full((len(returns), 1), 10.0)}
    files = {
        "provenance": copy.deepcopy(PROVENANCE),
        "summary": {
            "env": experiment.env.id,
            "algorithm": experiment.name,
            "seeds": list(experiment.seeds),
            "total_steps": total_steps,
            "train_seconds": 8.0,
            "protocol": {"environment_version": 1},
            "absolute": episodes_over_members(absolute),
        },
    }
    for (*path, last), value in (changes or {}).items():
        place = files
        for key in path:
            place = place[key]
        place[last] = value
    (folder / "config.yaml").write_text(to_yaml(experiment))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(finite(content)))
    return folder

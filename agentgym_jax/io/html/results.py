"""What the page is about: one algorithm on one task, some seeds, measured at some points.

A run is read from its files alone: no environment is built, so a report takes a moment and can be made where the libraries of
the environments are not installed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.comparing.differences import Facts, facts
from agentgym_jax.io.comparing.stored import StoredRun, read_stored
from agentgym_jax.io.running.run_directory import damage_named
from envs_jax.names import unknown


@dataclasses.dataclass(frozen=True)
class Result:
    """P seeds of one algorithm on one task. Every number is a mean over the episodes of one seed."""

    task: str  # the environment's id, and how it differs from its defaults: another grid is another task
    algorithm: str
    source: str  # where it was read from, as the user wrote it
    seeds: tuple[str, ...]
    steps: np.ndarray  # int64 [X]: environment steps of one seed
    curves: np.ndarray  # float64 [P, X]: the metric at every point, exploration off; NaN for what was not finite
    absolute: np.ndarray | None  # float64 [P]: the best policy on fresh episodes; None where it was not measured
    external: bool = False
    threshold: float | None = None  # of the return that counts as solved
    setting: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what a sweep varied: {key: value}
    protocol: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # how it was measured: {name: value}
    facts: Facts = dataclasses.field(default_factory=dict)  # what must agree for a comparison, see `differences`
    config: str = ""  # YAML
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what a reader must know, such as seeds that diverged

    @property
    def final(self) -> np.ndarray:
        """The metric at the last point, [P]."""
        return self.curves[:, -1]


def read_run(path: str | Path, metric: str = "return", name: str = "") -> list[Result]:
    """The results of a finished run: one for each setting of its sweep, called `name` or by their algorithm.

    Raises ConfigError, naming the file at fault, or for a metric that was not measured.
    """
    run = read_stored(path, name)
    known = run.evaluation["greedy"]
    if metric not in known:
        raise ConfigError(f"{path}: {unknown('metric', metric, known)}")
    with damage_named(run.path):
        return [_result(run, setting, places, metric) for setting, places in run.settings]


def _result(run: StoredRun, setting: dict[str, Any], places: Sequence[int], metric: str) -> Result:
    env, seeds = run.config["env"], [str(run.members[place]["seed"]) for place in places]
    changed = [f"{key}={value}" for part in ("kwargs", "params") for key, value in (env.get(part) or {}).items()]
    return Result(
        task=" ".join([run.summary["env"], *changed]),
        algorithm=run.name or run.summary["algorithm"],
        source=str(run.path),
        seeds=tuple(seeds),
        steps=run.steps,
        curves=np.mean(run.evaluation["greedy"][metric][list(places)], axis=-1),
        absolute=run.scores(metric, "absolute")[list(places)],
        threshold=run.config["eval"].get("threshold") if metric == "return" else None,
        setting=setting,
        protocol=_protocol(run),
        facts=facts(run, setting),
        config=OmegaConf.to_yaml(OmegaConf.create(run.config)),
        provenance=run.provenance,
        notes=_notes(run, seeds, setting),
    )


def _protocol(run: StoredRun) -> dict[str, Any]:
    measured, evaluation, env = run.summary.get("protocol", {}), run.config["eval"], run.config["env"]
    return {
        "environment version": measured.get("environment_version") or "not told",
        "steps": run.summary["total_steps"],
        "points": len(run.steps),
        "episodes a point": evaluation["episodes"],
        "episodes of the absolute metric": measured.get("absolute_episodes", 10 * evaluation["episodes"]),
        "step cap": evaluation.get("cap") or "the environment's limit",
        "evaluation seed": str(evaluation["seed"]),
        "held-out numbers": str(len(evaluation.get("params") or ()) or "none"),
        "reward": env.get("reward") or "as declared",
        "wrappers": ", ".join(map(str, env.get("wrappers") or ())) or "none",
        "training seconds, all seeds": float(run.summary["train_seconds"]),
    }


def _notes(run: StoredRun, seeds: Sequence[str], setting: Mapping[str, Any]) -> tuple[str, ...]:
    """Seeds that diverged; of a sweep, those at this setting."""
    marked = [x if isinstance(x, dict) else {"seed": x, **setting} for x in run.summary.get("diverged", [])]
    own = [str(x["seed"]) for x in marked if {**x, **setting} == x]
    return (f"the numbers of seed {', '.join(own)} diverged while it trained",) if own else ()

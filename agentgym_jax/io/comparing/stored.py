"""A finished run read from its files alone: no environment is built, no checkpoint opened, and nothing there is changed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.files import load_plain
from agentgym_jax.io.loggers import read_records
from agentgym_jax.io.running.run_directory import RunDirectory, damage_named
from envs_jax.names import unknown

POLICIES = ("greedy", "sampled")
_NO_LABELS = ("step", "member", *POLICIES)


@dataclasses.dataclass(frozen=True)
class StoredRun:
    """The files of a run as data; P members, X evaluation points, E episodes."""

    path: Path
    name: str  # as the user called it; empty where they did not
    config: dict[str, Any]  # plain data by sections
    provenance: dict[str, Any]
    summary: dict[str, Any]
    members: tuple[dict[str, Any], ...]  # [P]: {"seed": …, swept key: …}
    steps: np.ndarray  # int64 [X]: environment steps of one member
    evaluation: dict[str, dict[str, np.ndarray]]  # {greedy, sampled: {name: float64 [P, X, E]}}, NaN for null

    @property
    def label(self) -> str:
        """Its name, else that of its folder."""
        return self.name or self.path.resolve().name

    @property
    def settings(self) -> list[tuple[dict[str, Any], list[int]]]:
        """Every swept setting with the places of its members; one empty setting without a sweep."""
        found: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for place, member in enumerate(self.members):
            setting = {key: value for key, value in member.items() if key != "seed"}
            found.setdefault(json.dumps(setting), (setting, []))[1].append(place)
        return list(found.values())

    def scores(self, metric: str, policy: str) -> np.ndarray:
        """Each member's mean over its episodes [P]: of `greedy` or `sampled` at the last point, or the `absolute` metric.

        NaN where a number was not finite. Raises ConfigError for a metric that was not measured, with the nearest.
        """
        if policy == "absolute":
            blocks = self.summary["absolute"]
            _check_metric(self, metric, blocks)
            return np.array([np.nan if x is None else x for x in blocks[metric]["per_seed"]], np.float64)
        results = self.evaluation[policy]
        _check_metric(self, metric, results)
        return np.mean(results[metric][:, -1], axis=-1)


def _check_metric(run: StoredRun, metric: str, known: Any) -> None:
    if metric not in known:
        raise ConfigError(f"{run.path}: {unknown('metric', metric, known)}")


def read_stored(path: str | Path, name: str = "") -> StoredRun:
    """A finished run from its directory. Raises ConfigError, in one line, that names the file which is missing or damaged."""
    directory = RunDirectory(Path(path))
    for needed in (directory.config, directory.provenance, directory.evaluations):
        if not needed.is_file():
            raise ConfigError(f"{path} is not a run directory: it has no {needed.name}")
    if not directory.summary.is_file():
        raise ConfigError(f"{path} has no {directory.summary.name}: the run has not finished; agentgym resume continues it")
    with damage_named(directory.config):
        config = load_plain(directory.config.resolve())
        points = int(config["eval"]["points"])
    provenance = _json(directory.provenance, ("versions", "machine", "seeds"))
    summary = _json(directory.summary, ("env", "algorithm", "total_steps", "train_seconds", "absolute"))
    with damage_named(directory.evaluations):
        members, steps, evaluation = _evaluations(read_records(directory.evaluations), points)
    return StoredRun(directory.path, name, config, provenance, summary, members, steps, evaluation)


def read_named(arguments: Sequence[str]) -> list[StoredRun]:
    """The runs of a command line, each `RUN` or `NAME=RUN`. Raises ConfigError for a run that comes twice."""
    runs: list[StoredRun] = []
    for argument in arguments:
        name, separator, path = argument.partition("=")
        runs.append(read_stored(path, name) if separator and not Path(argument).exists() else read_stored(argument))
    places = [run.path.resolve() for run in runs]
    twice = [str(run.path) for run, place in zip(runs, places, strict=True) if places.count(place) > 1]
    if twice:
        raise ConfigError(f"{twice[0]} is given twice")
    return runs


def by_setting(runs: Sequence[StoredRun]) -> Iterator[tuple[StoredRun, dict[str, Any], list[int]]]:
    """Every run at each of its swept settings, with the places of the members."""
    for run in runs:
        for setting, places in run.settings:
            yield run, setting, places


def _json(path: Path, needed: Sequence[str]) -> dict[str, Any]:
    with damage_named(path):
        data = json.loads(path.read_text(encoding="utf-8"))
        missing = [name for name in needed if name not in data]
        if missing:
            raise ValueError(f"it has no {', '.join(missing)}")
        return data


def _evaluations(records: list[dict[str, Any]], points: int) -> tuple[tuple[dict[str, Any], ...], np.ndarray, Any]:
    """Members, steps and {policy: {name: [P, X, E]}} of records that must be there for every member and point, once."""
    places = {(record["member"], record["step"]): record for record in records}
    members = sorted({member for member, _ in places})
    steps = sorted({step for _, step in places})
    if len(records) != len(places) or len(places) != len(members) * len(steps) or len(steps) != points:
        raise ValueError(f"{len(records)} readable records of {len(members)} members at {points} points")
    labels = [{key: value for key, value in places[each, steps[0]].items() if key not in _NO_LABELS} for each in members]
    evaluation = {
        policy: {
            name: np.array([[places[each, step][policy][name] for step in steps] for each in members], np.float64)
            for name in places[members[0], steps[0]][policy]
        }
        for policy in POLICIES
    }
    return tuple(labels), np.array(steps, np.int64), evaluation

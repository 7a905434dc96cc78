"""Results submitted from elsewhere: JSON in the schema of marl-eval (Gorsane et al. 2022, arXiv:2209.10485), checked.

env → task → algorithm → run → `step_<k>`: {`step_count`, `elapsed_time`, metric: [E numbers] or one} and `absolute_metrics`:
{metric: [numbers] or one}.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.html.results import Result
from envs_jax.names import unknown

_STEP = re.compile(r"step_(\d+)")
_ABSOLUTE = "absolute_metrics"
_NO_METRICS = ("step_count", "elapsed_time", "steps_per_second")
_ALIASES = {"return": ("return", "mean_episode_return", "episode_return", "returns")}


def read_external(path: Path, metric: str = "return") -> list[Result]:
    """The results of a file, one for each algorithm on each task. Raises ConfigError with the place inside that is wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        raise ConfigError(f"{path}: is no JSON ({' '.join(str(error).split())})") from None
    try:
        check_schema(data)
        return [
            _result(path, f"{env}/{task}", algorithm, runs, metric)
            for env, tasks in data.items()
            for task, algorithms in tasks.items()
            for algorithm, runs in algorithms.items()
        ]
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def check_schema(data: Any) -> None:
    """Raises ConfigError, with the keys that lead to the place, for whatever is not in the schema."""
    for env, tasks in _level((), data, "environments"):
        for task, algorithms in _level((env,), tasks, "tasks"):
            shapes = {}
            for algorithm, runs in _level((env, task), algorithms, "algorithms"):
                if "," in algorithm:
                    raise _wrong((env, task, algorithm), "an algorithm's name must hold no comma", algorithm)
                shapes[algorithm] = _check_runs((env, task, algorithm), runs)
            for algorithm, shape in shapes.items():
                wanted = next(iter(shapes.values()))
                if shape != wanted:
                    must = f"must have as many runs and steps as the first algorithm, {wanted[0]} and {wanted[1]}"
                    raise _wrong((env, task, algorithm), must, f"{shape[0]} and {shape[1]}")


def _check_runs(place: tuple[str, ...], runs: Any) -> tuple[int, int]:
    """Checks the runs of one algorithm, which must be measured at the same steps; returns how many runs and steps."""
    counts = {run: _check_run((*place, run), own) for run, own in _level(place, runs, "runs")}
    first = next(iter(counts.values()))
    for run, own in counts.items():
        if own != first:
            told = [f"{len(each)} up to {each[-1]:,}" for each in (first, own)]
            raise _wrong((*place, run), f"must have the steps of the first run, {told[0]}", told[1])
    return len(counts), len(first)


def _level(place: tuple[str, ...], data: Any, holds: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(data, Mapping) or not data:
        raise _wrong(place, f"must be a mapping of {holds}", data)
    yield from data.items()


def _check_run(place: tuple[str, ...], run: Any) -> list[int]:
    """Checks one run and returns its step counts."""
    counts: list[int] = []
    for name, block in _level(place, run, "step_<k> and absolute_metrics"):
        if name != _ABSOLUTE and not _STEP.fullmatch(name):
            raise _wrong((*place, name), "must be called step_<k> or absolute_metrics", name)
        metrics = [metric for metric, _ in _level((*place, name), block, "metrics") if metric not in _NO_METRICS]
        if not metrics:
            raise _wrong((*place, name), "must hold at least one metric", list(block))
        for metric in metrics:
            _check_numbers((*place, name, metric), block[metric])
    for name in _steps_of(run):
        block, at = run[name], (*place, name)
        count, seconds = block.get("step_count"), block.get("elapsed_time")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise _wrong((*at, "step_count"), "must be a whole number of environment steps", count)
        if counts and count <= counts[-1]:
            raise _wrong((*at, "step_count"), f"must be above that of the step before, {counts[-1]}", count)
        if not _is_number(seconds) or seconds < 0:
            raise _wrong((*at, "elapsed_time"), "must be a number of seconds, at least 0", seconds)
        counts.append(count)
    if not counts:
        raise _wrong(place, "must hold step_<k>", list(run))
    return counts


def _check_numbers(place: tuple[str, ...], values: Any) -> None:
    numbers = values if isinstance(values, list) else [values]
    bad = [x for x in numbers if not _is_number(x)]
    if bad or not numbers:
        raise _wrong(place, "must be a finite number or a list of them", bad[0] if bad else values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _steps_of(run: Mapping[str, Any]) -> list[str]:
    return sorted((name for name in run if _STEP.fullmatch(name)), key=lambda name: int(name.removeprefix("step_")))


def _wrong(place: tuple[str, ...], must: str, got: Any) -> ConfigError:
    shown = repr(got)
    return ConfigError(f"{' > '.join(place) or 'the top'}: {must}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def _result(path: Path, task: str, algorithm: str, runs: Mapping[str, Any], metric: str) -> Result:
    names = list(runs)
    blocks = [[run[name] for name in _steps_of(run)] for run in runs.values()]
    known = [name for name in blocks[0][0] if name not in _NO_METRICS]
    wanted = next((name for name in _ALIASES.get(metric, (metric,)) if name in known), None)
    if wanted is None:
        raise ConfigError(f"{task.replace('/', ' > ')} > {algorithm}: {unknown('metric', metric, known)}")
    for run, own in zip(names, blocks, strict=True):
        for step, block in zip(_steps_of(runs[run]), own, strict=True):
            if wanted not in block:
                place = (*task.split("/"), algorithm, run, step)
                raise _wrong(place, f"must hold the metric {wanted}, as the first step does", list(block))
    absolute = [run.get(_ABSOLUTE, {}).get(wanted) for run in runs.values()]
    first = blocks[0][0][wanted]
    return Result(
        task=task,
        algorithm=algorithm,
        source=str(path),
        seeds=tuple(names),
        steps=np.array([block["step_count"] for block in blocks[0]], np.int64),
        curves=np.array([[np.mean(block[wanted]) for block in own] for own in blocks]),
        absolute=None if None in absolute else np.array([np.mean(values) for values in absolute]),
        external=True,
        protocol={
            "steps": blocks[0][-1]["step_count"],
            "points": len(blocks[0]),
            "episodes a point": len(first) if isinstance(first, list) else "not told",
        },
        facts={
            ("budget", "steps that ran"): blocks[0][-1]["step_count"],
            ("evaluation", "eval.points"): len(blocks[0]),
            **({("evaluation", "eval.episodes"): len(first)} if isinstance(first, list) else {}),
        },
    )

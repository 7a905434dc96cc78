"""From the arguments of `agentgym report` to results whose names tell them apart."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.html.external import read_external
from agentgym_jax.io.html.results import Result, read_run
from agentgym_jax.io.sweeps.groups import value_in_words

_GROUPS = "group-*"  # the run directories inside that of a sweep
_IRRELEVANT = ("seeds", "sweep", "log")  # sections that do not tell two groups of one sweep apart


def read_all(arguments: Sequence[str | Path], metric: str = "return") -> list[Result]:
    """The results of run directories, of sweeps and of files in marl-eval's schema, each `PATH` or `NAME=PATH`, by task.

    Raises ConfigError for what is none of these, and for a path that is given twice.
    """
    seen: set[Path] = set()
    results: list[Result] = []
    for argument in map(str, arguments):
        name, separator, path = argument.partition("=")
        if not separator or Path(argument).exists():
            name, path = "", argument
        if Path(path).resolve() in seen:
            raise ConfigError(f"{path} is given twice")
        seen.add(Path(path).resolve())
        results += _read(Path(path), metric, name)
    return sorted(_distinct_names(results), key=lambda result: result.task)


def _read(path: Path, metric: str, name: str) -> list[Result]:
    if path.is_file():
        return [dataclasses.replace(result, algorithm=name or result.algorithm) for result in read_external(path, metric)]
    if not path.is_dir():
        raise ConfigError(f"{path} does not exist; give run directories, sweep directories or .json files of results")
    groups = sorted(group for group in path.glob(_GROUPS) if group.is_dir())
    if not groups:
        return read_run(path, metric, name)
    by_group = [read_run(group, metric, name) for group in groups]
    settings = _differences([own[0].config for own in by_group])
    return [
        dataclasses.replace(result, setting={**setting, **result.setting})
        for setting, own in zip(settings, by_group, strict=True)
        for result in own
    ]


def _differences(configs: Sequence[str]) -> list[dict[str, Any]]:
    """What tells the groups of a sweep apart: {dotted key: value} of each."""
    flat = [dict(_flat("", OmegaConf.to_container(OmegaConf.create(config)))) for config in configs]
    keys = [key for key in flat[0] if key.partition(".")[0] not in _IRRELEVANT]
    return [{key: own[key] for key in keys if any(other.get(key) != own.get(key) for other in flat)} for own in flat]


def _flat(prefix: str, value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), inner)
    else:
        yield prefix, value


def _distinct_names(results: list[Result]) -> list[Result]:
    """No two results of a task share a name: swept settings are added to it, then, where needed, the source, then a number."""
    named = [dataclasses.replace(result, algorithm=result.algorithm + _short(result.setting)) for result in results]
    for mark in ("[{stem}]", "#{number}"):
        named = [
            result
            if _alone(result, named)
            else dataclasses.replace(
                result, algorithm=f"{result.algorithm} {mark.format(stem=Path(result.source).stem, number=index + 1)}"
            )
            for index, result in enumerate(named)
        ]
    return named


def _alone(result: Result, results: Iterable[Result]) -> bool:
    same = [other for other in results if (other.task, other.algorithm) == (result.task, result.algorithm)]
    return len(same) == 1


def _short(setting: Mapping[str, Any]) -> str:
    return "".join(f" {key.rpartition('.')[2]}={value_in_words(value)}" for key, value in setting.items())


def algorithms_of(results: Iterable[Result]) -> list[str]:
    """The names of all algorithms, sorted, each once: their place gives colour and pattern throughout a page."""
    return sorted({result.algorithm for result in results})


def by_task(results: Iterable[Result]) -> dict[str, list[Result]]:
    """{task: its results}."""
    return {task: list(own) for task, own in itertools.groupby(results, key=lambda result: result.task)}

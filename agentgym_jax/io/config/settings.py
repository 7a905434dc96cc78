"""An experiment with other settings, named by dotted keys as in its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.algorithm_section import from_number
from agentgym_jax.io.config.frozen import thaw
from agentgym_jax.io.config.typed import changed_algorithm, typed, typed_algorithm
from envs_jax.core import Env


def with_settings(experiment: Any, settings: Mapping[str, Any], **fields: Any) -> Any:
    """`experiment` with `settings`, {"network.hidden": [64], …}; a section alone, {"algorithm": "dqn"}, is replaced.

    `fields` are fields of the `Experiment` itself. Raises ConfigError for whatever does not fit, as the file would.
    """
    changes: dict[str, Any] = {}
    for name in dict.fromkeys(key.partition(".")[0] for key in settings):
        if name in settings:
            changes |= _whole(experiment, name, settings[name])
        own = {key.partition(".")[2]: value for key, value in settings.items() if key.startswith(f"{name}.")}
        if own:
            changes |= _parts(_replaced(experiment, changes) if name in settings else experiment, name, own)
    return _replaced(experiment, changes | fields)


def _replaced(experiment: Any, changes: Mapping[str, Any]) -> Any:
    # A sweep is checked against the new sections, so it comes along only where it is told.
    return dataclasses.replace(experiment, **{"sweep": {}, "search": {}} | dict(changes))


def _whole(experiment: Any, name: str, value: Any) -> dict[str, Any]:
    """The fields of the `Experiment` that a whole section stands for."""
    value = thaw(value) if isinstance(value, Mapping) else value
    if name == "algorithm":
        return typed_algorithm(value) if isinstance(value, str | Mapping) else {"algorithm": value, "hyper": None, "name": ""}
    if name == "env" and isinstance(value, str | Env):
        value = {"id": value}
    schema = type(getattr(experiment, name))
    if isinstance(value, Mapping) and dataclasses.is_dataclass(schema):
        objects = {key: each for key, each in value.items() if isinstance(each, Env)}
        plain = {key: each for key, each in value.items() if key not in objects}
        models = name == "network" and all(not isinstance(each, _PLAIN) for each in plain.values())
        return {name: value if models and plain else schema(**typed(name, schema, plain), **objects)}
    return {name: value}


_PLAIN = (str, int, float, bool, list, tuple, dict, type(None))


def _parts(experiment: Any, name: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the `Experiment` after a change of some settings of a section, `own` with keys below it."""
    section, changes = getattr(experiment, name), {}
    for path, value in own.items():
        field, *deeper = path.split(".")
        if deeper:
            value = _deep(f"{name}.{path}", changes.get(field, _current(experiment, section, field)), deeper, value)
        changes[field] = thaw(value)
    if name == "algorithm":
        return changed_algorithm(experiment.name, section, experiment.hyper, changes)
    objects = {key: value for key, value in changes.items() if isinstance(value, Env)}
    plain = {key: value for key, value in changes.items() if key not in objects}
    return {name: dataclasses.replace(section, **typed(name, type(section), plain), **objects)}


def _current(experiment: Any, section: Any, field: str) -> Any:
    if hasattr(section, field):
        return thaw(getattr(section, field))
    return from_number(getattr(experiment.hyper, field, None))  # one of the algorithm's numbers


def _deep(key: str, current: Any, path: list[str], value: Any) -> Any:
    """A copy of nested mappings with one value changed."""
    if current is not None and not isinstance(current, Mapping):
        raise ConfigError(f"{key}: {key.rpartition('.')[0]} is {current!r}, which has no {path[-1]}")
    inner = dict(current or {})
    inner[path[0]] = value if len(path) == 1 else _deep(key, inner.get(path[0]), path[1:], value)
    return inner

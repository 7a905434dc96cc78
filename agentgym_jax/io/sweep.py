"""Sweeps over traced numbers: points × seeds are the members of one population and one compiled program."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from agentgym_jax.checks import ConfigError
from agentgym_jax.io import check
from agentgym_jax.io.frozen import FrozenMap
from agentgym_jax.ops.schedules import Schedule

_SECTION = "algorithm."
_SCHEDULE_NUMBERS = ("start", "end", "over", "warmup")


def checked(sweep: Any, hyper: Any, config: Any) -> FrozenMap:
    """`sweep` with its values as tuples of floats. Raises ValueError for what is not a number of `hyper`."""
    if not isinstance(sweep, Mapping):
        raise ConfigError(f"sweep must be a mapping such as {{algorithm.learning_rate: [...]}}, got {sweep!r}")
    numbers = [field.name for field in dataclasses.fields(hyper)]
    static = [field.name for field in dataclasses.fields(config)]
    result = {}
    for key, values in sweep.items():
        if not isinstance(key, str):
            raise ConfigError(f"sweep: a key must be text such as algorithm.learning_rate, got {key!r}")
        name, _, part = key.removeprefix(_SECTION).partition(".")
        if not key.startswith(_SECTION) or name in static:
            raise ConfigError(f"sweep.{key} is not a number of the algorithm: a sweep varies {', '.join(numbers)} only")
        check.known_keys("sweep.algorithm", [name], numbers)
        if part:
            check.known_keys(f"sweep.{_SECTION}{name}", [part], _SCHEDULE_NUMBERS)
            if not isinstance(getattr(hyper, name), Schedule):
                raise ConfigError(f"sweep.{key}: {_SECTION}{name} is a plain number; sweep {_SECTION}{name} itself")
        elif isinstance(getattr(hyper, name), Schedule):
            parts = ", ".join(f"{key}.{number}" for number in _SCHEDULE_NUMBERS)
            raise ConfigError(f"sweep.{key}: {key} is a schedule, which a number would replace; sweep one of {parts}")
        if not isinstance(values, list | tuple) or not values:
            raise ConfigError(f"sweep.{key} must be a list of numbers, got {values!r}")
        result[key] = tuple(check.number(f"sweep.{key}", value) for value in values)
        if len(set(result[key])) < len(result[key]):
            raise ConfigError(f"sweep.{key} has a number twice: {list(result[key])}")
    return FrozenMap(result)


def points(sweep: Mapping[str, tuple[float, ...]]) -> tuple[FrozenMap, ...]:
    """Every combination as {key: number}, the last key varying fastest; one empty point without a sweep."""
    return tuple(FrozenMap(dict(zip(sweep, values, strict=True))) for values in itertools.product(*sweep.values()))


def at_point(hyper: Any, point: Mapping[str, float]) -> Any:
    """`hyper` with the numbers of this point."""
    for key, value in point.items():
        name, _, part = key.removeprefix(_SECTION).partition(".")
        new = getattr(hyper, name).replace(**{part: value}) if part else value
        hyper = dataclasses.replace(hyper, **{name: new})
    return hyper

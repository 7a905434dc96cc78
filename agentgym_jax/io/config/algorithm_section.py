"""The `algorithm` section: one flat list of settings for the user, a static config and traced numbers for the program."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax

from agentgym_jax.algorithms.registry import algorithm_names, get_algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.ops.schedules import Schedule

_STATIC = ("kind", "per")  # of a schedule


def name_of(algorithm: Any, name: str = "") -> tuple[str, Any]:
    """The registered name, and the config object or None: `algorithm` is a name, or a config whose name may be given."""
    if isinstance(algorithm, str):
        get_algorithm(algorithm)
        return algorithm, None
    if name:
        return name, check.instance("algorithm", algorithm, get_algorithm(name).config)
    entries = {known: get_algorithm(known) for known in algorithm_names()}
    fitting = {
        known: len(entry.defaults)
        for known, entry in entries.items()
        if type(algorithm) is entry.config and all(getattr(algorithm, k, v) == v for k, v in entry.defaults.items())
    }
    if fitting:
        return max(fitting, key=fitting.__getitem__), algorithm  # the most specific; of equals the first registered
    raise ConfigError(
        f"algorithm: must be one of {', '.join(algorithm_names())}, or the config object of one, got {algorithm!r};"
        " register your own with agentgym_jax.register_algorithm"
    )


def default_settings(name: str) -> tuple[Any, Any]:
    """The config and the numbers of an algorithm as its registry entry has them."""
    entry = get_algorithm(name)
    fields = {field.name for field in dataclasses.fields(entry.config)}
    config = {key: value for key, value in entry.defaults.items() if key in fields}
    hyper = {key: value for key, value in entry.defaults.items() if key not in fields}
    return entry.config(**config), entry.hyper(**hyper)


def as_number(field: str, value: Any) -> Any:
    """A float, or a `Schedule` from a mapping {start, end, over, warmup, kind, per}."""
    if isinstance(value, Mapping):
        known = [item.name for item in dataclasses.fields(Schedule)]
        check.known_keys(field, value, known)
        if "start" not in value:
            raise ConfigError(f"{field} is a schedule without `start`; write {{start: ..., end: ...}}")
        numbers = {key: check.number(f"{field}.{key}", x) for key, x in value.items() if key not in _STATIC}
        try:
            return Schedule(**numbers, **{key: value[key] for key in _STATIC if key in value})
        except ValueError as error:
            raise ConfigError(f"{field}: {error}") from None
    if isinstance(value, Schedule):
        return float_leaves(value)
    return check.number(field, value)


def check_ranges(hyper: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuses a number, or an end of a schedule, that lies outside its range; `over` and `warmup` are parts of a run."""
    for field in dataclasses.fields(hyper):
        value, (low, high) = getattr(hyper, field.name), ranges.get(field.name, (-math.inf, math.inf))
        name, parts = f"algorithm.{field.name}", {"": (value, low, high)}
        if isinstance(value, Schedule):
            parts = {".start": (value.start, low, high), ".end": (value.end, low, high)}
            parts |= {".over": (value.over, 0.0, 1.0), ".warmup": (value.warmup, 0.0, 1.0)}
        for part, (number, least, most) in parts.items():
            if not least <= number <= most:
                bounds = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
                raise ConfigError(f"{name}{part}: must be {bounds}, got {number:g}")
        if isinstance(value, Schedule) and value.kind != "constant" and 0 < value.warmup >= value.over:
            raise ConfigError(f"{name}.over: must exceed warmup = {value.warmup:g}, which it includes, got {value.over:g}")


def from_number(value: Any) -> Any:
    """The inverse of `as_number`: a float, or the schedule as a mapping."""
    return dataclasses.asdict(value) if isinstance(value, Schedule) else value


def float_leaves(hyper: Any) -> Any:
    """`hyper` with every number as a Python float, so that it can be compared, hashed and written to a file."""
    return jax.tree.map(lambda x: check.number(f"a number of {type(hyper).__name__}", x), hyper)

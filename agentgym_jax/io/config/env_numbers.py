"""The numbers of an environment as the user set them: plain, changing over the run, or held out for evaluation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.io.config.algorithm_section import as_number
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.ops.schedules import Schedule
from agentgym_jax.tasks.base import Tasks, fixed
from agentgym_jax.tasks.dealt import dealt
from agentgym_jax.tasks.scheduled import scheduled
from envs_jax.core import Env
from envs_jax.wrappers.checks import between

_ANY: Mapping[str, tuple[float, float]] = MappingProxyType({})


class EnvNumbers(NamedTuple):
    params: Any  # those of the end of the run, which a policy meets afterwards
    tasks: Tasks
    held_out: Tasks | None  # the tasks of evaluation, None: those of training


def env_numbers(env: Env, experiment: Experiment) -> EnvNumbers:
    """What `env.params` and `eval.params` ask of an environment. Raises ConfigError for what it does not have."""
    changes = {name: _read(name, value) for name, value in experiment.env.params.items()}
    schedules = {name: value for name, value in changes.items() if isinstance(value, Schedule)}
    for name, schedule in schedules.items():
        _check_schedule(env.default_params, name, schedule)
        for part in ("start", "end"):
            _check_range(f"env.params.{name}.{part}", np.asarray(getattr(schedule, part)), env.ranges.get(name))
    ends = {name: float(value.at(jnp.float32(1.0))) if name in schedules else value for name, value in changes.items()}
    params = with_numbers(env.default_params, ends, ranges=env.ranges)
    tasks = scheduled(schedules, lambda now: replaced(params, now)) if schedules else fixed(params)
    settings = enumerate(experiment.eval.params)
    held_out = [with_numbers(params, each, f"eval.params[{i}]", env.ranges) for i, each in settings]
    return EnvNumbers(params, tasks, dealt(held_out) if held_out else None)


def with_numbers(
    params: Any, changes: Mapping[str, Any], section: str = "env.params", ranges: Mapping[str, tuple[float, float]] = _ANY
) -> Any:
    """`params` with these numbers changed, each in the dtype and shape that it has there, and in its range."""
    if not changes:
        return params
    fields = numbers_of(params)
    check.known_keys(section, changes, fields)
    new = {name: _like(f"{section}.{name}", value, fields[name]) for name, value in changes.items()}
    for name, value in new.items():
        _check_range(f"{section}.{name}", np.asarray(value), ranges.get(name))
    return replaced(params, new)


def replaced(params: Any, new: Mapping[str, Any]) -> Any:
    """`params`, a dataclass, named tuple or dict, with these fields."""
    if isinstance(params, Mapping):
        return {**params, **new}
    replace: Any = getattr(type(params), "_replace", dataclasses.replace)
    return replace(params, **new)


def numbers_of(params: Any) -> dict[str, Any]:
    """The numbers of an environment by name, {} where its params are no record."""
    if isinstance(params, Mapping):
        fields = dict(params)
    elif dataclasses.is_dataclass(params) and not isinstance(params, type):
        fields = {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    else:
        fields = params._asdict() if hasattr(params, "_asdict") else {}
    return {name: default for name, default in fields.items() if default is not None}  # None: the constructor takes it


def _read(name: str, value: Any) -> Any:
    return as_number(f"env.params.{name}", value) if isinstance(value, Mapping | Schedule) else value


def _check_schedule(params: Any, name: str, schedule: Schedule) -> None:
    """Refuses a schedule for what is no single float, and `over` and `warmup` that are no parts of a run."""
    fields = numbers_of(params)
    check.known_keys("env.params", [name], fields)
    default = jnp.asarray(fields[name])
    if default.shape or not jnp.issubdtype(default.dtype, jnp.floating):
        kind = f"{default.dtype}{list(default.shape)}"
        raise ConfigError(f"env.params.{name}: only a single float can be a schedule, this is {kind}; write a number")
    for part in ("over", "warmup"):
        if not 0.0 <= getattr(schedule, part) <= 1.0:
            raise ConfigError(f"env.params.{name}.{part}: must be between 0 and 1, got {getattr(schedule, part):g}")


def _check_range(field: str, value: np.ndarray, wanted: tuple[float, float] | None) -> None:
    low, high = wanted or (-math.inf, math.inf)
    if not np.all(np.isfinite(value) & (value >= np.float32(low)) & (value <= np.float32(high))):
        raise ConfigError(f"{field}: must be a finite number{between(low, high)}, got {value.tolist()}")


def _like(field: str, value: Any, default: Any) -> jax.Array:
    default = jnp.asarray(default)
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"{field}: must be a number, got {value!r}") from None
    if array.shape != default.shape:
        raise ConfigError(f"{field}: must have the shape {list(default.shape)}, got {value!r}")
    if jnp.issubdtype(default.dtype, jnp.integer) and np.any(array != np.round(array)):
        raise ConfigError(f"{field}: must be whole, got {value!r}")
    return jnp.asarray(array, default.dtype)

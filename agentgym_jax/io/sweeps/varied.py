"""What a sweep varies. Traced numbers × seeds are the members of one population; any other setting makes groups of members."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.io.config.algorithm_section import from_number
from agentgym_jax.io.config.frozen import FrozenMap, freeze, thaw
from agentgym_jax.io.sweeps import ranges
from agentgym_jax.io.sweeps.ranges import ZIP
from agentgym_jax.ops.schedules import Schedule

_SECTION = "algorithm."
_SCHEDULE_NUMBERS = ("start", "end", "over", "warmup")
_SCHEDULE_KINDS = ("kind", "per")
_RANGES = (*ranges.KINDS, "int", "log_int", "choice")
SECTIONS = ("env", "algorithm", "network", "train", "eval")  # those with settings that can be swept, also as a whole


def checked(sweep: Any, experiment: Any) -> FrozenMap:
    """`sweep` with the values of every key as a tuple, those of numbers as floats.

    `experiment` has its sections already. Under `zip` several keys go hand in hand. Raises ConfigError for a key that is no
    setting, and for values that cannot be its.
    """
    if not isinstance(sweep, Mapping):
        raise ConfigError(f"sweep must be a mapping such as {{algorithm.learning_rate: [...]}}, got {sweep!r}")
    result: dict[str, Any] = {}
    for key, given in ranges.flat(sweep).items():
        if key == ZIP:
            result[ZIP] = _zipped(given, experiment)
        else:
            result[key] = _values(key, given, experiment)
            if len(set(result[key])) < len(result[key]):
                raise ConfigError(f"sweep.{key} has a value twice: {thaw(result[key])}")
    doubles = set(result) & set(result.get(ZIP, ()))
    if doubles:
        raise ConfigError(f"sweep.{min(doubles)} stands under zip too; write it once")
    return FrozenMap(result)


def _zipped(given: Any, experiment: Any) -> dict[str, Any]:
    given = ranges.flat(check.instance("sweep.zip", given, Mapping))
    result = {key: _values(key, values, experiment) for key, values in given.items()}
    lengths = {key: len(values) for key, values in result.items()}
    if len(set(lengths.values())) != 1:
        told = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise ConfigError(f"sweep.zip: needs keys with equally many values, {f'but {told}' if told else 'got none'}")
    return result


def _values(key: Any, given: Any, experiment: Any) -> tuple[Any, ...]:
    check_key("sweep", key, experiment)
    values = tuple(_hashable(f"sweep.{key}", value) for value in ranges.values(f"sweep.{key}", given))
    if not is_traced(key, values, experiment.hyper):
        return values
    check_number("sweep", key, experiment.hyper)
    return tuple(check.number(f"sweep.{key}", value) for value in values)


def check_number(section: str, key: str, hyper: Any) -> None:
    """Refuses a number in place of a schedule, and a part of a schedule where there is none."""
    name, _, part = key.removeprefix(_SECTION).partition(".")
    current = getattr(hyper, name)
    if part and not isinstance(current, Schedule):
        raise ConfigError(f"{section}.{key}: {_SECTION}{name} is a plain number; {section} {_SECTION}{name} itself")
    if not part and isinstance(current, Schedule):
        parts = ", ".join(f"{key}.{number}" for number in _SCHEDULE_NUMBERS)
        raise ConfigError(f"{section}.{key}: {key} is a schedule, which a number would replace; {section} one of {parts}")


def check_key(section: str, key: Any, experiment: Any) -> None:
    """Refuses a key of `sweep` or `search` that is no setting of the experiment."""
    if not isinstance(key, str):
        raise ConfigError(f"{section}: a key must be text such as algorithm.learning_rate, got {key!r}")
    name, _, rest = key.partition(".")
    if name in ("seeds", "log", "sweep", "search"):
        raise ConfigError(f"{section}.{key}: {name} is not varied; it stands in a section of its own for all members")
    check.known_keys(section, [name], SECTIONS)
    if not rest:
        return
    field, _, part = rest.partition(".")
    if name == "algorithm":
        numbers = [item.name for item in dataclasses.fields(experiment.hyper)]
        if field == "name":
            raise ConfigError(f"{section}.{key}: each has settings of its own; vary the section, algorithm: [ppo, ...]")
        check.known_keys(f"{section}.algorithm", [field], numbers + _fields(experiment.algorithm))
        if part and field in numbers and part not in _SCHEDULE_NUMBERS + _SCHEDULE_KINDS:
            near = [*_SCHEDULE_NUMBERS, *_SCHEDULE_KINDS, *(kind for kind in _RANGES if kind != part)]
            check.known_keys(f"{section}.{_SECTION}{field}", [part], near)  # perhaps a kind of range, misspelt
    elif isinstance(getattr(experiment, name), Mapping):
        raise ConfigError(f"{section}.{key}: {name} is made of objects of Python; vary the section, {name}: [...]")
    else:
        check.known_keys(f"{section}.{name}", [field], _fields(getattr(experiment, name)))


def _fields(config: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(config)]


def is_traced(key: str, values: Any, hyper: Any) -> bool:
    """Whether a key with these values is a number of `hyper`, so that all of them run in one program."""
    name, _, part = key.removeprefix(_SECTION).partition(".")
    number = key.startswith(_SECTION) and name in _fields(hyper) and part not in _SCHEDULE_KINDS
    return number and not any(isinstance(value, Mapping) for value in values)


def _hashable(field: str, value: Any) -> Any:
    frozen = FrozenMap(from_number(value)) if isinstance(value, Schedule) else freeze(value)
    try:
        hash(frozen)
    except TypeError:
        raise ConfigError(f"{field}: a value must be plain data, got {value!r}") from None
    return frozen


def points(sweep: Mapping[str, Any]) -> tuple[FrozenMap, ...]:
    """Every combination as {key: value}, the last key varying fastest; one empty point without a sweep."""
    axes = []
    for key, values in sweep.items():
        together = values if key == ZIP else {key: values}
        axes.append([dict(zip(together, row, strict=True)) for row in zip(*together.values(), strict=True)])
    return tuple(FrozenMap({k: v for part in parts for k, v in part.items()}) for parts in itertools.product(*axes))


def columns(sweep: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """{key: its values}, those under `zip` too."""
    return {k: v for key, values in sweep.items() for k, v in (values if key == ZIP else {key: values}).items()}


def static_keys(sweep: Mapping[str, Any], hyper: Any) -> list[str]:
    """The keys that change what is compiled."""
    return [key for key, values in columns(sweep).items() if not is_traced(key, values, hyper)]


def at_point(hyper: Any, point: Mapping[str, Any]) -> Any:
    """`hyper` with the numbers of this point."""
    for key, value in point.items():
        name, _, part = key.removeprefix(_SECTION).partition(".")
        new = getattr(hyper, name).replace(**{part: value}) if part else value
        hyper = dataclasses.replace(hyper, **{name: new})
    return hyper


def to_plain(value: Any) -> Any:
    """A sweep as plain data for files; an object of Python is only named, as `<...>`."""
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return [to_plain(each) for each in value]
    plain = value is None or isinstance(value, str | int | float | bool)
    return value if plain else f"<{type(value).__module__}.{type(value).__qualname__}>"

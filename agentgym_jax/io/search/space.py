"""What a hyperparameter search may choose: the `search` section. Knows nothing of the library that chooses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.io.config.frozen import FrozenMap, freeze
from agentgym_jax.io.config.settings import with_settings
from agentgym_jax.io.sweeps import ranges
from agentgym_jax.io.sweeps import varied as sweep

KINDS = ("uniform", "log_uniform", "int", "log_int", "choice")


def checked(search: Any, experiment: Any) -> FrozenMap:
    """`search` as {key: {kind: (low, high)}} or {key: {"choice": (value, …)}}; a plain list is a choice.

    `experiment` is complete but for its search. Raises ConfigError for a key that is no setting, a kind that is unknown and
    an end or choice that the setting cannot have.
    """
    if not isinstance(search, Mapping):
        raise ConfigError(f"search must be a mapping such as {{algorithm.gamma: {{uniform: [0.9, 1]}}}}, got {search!r}")
    result = {}
    for key, given in ranges.flat(search, KINDS).items():
        sweep.check_key("search", key, experiment)
        result[key] = FrozenMap(_space(f"search.{key}", given))
        if is_number(key, result[key], experiment.hyper):
            sweep.check_number("search", key, experiment.hyper)
        for value in ends(result[key]):
            try:
                with_settings(experiment, {key: value})
            except ValueError as error:
                raise ConfigError(f"search.{key}: {error}") from None
    if result and experiment.sweep:
        raise ConfigError("search: stands beside a sweep; keep one of the two")
    return FrozenMap(result)


def _space(field: str, given: Any) -> dict[str, Any]:
    given = {"choice": given} if isinstance(given, list | tuple) else given
    kinds = list(given) if isinstance(given, Mapping) else []
    if len(kinds) != 1:
        how = "{log_uniform: [1e-4, 1e-2]}, {uniform: [...]}, {int: [1, 8]}, {log_int: [...]} or {choice: [...]}"
        raise ConfigError(f"{field}: must be {how}, got {given!r}")
    check.known_keys(field, kinds, KINDS)
    (kind,) = kinds
    if kind == "choice":
        values = freeze(given[kind])
        if not isinstance(values, tuple) or len(set(values)) < 2 or len(set(values)) < len(values):
            raise ConfigError(f"{field}.choice: must be a list of two or more different values, got {given[kind]!r}")
        return {kind: values}
    low, high = ranges.bounds(field, kind, given[kind])
    if kind.endswith("int"):
        low, high = (check.whole(f"{field}.{kind}", end, least=-(2**53)) for end in (low, high))
    return {kind: (low, high)}


def ends(space: Mapping[str, Any]) -> tuple[Any, ...]:
    """Values that stand for all: both ends of a range, every choice."""
    ((_, values),) = space.items()
    return values


def is_number(key: str, space: Mapping[str, Any], hyper: Any) -> bool:
    """Whether what is searched is a traced number, so that trials which differ in it are members of one population."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in ends(space))
    return numbers and sweep.is_traced(key, ends(space), hyper)

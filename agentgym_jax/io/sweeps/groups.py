"""A sweep as groups: the members of one group share everything static, so that a group is one population and one compile."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.frozen import FrozenMap
from agentgym_jax.io.config.settings import with_settings
from agentgym_jax.io.sweeps import varied as sweep
from agentgym_jax.io.sweeps.ranges import ZIP


class Group(NamedTuple):
    """Members that run together."""

    settings: FrozenMap  # the static settings that all of them share, {dotted key: value}
    experiment: Any  # with these settings; its sweep has numbers alone


def groups(experiment: Any) -> tuple[Group, ...]:
    """The groups of an experiment's sweep, in the order in which they first come up; one without static keys.

    Raises ConfigError where the settings of a group do not fit together, naming them.
    """
    static = sweep.static_keys(experiment.sweep, experiment.hyper)
    if not static:
        return (Group(FrozenMap(), experiment),)
    together: dict[FrozenMap, list[dict[str, Any]]] = {}
    for point in experiment.points:
        settings = FrozenMap({key: point[key] for key in static})
        together.setdefault(settings, []).append({key: value for key, value in point.items() if key not in static})
    return tuple(_group(experiment, settings, numbers) for settings, numbers in together.items())


def _group(experiment: Any, settings: FrozenMap, numbers: list[dict[str, Any]]) -> Group:
    keys = list(numbers[0])
    if ZIP in experiment.sweep:  # what is left of the pairs need not be a product any more
        own = {ZIP: {key: tuple(point[key] for point in numbers) for key in keys}} if keys else {}
    else:
        own = {key: experiment.sweep[key] for key in keys}
    try:
        return Group(settings, with_settings(experiment, settings, sweep=own))
    except ValueError as error:
        raise ConfigError(f"sweep at {in_words(settings)}: {error}") from None


def in_words(settings: Any) -> str:
    """`hidden [64], epochs 4` of {"network.hidden": (64,), "algorithm.epochs": 4}."""
    return ", ".join(f"{key.rpartition('.')[2]} {value_in_words(value)}" for key, value in settings.items())


def value_in_words(value: Any) -> str:
    """A setting's value as a short text, as it would stand in a file."""
    value = sweep.to_plain(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {value_in_words(each)}" for key, each in value.items()) + "}"
    return f"[{', '.join(map(value_in_words, value))}]" if isinstance(value, list) else str(value)

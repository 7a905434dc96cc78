"""Plain values in the types that a section declares; the sections whose schema is a dataclass, and `algorithm`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.io.config.algorithm_section import as_number, default_settings
from agentgym_jax.io.config.files import one_line


def typed(name: str, schema: type, given: Any) -> dict[str, Any]:
    """The given values of one section in the types that the dataclass `schema` declares."""
    given = {} if given is None else check.instance(name, given, Mapping)
    check.known_keys(name, given, [field.name for field in dataclasses.fields(schema)])
    structured = OmegaConf.structured(schema)
    OmegaConf.set_readonly(structured, False)
    for key, value in given.items():
        try:
            OmegaConf.update(structured, key, _whole_as_int(value), merge=False)
        except (OmegaConfBaseException, ValueError) as error:
            raise ConfigError(f"{name}.{key}: {one_line(error)}") from None
    plain: Any = OmegaConf.to_container(structured)
    return {key: plain[key] for key in given}


def typed_algorithm(given: Any) -> dict[str, Any]:
    """The `algorithm` section, split into its name, its static config and its numbers, as `Experiment` takes them."""
    given = {"name": given} if isinstance(given, str) else dict(check.instance("algorithm", given, Mapping))
    name = given.pop("name", "ppo")
    get_algorithm(name)
    return {"name": name, **changed_algorithm(name, *default_settings(name), given)}


def changed_algorithm(name: str, config: Any, hyper: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """{algorithm, hyper}: an algorithm's config and numbers with the plain values `changes`."""
    entry = get_algorithm(name)
    static, numbers = ([field.name for field in dataclasses.fields(kind)] for kind in (entry.config, entry.hyper))
    check.known_keys("algorithm", changes, ["name", *static, *numbers])
    own = typed("algorithm", entry.config, {key: value for key, value in changes.items() if key in static})
    traced = {key: as_number(f"algorithm.{key}", value) for key, value in changes.items() if key in numbers}
    return {"algorithm": dataclasses.replace(config, **own), "hyper": dataclasses.replace(hyper, **traced)}


def _whole_as_int(value: Any) -> Any:
    """1e6 as 1000000, for fields that want whole numbers; the schema makes it a float again where it wants one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_whole_as_int(x) for x in value] if isinstance(value, list) else value

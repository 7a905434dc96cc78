"""Plain data of an experiment file -> `Experiment`, and back.

The keys of `algorithm` depend on its name, so there are two stages: `files` merges plain data, then each section is read
into the schema of its dataclass here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.io import check
from agentgym_jax.io.algorithm_section import as_number, default_settings, from_number
from agentgym_jax.io.experiment import EnvConfig, EvalConfig, Experiment, LogConfig, TrainConfig
from agentgym_jax.io.files import load_plain, one_line
from agentgym_jax.io.frozen import thaw
from agentgym_jax.models.config import NetworkConfig

_SCHEMAS = {"network": NetworkConfig, "train": TrainConfig, "eval": EvalConfig, "log": LogConfig}


def load_experiment(config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Experiment:
    """The `Experiment` of a config name (`gymnax/cartpole_ppo`), a .yaml or .json file, or a mapping.

    `overrides` are `key=value` with dotted keys and YAML values, `algorithm.gamma=0.98`. Raises ValueError, in one line, for
    an unknown name or key (with the nearest), a value of the wrong type and whatever `Experiment` refuses.
    """
    return from_plain(load_plain(config, overrides))


def from_plain(plain: Mapping[str, Any]) -> Experiment:
    """Plain data by sections -> `Experiment`; what is absent keeps its default."""
    if plain.get("env") is None:
        raise ConfigError("env: is missing; write env: {id: gymnax/CartPole-v1}")
    env = {"id": plain["env"]} if isinstance(plain["env"], str) else check.instance("env", plain["env"], Mapping)
    if env.get("id") is None:
        raise ConfigError("env.id: is missing; `agentgym envs` lists the environments")
    if str(env["id"]).startswith("<"):
        raise ConfigError(f"env.id: {env['id']} was an object of Python, which no file holds; pass the Experiment itself")
    sections = {name: schema(**_values(name, schema, plain.get(name))) for name, schema in _SCHEMAS.items()}
    rest = {name: plain[name] for name in ("seeds", "sweep") if plain.get(name) is not None}
    return Experiment(
        env=EnvConfig(**_values("env", EnvConfig, env)), **_algorithm(plain.get("algorithm") or "ppo"), **sections, **rest
    )


def to_plain(experiment: Experiment) -> dict[str, Any]:
    """Every setting as plain data, which `from_plain` reads back to an equal experiment.

    What was built in Python (an `Env` object, models) is only named, as `<...>`, and cannot be read back.
    """
    env, hyper, network = _section(experiment.env), experiment.hyper, experiment.network
    if not isinstance(env["id"], str):
        env["id"] = f"<{type(env['id']).__module__}.{type(env['id']).__qualname__}>"
    numbers = {field.name: from_number(getattr(hyper, field.name)) for field in dataclasses.fields(hyper)}
    return {
        "env": env,
        "algorithm": {"name": experiment.name, **_section(experiment.algorithm), **numbers},
        "network": dict.fromkeys(network, "<Model>") if isinstance(network, Mapping) else _section(network),
        "train": _section(experiment.train),
        "eval": _section(experiment.eval),
        "log": _section(experiment.log),
        "seeds": list(experiment.seeds),
        "sweep": thaw(experiment.sweep),
    }


def to_yaml(experiment: Experiment) -> str:
    """The resolved file that is saved with a run."""
    return OmegaConf.to_yaml(OmegaConf.create(to_plain(experiment)))


def _section(config: Any) -> dict[str, Any]:
    return {field.name: thaw(getattr(config, field.name)) for field in dataclasses.fields(config)}


def _algorithm(given: Any) -> dict[str, Any]:
    """The `algorithm` section, split into its static config and its numbers."""
    given = {"name": given} if isinstance(given, str) else dict(check.instance("algorithm", given, Mapping))
    name = given.pop("name", "ppo")
    entry = get_algorithm(name)
    config, hyper = default_settings(name)
    static, numbers = ([field.name for field in dataclasses.fields(kind)] for kind in (entry.config, entry.hyper))
    check.known_keys("algorithm", given, ["name", *static, *numbers])
    changed = _values("algorithm", entry.config, {key: value for key, value in given.items() if key in static})
    traced = {key: as_number(f"algorithm.{key}", value) for key, value in given.items() if key in numbers}
    return {
        "name": name,
        "algorithm": dataclasses.replace(config, **changed),
        "hyper": dataclasses.replace(hyper, **traced),
    }


def _values(name: str, schema: type, given: Any) -> dict[str, Any]:
    """The given values of one section in the types that the dataclass `schema` declares."""
    given = {} if given is None else check.instance(name, given, Mapping)
    check.known_keys(name, given, [field.name for field in dataclasses.fields(schema)])
    typed = OmegaConf.structured(schema)
    OmegaConf.set_readonly(typed, False)
    for key, value in given.items():
        try:
            OmegaConf.update(typed, key, _whole_as_int(value), merge=False)
        except (OmegaConfBaseException, ValueError) as error:
            raise ConfigError(f"{name}.{key}: {one_line(error)}") from None
    plain: Any = OmegaConf.to_container(typed)
    return {key: plain[key] for key in given}


def _whole_as_int(value: Any) -> Any:
    """1e6 as 1000000, for fields that want whole numbers; the schema makes it a float again where it wants one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_whole_as_int(x) for x in value] if isinstance(value, list) else value

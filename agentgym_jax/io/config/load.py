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

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.io.config.algorithm_section import from_number
from agentgym_jax.io.config.experiment import EnvConfig, EvalConfig, Experiment, LogConfig, TrainConfig
from agentgym_jax.io.config.files import load_plain
from agentgym_jax.io.config.frozen import thaw
from agentgym_jax.io.config.typed import typed, typed_algorithm
from agentgym_jax.io.sweeps import varied as sweep
from agentgym_jax.models.config import NetworkConfig
from envs_jax.core import Env

_SCHEMAS = {"network": NetworkConfig, "train": TrainConfig, "eval": EvalConfig, "log": LogConfig}


def load_experiment(config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Experiment:
    """The `Experiment` of a config name (`gymnax/cartpole_ppo`), a .yaml or .json file, or a mapping.

    `overrides` are `key=value` with dotted keys and YAML values, `algorithm.gamma=0.98`. Raises ValueError, in one line, for
    an unknown name or key (with the nearest), a value of the wrong type and whatever `Experiment` refuses. In a mapping `env`
    or `env.id` may be an `Env` object.
    """
    config, env = _without_object(config)
    experiment = from_plain(load_plain(config, overrides))
    return experiment if env is None else dataclasses.replace(experiment, env=dataclasses.replace(experiment.env, id=env))


def _without_object(config: Any) -> tuple[Any, Env | None]:
    """The settings as plain data, with some id in the place of an `Env` object, and the object."""
    section = config.get("env") if isinstance(config, Mapping) else None
    env = section.get("id") if isinstance(section, Mapping) else section
    if not isinstance(env, Env):
        return config, None
    return {**config, "env": {**(section if isinstance(section, Mapping) else {}), "id": "probe/constant"}}, env


def from_plain(plain: Mapping[str, Any]) -> Experiment:
    """Plain data by sections -> `Experiment`; what is absent keeps its default."""
    if plain.get("env") is None:
        raise ConfigError("env: is missing; write env: {id: gymnax/CartPole-v1}")
    env = {"id": plain["env"]} if isinstance(plain["env"], str) else check.instance("env", plain["env"], Mapping)
    if env.get("id") is None:
        raise ConfigError("env.id: is missing; `agentgym envs` lists the environments")
    if str(env["id"]).startswith("<"):
        raise ConfigError(f"env.id: {env['id']} was an object of Python, which no file holds; pass the Experiment itself")
    sections = {name: schema(**typed(name, schema, plain.get(name))) for name, schema in _SCHEMAS.items()}
    rest = {name: plain[name] for name in ("seeds", "sweep", "search") if plain.get(name) is not None}
    return Experiment(
        env=EnvConfig(**typed("env", EnvConfig, env)), **typed_algorithm(plain.get("algorithm") or "ppo"), **sections, **rest
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
        "sweep": sweep.to_plain(experiment.sweep),
        "search": thaw(experiment.search),
    }


def to_yaml(experiment: Experiment) -> str:
    """The resolved file that is saved with a run."""
    return OmegaConf.to_yaml(OmegaConf.create(to_plain(experiment)))


def _section(config: Any) -> dict[str, Any]:
    return {field.name: thaw(getattr(config, field.name)) for field in dataclasses.fields(config)}

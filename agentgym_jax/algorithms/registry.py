"""Algorithms by name. A name is an entry: a file's functions plus defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentgym_jax.algorithms import action_values, ppo, pqn, qlearning
from envs_jax.names import unknown


class Entry(NamedTuple):
    """What the framework needs to build an algorithm from a configuration."""

    config: type  # frozen, hashable dataclass: what is static
    hyper: type  # flax.struct dataclass of numbers or schedules: what is traced
    networks: Callable[..., dict[str, Any]]  # (network config, spec, config) -> {role: Model}
    make: Callable[..., Any]  # (spec, config, models, sizes, across) -> Algorithm
    defaults: Mapping[str, Any] = {}  # values of `config` that this name presets
    ranges: Mapping[str, tuple[float, float]] = {}  # of `hyper`, ends included; a number without one may be any


_PPO = Entry(ppo.PPOConfig, ppo.PPOHyper, ppo.networks, ppo.make, ranges=ppo.RANGES)
_Q = Entry(qlearning.QConfig, qlearning.QHyper, action_values.networks, qlearning.make, ranges=qlearning.RANGES)
_PQN = Entry(pqn.PQNConfig, pqn.PQNHyper, action_values.networks, pqn.make, ranges=pqn.RANGES)
_ENTRIES: dict[str, Entry] = {
    "ppo": _PPO,
    "ippo": _PPO,
    "mappo": _PPO._replace(defaults={"critic": "central"}),
    "dqn": _Q,
    "iql": _Q,
    "vdn": _Q._replace(defaults={"mixer": "sum"}),
    "qmix": _Q._replace(defaults={"mixer": "hypernet"}),
    "pqn": _PQN,
    "pqn_vdn": _PQN._replace(defaults={"mixer": "sum"}),
}


def algorithm_names() -> list[str]:
    """All names in the order of their registration."""
    return list(_ENTRIES)


def get_algorithm(name: str) -> Entry:
    """The entry of a name; ValueError with the nearest names where there is none."""
    if not isinstance(name, str) or name not in _ENTRIES:
        raise unknown("algorithm", name, algorithm_names(), "(`agentgym algorithms` lists them; register_algorithm adds one)")
    return _ENTRIES[name]


def register_algorithm(name: str, entry: Entry) -> None:
    """Makes `algorithm.name: name` mean this entry; ValueError where the name is taken."""
    if not isinstance(name, str) or not isinstance(entry, Entry):
        raise ValueError(f"register_algorithm needs a name and an Entry(config, hyper, networks, make), got {name!r}, {entry}")
    if name in _ENTRIES:
        raise ValueError(f"algorithm {name!r} is registered already; choose another name")
    _ENTRIES[name] = entry

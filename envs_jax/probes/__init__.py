"""Probe environments: each takes a second to learn and has a known right value, so that what a learner gets wrong shows.

A probe is a class with the length of its episodes, spaces, what is drawn at the start (`draw`), what is shown (`show`) and
what is paid (`pay`); its docstring says what is right. Where they are drawn, cues are −1 or 1 with equal odds.
"""

from __future__ import annotations

from typing import Any

from envs_jax.names import check_arguments, unknown
from envs_jax.probes.agents import Individual, Respawn, Team, TwoGroups
from envs_jax.probes.base import Params, Probe
from envs_jax.probes.single import (
    Constant,
    Continuous,
    Discounted,
    Image,
    Masked,
    Memory,
    MultiDiscreteActions,
    Observation,
    Policy,
    PolicyObservation,
    Truncation,
)

PROBES: dict[str, type[Probe]] = {
    "constant": Constant,
    "observation": Observation,
    "discounted": Discounted,
    "policy": Policy,
    "policy_observation": PolicyObservation,
    "truncation": Truncation,
    "memory": Memory,
    "continuous": Continuous,
    "masked": Masked,
    "multi_discrete": MultiDiscreteActions,
    "image": Image,
    "team": Team,
    "individual": Individual,
    "two_groups": TwoGroups,
    "respawn": Respawn,
}


def make(name: str, **kwargs: Any) -> Probe:
    """The probe `name`. Raises ValueError for an unknown name or argument, with the nearest."""
    if name not in PROBES:
        raise unknown("probe", name, PROBES)
    check_arguments(f"probe/{name}", PROBES[name].__init__, kwargs)
    return PROBES[name](**kwargs)


__all__ = ["PROBES", "Memory", "Params", "Policy", "Probe", "make"]

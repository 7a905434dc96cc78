"""The numbers of the physics that a domain may vary."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct


@struct.dataclass
class Params:
    """Numbers of brax's `sys`, float32. Give an episode the same ones from its start to its end: its state holds some.

    What MuJoCo derives from masses when it reads a model, the inertia of a link about its own centre above all, stays.
    """

    gravity: jax.Array  # [3], m/s²
    mass: jax.Array  # [links], kg, as the backend counts it: `spring` and `positional` make every link of some robots 1 kg
    friction: jax.Array  # [geoms], of sliding; a contact has the larger one of its two geoms
    gear: jax.Array  # [actuators]: force or torque for each unit of control


def read(environment: Any) -> Params:
    """The numbers of one of brax's environments."""
    sys = environment.sys
    mass = sys.link.inertia.mass
    if environment.backend in ("spring", "positional"):
        mass = mass ** (1 - sys.spring_mass_scale)
    found = (sys.gravity, mass, sys.geom_friction[:, 0], sys.actuator.gear)
    return Params(*(jnp.asarray(leaf, jnp.float32) for leaf in found))


def write(sys: Any, params: Params, default: Params) -> Any:
    """A copy of the library's system with those numbers that are not the very arrays of `default`, its own.

    The others stay the library's: a program of a fixed task has them as constants and is the library's own.
    """
    writers = {"gravity": _gravity, "mass": _mass, "friction": _friction, "gear": _gear}
    for name, writer in writers.items():
        value = getattr(params, name)
        if value is not getattr(default, name):
            sys = sys.tree_replace(writer(sys, value))
    return sys


# `mjx` reads MuJoCo's own field of each number; rewards, observations and the other backends read brax's.
def _gravity(sys: Any, value: jax.Array) -> dict[str, Any]:
    return {"gravity": value, "opt.gravity": value}


def _mass(sys: Any, value: jax.Array) -> dict[str, Any]:
    bodies = sys.body_mass.at[1:].set(value)  # body 0 is the world
    return {"link.inertia.mass": value, "spring_mass_scale": jnp.float32(0), "body_mass": bodies}


def _friction(sys: Any, value: jax.Array) -> dict[str, Any]:
    return {"geom_friction": sys.geom_friction.at[:, 0].set(value)}


def _gear(sys: Any, value: jax.Array) -> dict[str, Any]:
    return {"actuator.gear": value, "actuator_gear": sys.actuator_gear.at[:, 0].set(value)}

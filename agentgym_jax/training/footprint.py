"""How much memory a population takes, reckoned from shapes before anything compiles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agentgym_jax.training.loop import Loop, first_rollout
from agentgym_jax.training.parallel import jaxpr_on_devices, shapes_on_devices
from agentgym_jax.types import Clock

# What XLA holds at its fullest, fitted to measurements (docs/decisions.md): the rollout or the batch, a part of all that
# `learn` makes on its way through the networks and back, and some vectors as long as the parameters.
_KEPT_AT_ONCE = 0.42
_VECTORS = 3
_KEPT = {"dot_general", "conv_general_dilated", "concatenate"}  # operations whose results XLA does not fuse away


class Footprint(NamedTuple):
    """Bytes of one member on one device."""

    state: int  # between calls: learner, best policy, environments, memory
    work: int  # in a call, on top of it

    def of(self, members: int, at_once: int) -> int:
        """Bytes of a device that holds so many members and works on some of them at a time."""
        return members * self.state + at_once * self.work


def footprint(loop: Loop, key: jax.Array, hyper: Any) -> Footprint:
    """The footprint of a member with this key and these numbers; nothing is run."""

    def begin(key, hyper):
        state = loop.init(key, hyper)
        trajectory = first_rollout(loop.acting, state.learner, hyper, state.actor, state.tasks, key)
        batch = loop.acting.algorithm.memory.sample(state.memory, trajectory, key, Clock(jnp.int32(0), jnp.int32(1)))
        return state, trajectory, batch

    state, trajectory, batch = jax.tree.map(_of_one_device, shapes_on_devices(loop, begin, key, hyper))

    def learn(learner, batch, key):
        return loop.acting.algorithm.learn(learner, hyper, batch, key, Clock(jnp.int32(0), jnp.int32(1)))

    learning = kept_bytes(jaxpr_on_devices(loop, learn, state.learner, batch, key))
    data = max(size_in_bytes(trajectory), size_in_bytes(batch.steps))
    return Footprint(size_in_bytes(state), int(data + _KEPT_AT_ONCE * learning) + _VECTORS * size_in_bytes(state.learner))


def _of_one_device(x: Any) -> jax.ShapeDtypeStruct:
    """The shape without its first axis."""
    return jax.ShapeDtypeStruct(x.shape[1:], x.dtype)


def size_in_bytes(tree: Any) -> int:
    """Bytes of all leaves together; a typed key counts as its data."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(tree))


def kept_bytes(jaxpr: Any) -> int:
    """Bytes of the results of matmuls, convolutions and concatenations; of branches the larger one."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name in _KEPT:
            total += size_in_bytes([variable.aval for variable in equation.outvars])
        for branches in _inner(equation):
            total += max(kept_bytes(branch) for branch in branches)
    return total


def _inner(equation: Any) -> Iterator[list[Any]]:
    """The programs inside an operation, each with its alternatives."""
    for value in equation.params.values():
        values = value if isinstance(value, list | tuple) else (value,)
        programs = [getattr(each, "jaxpr", each) for each in values if hasattr(each, "jaxpr") or hasattr(each, "eqns")]
        if programs:
            yield programs


def in_words(size: float) -> str:
    """`1.2 GB` of a number of bytes."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size >= 1000.0:
            size, unit = size / 1000.0, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"

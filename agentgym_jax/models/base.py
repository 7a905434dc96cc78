"""What every network is to the rest of the framework: three pure functions.

A feed-forward network is a recurrent one with an empty carry, so there is one signature and no second code path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Model(NamedTuple):
    """A network on agents: `inputs` are [T, B, A, ...], `reset` is bool [T, B, A]."""

    init: Callable[[jax.Array], Any]  # (key) -> params
    carry: Callable[[tuple[int, ...]], Any]  # (batch_shape, agents included) -> the empty carry; () when feed-forward
    apply: Callable[..., tuple[Any, Any]]  # (params, carry, inputs, reset) -> outputs [T, ...], carries [T, ...]


def apply_once(model: Model, params: Any, carry: Any, inputs: Any, reset: jax.Array) -> tuple[Any, Any]:
    """One step without the time axis: inputs [B, A, ...] -> outputs [B, A, ...], the carry after it."""
    add, drop = (lambda x: x[None]), (lambda x: x[0])
    outputs, carries = model.apply(params, carry, jax.tree.map(add, inputs), reset[None])
    return jax.tree.map(drop, outputs), jax.tree.map(drop, carries)


def apply_next(model: Model, params: Any, carries: Any, inputs: Any, reset: jax.Array) -> Any:
    """The network on the *next* observation of every step, from the carry after that step: outputs [T, B, A, ...].

    All T·B rows go through in one batch, as B' = T·B windows of one step; so a value never comes from the far side of an
    episode's end. `reset` (usually all False) is bool [T, B, A].
    """
    length, batch = reset.shape[:2]
    flat = jax.tree.map(lambda x: x.reshape(length * batch, *x.shape[2:]), (carries, inputs, reset))
    outputs, _ = apply_once(model, params, *flat)
    return jax.tree.map(lambda x: x.reshape(length, batch, *x.shape[1:]), outputs)


def is_recurrent(model: Model) -> bool:
    """Whether the network remembers: its carry has leaves."""
    return bool(jax.tree.leaves(model.carry((1, 1))))

"""Several members in one program: vmapped on accelerators, one after another inside one program on CPU.

XLA's CPU backend can hang in training that is vmapped over members (see docs/decisions.md) and gains nothing from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

MODES = ("auto", "vmap", "map")


def resolve_mode(mode: str, platform: str) -> str:
    """`auto` is `map` on CPU and `vmap` elsewhere."""
    if mode == "auto":
        return "map" if platform == "cpu" else "vmap"
    return mode


def over_members(function: Callable[..., tuple[Any, Any]], mode: str, has_state: bool = True) -> Callable[..., Any]:
    """`function(state, member inputs, shared) -> (state, outputs)` of one member, for members stacked on a leading axis.

    `map` keeps the stacked states as a loop's carry and writes each member back in place, so that the memory of a large
    replay is never held twice. `shared` (the clock) is the same for all and never mapped. With `has_state` False the
    function is `function(member inputs, shared) -> outputs`.
    """
    if not has_state:
        stateless = over_members(lambda state, inputs, shared: (state, function(inputs, shared)), mode)
        return lambda inputs, shared: stateless((), inputs, shared)[1]
    if mode == "vmap":
        return jax.vmap(function, in_axes=(0, 0, None))
    return lambda states, inputs, shared: _one_by_one(function, states, inputs, shared)


def _one_by_one(function: Callable[..., tuple[Any, Any]], states: Any, inputs: Any, shared: Any) -> tuple[Any, Any]:
    count = jax.tree.leaves((states, inputs))[0].shape[0]
    if count == 1:
        state, outputs = function(*jax.tree.map(lambda x: x[0], (states, inputs)), shared)
        return jax.tree.map(lambda x: x[None], (state, outputs))

    def body(states, each):
        index, member_inputs = each
        state = jax.tree.map(lambda x: jax.lax.dynamic_index_in_dim(x, index, keepdims=False), states)
        state, outputs = function(state, member_inputs, shared)
        states = jax.tree.map(lambda x, new: jax.lax.dynamic_update_index_in_dim(x, new, index, 0), states, state)
        return states, outputs

    return jax.lax.scan(body, states, (jnp.arange(count, dtype=jnp.int32), inputs))

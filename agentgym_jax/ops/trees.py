"""Small functions on pytrees of arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def select(condition: jax.Array, on_true: Any, on_false: Any) -> Any:
    """Leafwise `where` with a condition on the leading axes: bool [N] picks whole rows of leaves [N, ...]."""

    def pick(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.where(condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim)), x, y)

    return jax.tree.map(pick, on_true, on_false)


def strong(tree: Any) -> Any:
    """The tree with every leaf a jax array of a strong dtype, so that a second call finds the types of the first."""

    def leaf(x: Any) -> jax.Array:
        x = jnp.asarray(x)
        weak = getattr(x, "weak_type", False)  # typed keys have no such attribute
        return jax.lax.convert_element_type(x, x.dtype) if weak else x

    return jax.tree.map(leaf, tree)


def flatten_rows(tree: Any, axes: int = 2) -> Any:
    """Merges the first `axes` axes of every leaf: [T, N, ...] -> [T·N, ...]."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), tree)


def all_finite(tree: Any) -> jax.Array:
    """bool []: no leaf holds a NaN or an infinity."""
    leaves = [jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.all(jnp.stack(leaves)) if leaves else jnp.bool_(True)

"""What the tours of TSP and CVRP have in common: when each node was visited, and how far it was."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def last_visits(trajectory: jax.Array, count: jax.Array, num_nodes: int) -> jax.Array:
    """When each node was last visited: float32 [num_nodes], the first stop 1 / L, the L-th 1, and 0 for never.

    Args:
        trajectory: int [L], the nodes in the order of the visits.
        count: int [], how many entries of it are filled.
        num_nodes: how many nodes there are.
    """
    stops = jnp.arange(len(trajectory))
    here = (trajectory[:, None] == jnp.arange(num_nodes)[None]) & (stops < count)[:, None]
    return jnp.max(jnp.where(here, ((stops + 1) / len(trajectory))[:, None], 0.0), axis=0)


def tour_length(coordinates: jax.Array, trajectory: jax.Array, count: jax.Array, closed: jax.Array | bool) -> jax.Array:
    """The length travelled over the first `count` stops, float32 []; `closed` adds the way from the last entry to the first.

    Args:
        coordinates: float32 [num_nodes, 2].
        trajectory: int [L], the nodes in the order of the visits.
        count: int [], up to L + 1: the stop after the last entry is the first entry again.
        closed: bool [], whether the tour is complete and returns by itself.
    """
    stops = coordinates[trajectory]
    legs = jnp.linalg.norm(stops - jnp.roll(stops, -1, axis=0), axis=-1)
    return jnp.sum(jnp.where((jnp.arange(len(trajectory)) < count - 1) | closed, legs, 0.0))

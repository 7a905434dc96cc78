"""What is special about agents that share one reward. All arrays have the agent axis A last."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def rows_with_value(alive: jax.Array) -> jax.Array:
    """bool [..., A]: the rows that teach a team's value. Those alive; every row while nobody is but the episode goes on.

    Without the second part that state would never be learnt, and be worth whatever the network starts with.
    """
    return alive | ~jnp.any(alive, axis=-1, keepdims=True)


def newcomers(alive: jax.Array, discount: jax.Array, next_alive: jax.Array) -> jax.Array:
    """bool [..., A]: the next observation is that of a new agent, in a slot that was free or whose agent died with this step.

    `discount` is each agent's own. A hidden state must not outlive its agent, in acting and in values of next observations.
    """
    return next_alive & (~alive | (discount == 0))


def team_values(values: jax.Array, alive: jax.Array) -> jax.Array:
    """Values [..., A] where a dead agent's row is the mean over its living mates (over all when nobody lives)."""
    weight = jnp.where(rows_with_value(alive), 1.0, 0.0)
    mean = jnp.sum(values * weight, -1, keepdims=True) / jnp.sum(weight, -1, keepdims=True)
    return jnp.where(alive, values, mean)

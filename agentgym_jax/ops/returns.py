"""Returns and advantages over time-major arrays, exact through every kind of episode end.

All arrays are [T, ...]. `discount` is γ times the environment's discount (0 at a true end), `next_values` the values of each
step's own next observation, and `cut` marks where a trace must not pass: the last step of an episode of either kind, and the
step before an agent's slot is used anew. Bootstrapping (discount) and tracing (cut) are two different questions.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def trace_cuts(last: jax.Array, reset: jax.Array) -> jax.Array:
    """Where a trace ends after step t: the episode ended with it, or row t + 1 is the first of a new agent.

    Args:
      last: bool [T, N]; reset: bool [T, N, A], whether row t is an agent's first.

    Returns:
      bool [T, N, A].
    """
    renewed = jnp.concatenate([reset[1:], jnp.zeros_like(reset[:1])])
    return last[..., None] | renewed


def lambda_returns(reward, discount, next_values, cut, trace_decay) -> jax.Array:
    """λ-returns: G[t] = r[t] + d[t] · ((1 − λ) v'[t] + λ G[t + 1]); after a cut and at the window's end G[t + 1] is v'[t].

    Sutton & Barto (2018), eq. 12.18–12.19. Args are [T, ...]; `trace_decay` (λ) is a scalar.
    """

    def step(future, inputs):
        r, d, v, stop = inputs
        future = jnp.where(stop, v, (1.0 - trace_decay) * v + trace_decay * future)
        target = r + d * future
        return target, target

    return jax.lax.scan(step, next_values[-1], (reward, discount, next_values, cut), reverse=True)[1]


def gae(reward, discount, values, next_values, cut, trace_decay) -> tuple[jax.Array, jax.Array]:
    """Generalised advantage estimation (Schulman et al. 2016, eq. 16) and the value targets that go with it.

    δ[t] = r[t] + d[t] v'[t] − v[t];  A[t] = δ[t] + d[t] λ (1 − cut[t]) A[t + 1];  target = A + v.

    Args are [T, ...]; `trace_decay` (λ) is a scalar. Returns advantages and targets, [T, ...].
    """
    delta = reward + discount * next_values - values
    decay = discount * trace_decay * jnp.where(cut, 0.0, 1.0)

    def step(advantage, inputs):
        error, keep = inputs
        advantage = error + keep * advantage
        return advantage, advantage

    advantages = jax.lax.scan(step, jnp.zeros_like(delta[0]), (delta, decay), reverse=True)[1]
    return advantages, advantages + values

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
        target = jnp.where(d == 0, r, r + d * future)  # nothing of a future that is worth nothing, not even its NaN
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


def n_step(reward, discount, cut) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The return of a window's first row, from its n = L rows or fewer: it stops after the first row k that ends something.

    G = Σ_{t ≤ k} (Π_{i < t} d[i]) r[t], to be completed by (Π_{i ≤ k} d[i]) · v'[k], the value of row k's own next observation
    (Watkins 1989; Sutton & Barto 2018, eq. 7.1). Row k is the first with a cut (an episode's end of either kind, or a slot's
    reuse) or with discount 0 (a true end or a death: nothing is added), else the last. Through a time limit d[k] is γ.

    Args are [L, ...]; `discount` is γ times the environment's.

    Returns:
      G [...], the discount of the value [...], and k, int32 [...]: where to find that next observation.
    """
    goes_on = ~(cut | (discount == 0))[:-1]
    reached = jnp.concatenate([jnp.ones_like(cut[:1]), jnp.cumprod(goes_on, axis=0, dtype=jnp.int32) > 0])
    before = jnp.concatenate([jnp.ones_like(discount[:1]), jnp.cumprod(discount[:-1], axis=0)])
    index = jnp.sum(reached, axis=0, dtype=jnp.int32) - 1
    value = jnp.sum(jnp.where(reached, before * reward, 0.0), axis=0)
    weight = jnp.take_along_axis(before * discount, index[None], axis=0)[0]
    return value, weight, index

"""Losses and diagnostics as weighted means over rows; `across` adds up the devices that share a batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from agentgym_jax.types import Across


def weighted_mean(x: jax.Array, weight: jax.Array, across: Across = Across()) -> jax.Array:
    """Σ w x / Σ w over all axes and devices; 0 when no row weighs. `x` and `weight` have one shape."""
    total = across.mean(jnp.sum(jnp.where(weight > 0, x, 0.0) * weight))
    return total / jnp.maximum(across.mean(jnp.sum(weight)), 1e-8)


def standardise(x: jax.Array, weight: jax.Array, across: Across = Across()) -> jax.Array:
    """`x` with the weighted mean taken away, over its weighted standard deviation (+ 1e-8)."""
    x = jnp.where(weight > 0, x, 0.0)  # so that garbage gives no NaN, in the derivative either
    centred = x - weighted_mean(x, weight, across)
    return centred / (jnp.sqrt(weighted_mean(jnp.square(centred), weight, across) + 1e-16) + 1e-8)


def clipped_surrogate(log_ratio: jax.Array, advantage: jax.Array, clip: jax.Array) -> jax.Array:
    """PPO's loss of each row: −min(ρ A, clip(ρ, 1 ± ε) A) (Schulman et al. 2017, eq. 7)."""
    ratio = jnp.exp(log_ratio)
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage)


def clipped_value_loss(value: jax.Array, old_value: jax.Array, target: jax.Array, clip: jax.Array) -> jax.Array:
    """½ max((v − G)², (v_old + clip(v − v_old, ±ε) − G)²) of each row, as in OpenAI's PPO."""
    clipped = old_value + jnp.clip(value - old_value, -clip, clip)
    return 0.5 * jnp.maximum(jnp.square(value - target), jnp.square(clipped - target))


def huber(error: jax.Array) -> jax.Array:
    """½ δ² up to |δ| = 1, |δ| − ½ beyond (Huber 1964), of each entry."""
    size = jnp.abs(error)
    return jnp.where(size <= 1.0, 0.5 * jnp.square(error), size - 0.5)


def explained_variance(prediction: jax.Array, target: jax.Array, weight: jax.Array, across: Across = Across()) -> jax.Array:
    """1 − Var[target − prediction] / Var[target] over the rows that weigh; 0 when the target does not vary."""

    def variance(x: jax.Array) -> jax.Array:
        x = jnp.where(weight > 0, x, 0.0)
        return weighted_mean(jnp.square(x - weighted_mean(x, weight, across)), weight, across)

    spread = variance(target)
    return jnp.where(spread > 1e-12, 1.0 - variance(target - prediction) / jnp.maximum(spread, 1e-12), 0.0)

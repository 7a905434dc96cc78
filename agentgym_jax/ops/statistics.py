"""Running moments, merged exactly over batches and devices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.types import Across


@struct.dataclass
class Moments:
    """Count, mean and (population) variance of each feature, all float32 [F]."""

    count: jax.Array
    mean: jax.Array
    variance: jax.Array


def no_moments(shape: tuple[int, ...]) -> Moments:
    """Moments before any data: mean 0, variance 1, count 0."""
    return Moments(jnp.zeros(shape, jnp.float32), jnp.zeros(shape, jnp.float32), jnp.ones(shape, jnp.float32))


def update_moments(old: Moments, x: jax.Array, weight: jax.Array, across: Across = Across()) -> Moments:
    """Merges a weighted batch into `old` (Chan, Golub & LeVeque 1983): the batch's mean first, then the spread around it.

    Args:
      x: [rows..., *features] with `old.mean.shape == features`; weight: float32 [rows...].
    """
    features = old.mean.ndim
    weight = weight.reshape(weight.shape + (1,) * features)
    x = jnp.where(weight > 0, x, 0)  # garbage · 0 may be NaN
    axes = tuple(range(x.ndim - features))
    count = across.mean(jnp.sum(jnp.broadcast_to(weight, x.shape), axes))
    safe = jnp.maximum(count, 1e-8)
    mean = across.mean(jnp.sum(x * weight, axes)) / safe
    centred = x - mean.reshape((1,) * len(axes) + mean.shape)
    variance = across.mean(jnp.sum(jnp.square(centred) * weight, axes)) / safe
    count = count * across.size
    total = old.count + count
    part = count / jnp.maximum(total, 1e-8)
    delta = mean - old.mean
    spread = old.variance * (1.0 - part) + variance * part + jnp.square(delta) * part * (1.0 - part)
    return Moments(total, old.mean + delta * part, jnp.where(total > 0, spread, old.variance))


def standard_deviation(moments: Moments) -> jax.Array:
    """√(variance + 1e-8); 1 while fewer than two rows were seen."""
    return jnp.where(moments.count > 1, jnp.sqrt(moments.variance + 1e-8), 1.0)

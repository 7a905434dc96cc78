"""From an observation to features: every kind of array becomes numbers, and dense layers follow."""

from __future__ import annotations

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from envs_jax.spaces import Discrete, MultiDiscrete, Space

ACTIVATIONS = {"tanh": nn.tanh, "relu": nn.relu, "silu": nn.silu, "swish": nn.silu, "gelu": nn.gelu, "elu": nn.elu}
AGENT_AXES = 3  # T, B, A lead every input of a model
NEAR_ZERO = 0.01  # the gain of a kernel whose outputs are to start near 0


def dense(features: int, scale: float, name: str | None = None, dtype: Any = jnp.float32, bias: float = 0.0) -> nn.Dense:
    """A dense layer with an orthogonal kernel of this gain and a constant bias; `dtype` is that of the product, not of them."""
    kernel, constant = nn.initializers.orthogonal(scale), nn.initializers.constant(bias)
    return nn.Dense(features, kernel_init=kernel, bias_init=constant, name=name, dtype=dtype)


def numbers(x: jax.Array, space: Space) -> jax.Array:
    """[T, B, A, ...] of `space` -> float32 [T, B, A, ...].

    Integers of Discrete and MultiDiscrete spaces become one-hot vectors. Bytes are pixel intensities 0 … 255 and are scaled
    to [0, 1], here and nowhere else.
    """
    if isinstance(space, Discrete | MultiDiscrete):
        return jax.nn.one_hot(x, space.n if isinstance(space, Discrete) else max(space.nvec), dtype=jnp.float32)
    return x.astype(jnp.float32) * (1.0 / 255.0 if x.dtype == jnp.uint8 else 1.0)


def vector(x: jax.Array, space: Space) -> jax.Array:
    """The same numbers with all axes after A laid side by side, float32 [T, B, A, F]."""
    x = numbers(x, space)
    return x.reshape(*x.shape[:AGENT_AXES], -1)


class MLP(nn.Module):
    """Dense layers, each followed by layer norm if wanted and the activation: [..., F] -> [..., hidden[-1]]."""

    hidden: tuple[int, ...]
    activation: str
    layer_norm: bool = False
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for size in self.hidden:
            x = dense(size, math.sqrt(2.0), dtype=self.dtype)(x)
            x = nn.LayerNorm(dtype=self.dtype)(x) if self.layer_norm else x
            x = ACTIVATIONS[self.activation](x)
        return x

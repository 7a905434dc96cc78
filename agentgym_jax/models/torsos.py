"""From an observation to features: every kind of array becomes one float vector, and dense layers follow."""

from __future__ import annotations

import math

import flax.linen as nn
import jax
import jax.numpy as jnp

from envs_jax.spaces import Discrete, MultiDiscrete, Space

ACTIVATIONS = {"tanh": nn.tanh, "relu": nn.relu, "silu": nn.silu, "swish": nn.silu, "gelu": nn.gelu, "elu": nn.elu}
AGENT_AXES = 3  # T, B, A lead every input of a model


def dense(features: int, scale: float, name: str | None = None) -> nn.Dense:
    """A dense layer with an orthogonal kernel of this gain and zero bias."""
    return nn.Dense(features, kernel_init=nn.initializers.orthogonal(scale), name=name)


def vector(x: jax.Array, space: Space) -> jax.Array:
    """[T, B, A, ...] of `space` -> float32 [T, B, A, F].

    Integers of Discrete and MultiDiscrete spaces become one-hot vectors. Bytes are pixel intensities 0 … 255 and are scaled
    to [0, 1], here and nowhere else. All axes after A are laid side by side.
    """
    if isinstance(space, Discrete | MultiDiscrete):
        x = jax.nn.one_hot(x, space.n if isinstance(space, Discrete) else max(space.nvec), dtype=jnp.float32)
    scale = 1.0 / 255.0 if x.dtype == jnp.uint8 else 1.0
    return x.reshape(*x.shape[:AGENT_AXES], -1).astype(jnp.float32) * scale


class MLP(nn.Module):
    """Dense layers, each followed by layer norm if wanted and the activation: [..., F] -> [..., hidden[-1]]."""

    hidden: tuple[int, ...]
    activation: str
    layer_norm: bool = False

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for size in self.hidden:
            x = dense(size, math.sqrt(2.0))(x)
            x = nn.LayerNorm()(x) if self.layer_norm else x
            x = ACTIVATIONS[self.activation](x)
        return x

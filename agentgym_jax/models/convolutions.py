"""Convolutional layers for images and grids, [T, B, A, height, width, channels]."""

from __future__ import annotations

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from agentgym_jax.models.torsos import ACTIVATIONS, AGENT_AXES

PADDINGS = ("valid", "same")


class Convolutions(nn.Module):
    """Convolutions, each followed by layer norm over its channels if wanted and the activation; then all laid side by side.

    [T, B, A, height, width, channels] -> [T, B, A, F]. Layer i has `channels[i]` outputs, and kernels and strides of the i-th
    size, or of the only one.
    """

    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str
    activation: str
    layer_norm: bool = False
    dtype: Any = jnp.float32

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        axes, image = x.shape[:AGENT_AXES], x.shape[AGENT_AXES:]
        x = x.reshape(math.prod(axes), *image)
        for i, channels in enumerate(self.channels):
            size, stride = each(self.kernels, i), each(self.strides, i)
            init = nn.initializers.orthogonal(math.sqrt(2.0))
            kernel = self.param(f"kernel_{i}", init, (size, size, x.shape[-1], channels))
            bias = self.param(f"bias_{i}", nn.initializers.zeros, (channels,))
            kernel, bias = kernel.astype(self.dtype), bias.astype(self.dtype)
            x = convolve(x.astype(self.dtype), kernel, stride, self.padding) + bias.reshape(1, 1, 1, channels)
            x = nn.LayerNorm(dtype=self.dtype)(x) if self.layer_norm else x
            x = ACTIVATIONS[self.activation](x)
        return x.reshape(*axes, -1)


def each(sizes: tuple[int, ...], layer: int) -> int:
    """The entry of this layer; a single entry is for all."""
    return sizes[min(layer, len(sizes) - 1)]


def convolve(x: jax.Array, kernel: jax.Array, stride: int, padding: str) -> jax.Array:
    """[B, H, W, C] with a kernel [k, k, C, F] -> [B, H', W', F]: the library's on accelerators, one matmul on CPU.

    XLA's CPU backend takes 25 to 40 times as long for the convolution and its derivative (see docs/decisions.md).
    """
    return jax.lax.platform_dependent(
        x,
        kernel,
        cpu=lambda x, kernel: _as_matmul(x, kernel, stride, padding),
        default=lambda x, kernel: jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), padding.upper(), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
    )


def _as_matmul(x: jax.Array, kernel: jax.Array, stride: int, padding: str) -> jax.Array:
    """The patches side by side, [B, H', W', k k C], times the kernel as a matrix."""
    size = kernel.shape[0]
    if padding == "same":
        pads = jax.lax.padtype_to_pads(x.shape[1:3], (size, size), (stride, stride), "SAME")
        x = jnp.pad(x, ((0, 0), *pads, (0, 0)))
    height, width = (n - size + 1 for n in x.shape[1:3])
    shifts = [(row, column) for row in range(size) for column in range(size)]
    patches = [x[:, i : i + height : stride, j : j + width : stride] for i, j in shifts]
    return jnp.concatenate(patches, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])

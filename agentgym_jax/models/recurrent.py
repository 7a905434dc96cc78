"""A gated recurrent unit over time-major windows, cut where an episode starts."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp


def _three_orthogonal(key: jax.Array, shape: tuple[int, int], dtype: jnp.dtype = jnp.float32) -> jax.Array:
    """An orthogonal matrix of gain 1 for each of the three gates, side by side: [H, 3 H]."""
    square, init = (shape[0], shape[0]), nn.initializers.orthogonal(1.0)
    # One after another: two virtual CPU devices that factorise a batch of matrices wait for each other for ever.
    gates = jax.lax.map(lambda k: init(k, square, dtype), jax.random.split(key, 3))
    return jnp.swapaxes(gates, 0, 1).reshape(shape)


class GRU(nn.Module):
    """The gated recurrent unit of Cho et al. 2014, in the form that libraries share (reset gate after the matmul):

        r = σ(W_r x + b_r + U_r h)    z = σ(W_z x + b_z + U_z h)    n = tanh(W_n x + b_n + r ∘ (U_n h + c))
        h' = (1 − z) ∘ n + z ∘ h

    The matmul of the inputs covers all T steps at once; a step of the scan has one matmul, of the hidden state.
    """

    size: int

    @nn.compact
    def __call__(self, carry: jax.Array, x: jax.Array, reset: jax.Array) -> jax.Array:
        """From carry [B, A, H], x [T, B, A, F] and reset bool [T, B, A] to the hidden states after each step, [T, B, A, H].

        Where `reset[t]` is True the state is zero before row t is read.
        """
        size = self.size
        gates_x = nn.Dense(3 * size, name="input")(x)
        kernel = self.param("recurrent_kernel", _three_orthogonal, (size, 3 * size))
        bias = self.param("recurrent_bias", nn.initializers.zeros, (size,))

        def step(h: jax.Array, row: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            gates, start = row
            h = jnp.where(start[..., None], 0.0, h)
            gates_h = h @ kernel
            r, z = jnp.split(nn.sigmoid(gates[..., : 2 * size] + gates_h[..., : 2 * size]), 2, axis=-1)
            n = jnp.tanh(gates[..., 2 * size :] + r * (gates_h[..., 2 * size :] + jnp.broadcast_to(bias, h.shape)))
            h = (1.0 - z) * n + z * h
            return h, h

        return jax.lax.scan(step, carry, (gates_x, reset))[1]

"""Convolutions against the library's, and the matmul that replaces them on CPU."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.convolutions import Convolutions, convolve

CASES = [(3, 1, "valid"), (3, 1, "same"), (4, 2, "valid"), (4, 2, "same"), (3, 3, "same"), (1, 1, "valid"), (5, 2, "same")]


@pytest.mark.parametrize(("size", "stride", "padding"), CASES)
def test_the_matmul_is_a_convolution(size, stride, padding):
    """Outputs, and the derivatives by both arguments, on a picture that is not square."""
    x = jax.random.normal(jax.random.key(0), (2, 7, 9, 3))
    kernel = jax.random.normal(jax.random.key(1), (size, size, 3, 4))

    def library(x, kernel):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), padding.upper(), dimension_numbers=numbers)

    def both(function):
        value, pull = jax.vjp(function, x, kernel)
        return value, pull(jnp.cos(value))

    ours = jax.jit(lambda: both(lambda x, kernel: convolve(x, kernel, stride, padding)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), ours(), jax.jit(lambda: both(library))())
    sides = NetworkConfig(torso="cnn", kernels=(size,), strides=(stride,), padding=padding).sides((7, 9))
    assert ours()[0].shape[1:3] == sides[-1]


def test_no_convolution_reaches_the_cpu():
    x, kernel = jnp.zeros((2, 6, 6, 3)), jnp.zeros((3, 3, 3, 4))
    program = jax.jit(jax.grad(lambda kernel: convolve(x, kernel, 1, "valid").sum())).lower(kernel).compile()
    assert "convolution(" not in program.as_text() and "dot(" in program.as_text()


def test_layers_follow_each_other_and_rows_stay_apart():
    module = Convolutions((5, 6), (3, 2), (1, 2), "valid", "relu")
    x = jax.random.normal(jax.random.key(0), (2, 3, 1, 8, 8, 3))
    params = module.init(jax.random.key(1), x)
    y = module.apply(params, x)
    assert y.shape == (2, 3, 1, 3 * 3 * 6)
    np.testing.assert_allclose(module.apply(params, x[1:, 2:])[0, 0], y[1, 2], atol=1e-6)
    kernel = params["params"]["kernel_0"].reshape(-1, 5)
    np.testing.assert_allclose(kernel.T @ kernel, 2 * np.eye(5), atol=1e-5)

"""Inputs as vectors, and dense layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.models.torsos import ACTIVATIONS, MLP, dense, vector
from envs_jax.spaces import Box, Discrete, MultiDiscrete


def test_bytes_are_scaled_once_and_laid_side_by_side():
    space = Box(0, 255, (4, 5, 3), np.uint8)
    image = jax.random.randint(jax.random.key(0), (2, 3, 1, 4, 5, 3), 0, 256).astype(jnp.uint8)
    x = vector(image, space)
    assert x.shape == (2, 3, 1, 60) and x.dtype == jnp.float32
    np.testing.assert_allclose(x, np.asarray(image).reshape(2, 3, 1, 60) / 255.0, rtol=1e-6)
    # floats, for example normalised images, are left as they are
    floats = image.astype(jnp.float32)
    np.testing.assert_array_equal(vector(floats, space), floats.reshape(2, 3, 1, 60))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32, jnp.bool_])
def test_other_numbers_become_floats_unscaled(dtype):
    x = jnp.ones((2, 3, 1, 4), dtype)
    assert vector(x, Box(0, 1, (4,), np.dtype(dtype))).dtype == jnp.float32
    np.testing.assert_array_equal(vector(x, Box(0, 1, (4,), np.dtype(dtype))), 1.0)


def test_a_scalar_observation_gets_a_feature_axis():
    assert vector(jnp.zeros((2, 3, 1)), Box(-1, 1)).shape == (2, 3, 1, 1)


def test_integers_of_discrete_spaces_become_one_hot():
    x = vector(jnp.array([[[2]], [[0]]]), Discrete(3))
    np.testing.assert_array_equal(x[:, 0, 0], [[0, 0, 1], [1, 0, 0]])
    x = vector(jnp.array([[[[1, 2]]]]), MultiDiscrete((2, 3)))
    np.testing.assert_array_equal(x[0, 0, 0], [0, 1, 0, 0, 0, 1])


@pytest.mark.parametrize(("rows", "columns", "gain"), [(8, 20, np.sqrt(2)), (20, 8, 0.01), (16, 16, 1.0)])
def test_dense_kernels_are_orthogonal_with_their_gain_and_biases_zero(rows, columns, gain):
    params = jax.jit(dense(columns, gain).init)(jax.random.key(0), jnp.zeros((1, rows)))["params"]
    kernel = np.asarray(params["kernel"], np.float64)
    gram = kernel @ kernel.T if rows <= columns else kernel.T @ kernel
    np.testing.assert_allclose(gram, gain**2 * np.eye(min(rows, columns)), atol=1e-5 * gain**2 + 1e-9)
    np.testing.assert_array_equal(params["bias"], 0.0)


def test_mlp_is_dense_layers_and_activations():
    x = jax.random.normal(jax.random.key(1), (5, 3, 2, 4))
    mlp = MLP((8, 6), "tanh")
    variables = jax.jit(mlp.init)(jax.random.key(0), x)
    y = np.asarray(x)
    for layer in ("Dense_0", "Dense_1"):
        params = variables["params"][layer]
        kernel = np.asarray(params["kernel"], np.float64)
        np.testing.assert_allclose(
            kernel @ kernel.T if kernel.shape[0] <= kernel.shape[1] else kernel.T @ kernel,
            2 * np.eye(min(kernel.shape)),
            atol=1e-5,
        )
        y = np.tanh(y @ kernel + np.asarray(params["bias"]))
    np.testing.assert_allclose(mlp.apply(variables, x), y, atol=1e-5)


def test_layer_norm_comes_before_the_activation():
    x = 5.0 * jax.random.normal(jax.random.key(1), (5, 3, 2, 4)) + 3.0
    mlp = MLP((64,), "relu", layer_norm=True)
    y, state = mlp.apply(
        mlp.init(jax.random.key(0), x), x, capture_intermediates=lambda module, _: type(module).__name__ == "LayerNorm"
    )
    normed = state["intermediates"]["LayerNorm_0"]["__call__"][0]
    np.testing.assert_allclose(normed.mean(-1), 0.0, atol=1e-5)
    np.testing.assert_allclose(normed.std(-1), 1.0, atol=1e-3)
    np.testing.assert_array_equal(y, jnp.maximum(normed, 0.0))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_runs(activation):
    assert jnp.isfinite(ACTIVATIONS[activation](jnp.float32([-2.0, 0.0, 3.0]))).all()

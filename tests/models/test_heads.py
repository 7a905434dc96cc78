"""What the heads give out, and how small they start."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.models.heads import PolicyHead, ValueHead
from agentgym_jax.ops.distributions import NormalParams
from envs_jax.spaces import Box, MultiDiscrete

FEATURES = np.random.default_rng(0).normal(size=(4, 3, 2, 16)).astype(np.float32)


def gain(kernel):
    """The common singular value of an orthogonal kernel."""
    values = np.linalg.svd(np.asarray(kernel), compute_uv=False)
    np.testing.assert_allclose(values, values[0], rtol=1e-4)
    return values[0]


def test_logits_with_gain_one_hundredth():
    head = PolicyHead(MultiDiscrete((3, 2)), 5)
    logits, variables = jax.jit(head.init_with_output)(jax.random.key(0), FEATURES)
    assert logits.shape == (4, 3, 2, 5)
    np.testing.assert_allclose(gain(variables["params"]["output"]["kernel"]), 0.01, rtol=1e-4)
    np.testing.assert_array_equal(variables["params"]["output"]["bias"], 0.0)


def test_a_box_gets_a_mean_and_a_free_log_std():
    head = PolicyHead(Box(-1.0, 1.0, (3,)), 3, log_std=-0.5)
    outputs, variables = jax.jit(head.init_with_output)(jax.random.key(0), FEATURES)
    assert isinstance(outputs, NormalParams)
    assert outputs.mean.shape == outputs.log_std.shape == (4, 3, 2, 3)
    np.testing.assert_array_equal(outputs.log_std, -0.5)
    assert variables["params"]["log_std"].shape == (3,)
    gradient = jax.grad(lambda v: head.apply(v, FEATURES).log_std.sum())(variables)
    np.testing.assert_array_equal(gradient["params"]["log_std"], 4 * 3 * 2)


def test_values_with_gain_one():
    values, variables = jax.jit(ValueHead(4).init_with_output)(jax.random.key(0), FEATURES)
    assert values.shape == (4, 3, 2, 4) and values.dtype == jnp.float32
    np.testing.assert_allclose(gain(variables["params"]["output"]["kernel"]), 1.0, rtol=1e-4)

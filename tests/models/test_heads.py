"""What the heads give out, and how small they start."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.models.heads import ActionValueHead, PolicyHead, ValueHead
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


def test_action_values_start_near_zero():
    values, variables = jax.jit(ActionValueHead(5).init_with_output)(jax.random.key(0), FEATURES)
    assert values.shape == (4, 3, 2, 5) and values.dtype == jnp.float32 and set(variables["params"]) == {"output"}
    np.testing.assert_allclose(gain(variables["params"]["output"]["kernel"]), 0.01, rtol=1e-4)
    plain = FEATURES @ np.asarray(variables["params"]["output"]["kernel"])
    np.testing.assert_allclose(values, plain, rtol=1e-4, atol=1e-6)


def moved(variables):
    """Parameters with biases too."""
    draw = np.random.default_rng(1)
    return jax.tree.map(lambda x: x + np.float32(draw.normal(size=x.shape)), variables)


def test_dueling_is_the_states_value_plus_advantages_without_their_mean():
    head = ActionValueHead(5, dueling=True)
    params = moved(jax.jit(head.init)(jax.random.key(0), FEATURES))
    values = np.asarray(head.apply(params, FEATURES))

    def layer(name):
        return FEATURES @ np.asarray(params["params"][name]["kernel"]) + np.asarray(params["params"][name]["bias"])

    advantage = layer("output")
    assert layer("value").shape[-1] == 1
    np.testing.assert_allclose(values, layer("value") + advantage - advantage.mean(-1, keepdims=True), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(values.mean(-1, keepdims=True), layer("value"), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(values.argmax(-1), advantage.argmax(-1))


def test_the_mean_of_dueling_is_over_an_agents_own_actions():
    """Two agents: the first has all five actions, the second three of them; what it has not changes none of the others."""
    own = ((True,) * 5, (True, True, False, True, False))
    head, wide = ActionValueHead(5, True, own), ActionValueHead(5, True)
    params = moved(jax.jit(head.init)(jax.random.key(0), FEATURES))
    values, usual = np.asarray(head.apply(params, FEATURES)), np.asarray(wide.apply(params, FEATURES))
    np.testing.assert_allclose(values[..., 0, :], usual[..., 0, :], rtol=1e-5, atol=1e-5)
    state = FEATURES @ np.asarray(params["params"]["value"]["kernel"]) + np.asarray(params["params"]["value"]["bias"])
    mine = values[..., 1, :][..., np.array(own[1])]
    np.testing.assert_allclose(mine.mean(-1), state[..., 1, 0], rtol=1e-4, atol=1e-4)
    kernel = params["params"]["output"]["kernel"].at[:, 2].add(100.0)
    spoilt = {"params": params["params"] | {"output": params["params"]["output"] | {"kernel": kernel}}}
    np.testing.assert_array_equal(np.asarray(head.apply(spoilt, FEATURES))[..., 1, :][..., np.array(own[1])], mine)

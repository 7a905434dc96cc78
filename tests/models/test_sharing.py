"""Parameters of their own for every agent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.networks import policy_model
from agentgym_jax.models.sharing import per_agent
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

T, B, A = 4, 3, 3
SPEC = EnvSpec(Box(-1.0, 1.0, (5,)), Discrete(4), num_agents=A)


def alone(torso):
    """The same network for a single agent."""
    return policy_model(NetworkConfig(torso=torso, hidden=(8,), recurrent=6), EnvSpec(Box(-1.0, 1.0, (5,)), Discrete(4), 1))


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(T, B, A, 5)), jnp.float32), jnp.asarray(rng.random((T, B, A)) < 0.2)


def parameters(model):
    """Random parameters of the right shapes, with biases that are not zero."""
    rng = np.random.default_rng(1)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda p: jnp.asarray(0.3 * rng.normal(size=p.shape), p.dtype), shapes)


@pytest.mark.parametrize("torso", ["mlp", "gru"])
def test_each_agent_is_the_plain_model_with_its_own_parameters(torso):
    single = alone(torso)
    model = per_agent(single, A)
    params, carry, (x, reset) = parameters(model), model.carry((B, A)), draw()
    carry = jax.tree.map(lambda c: c + 0.3, carry)
    outputs, carries = jax.jit(model.apply)(params, carry, x, reset)
    assert outputs.shape == (T, B, A, 4)
    apply = jax.jit(single.apply)
    for agent in range(A):
        own = jax.tree.map(lambda p, a=agent: p[a], params)
        rows = slice(agent, agent + 1)
        expected, states = apply(own, jax.tree.map(lambda c, r=rows: c[:, r], carry), x[:, :, rows], reset[:, :, rows])
        np.testing.assert_allclose(outputs[:, :, rows], expected, atol=1e-6)
        jax.tree.map(lambda c, s, r=rows: np.testing.assert_allclose(c[:, :, r], s, atol=1e-6), carries, states)


def test_parameters_differ_and_do_not_mix():
    model = per_agent(alone("gru"), A)
    params, (x, reset) = jax.jit(model.init)(jax.random.key(1)), draw()
    kernel = params["params"]["torso"]["Dense_0"]["kernel"]
    assert kernel.shape == (A, 5, 8)
    assert not np.allclose(kernel[0], kernel[1]) and not np.allclose(kernel[1], kernel[2])

    def first_agent(params):
        outputs, _ = model.apply(params, model.carry((B, A)), x, reset)
        return jnp.square(outputs[:, :, 0]).sum()

    for leaf in jax.tree.leaves(jax.jit(jax.grad(first_agent))(params)):
        assert np.any(leaf[0] != 0.0)
        np.testing.assert_array_equal(leaf[1:], 0.0)


def test_shared_parameters_treat_agents_alike():
    model = policy_model(NetworkConfig(hidden=(8,)), SPEC)
    params, (x, reset), apply = parameters(model), draw(), jax.jit(model.apply)
    outputs, _ = apply(params, (), jnp.broadcast_to(x[:, :, :1], x.shape), reset)
    np.testing.assert_allclose(outputs, jnp.broadcast_to(outputs[:, :, :1], outputs.shape), atol=1e-6)
    # and a permutation of the agents permutes the outputs
    order = np.array([2, 0, 1])
    plain, _ = apply(params, (), x, reset)
    permuted, _ = apply(params, (), x[:, :, order], reset)
    np.testing.assert_allclose(permuted, plain[:, :, order], atol=1e-6)

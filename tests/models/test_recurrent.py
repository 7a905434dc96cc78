"""The GRU: its equations against flax's own cell, and what a reset cuts."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.models.recurrent import GRU

T, B, A, F, H = 6, 3, 2, 5, 7
gru = GRU(H)


@pytest.fixture(scope="module")
def case():
    """Parameters, a carry, inputs and resets; biases are away from zero, so that a misplaced one shows."""
    rng = np.random.default_rng(0)

    def normal(*shape):
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    inputs = normal(B, A, H), normal(T, B, A, F), jnp.asarray(rng.random((T, B, A)) < 0.3)
    variables = jax.jit(gru.init)(jax.random.key(0), *inputs)
    return jax.tree.map(lambda p: p + 0.1 * normal(*p.shape), variables), *inputs


apply = jax.jit(gru.apply)


def test_recurrent_kernel_is_orthogonal_for_each_gate_and_biases_are_zero():
    shapes = jnp.zeros((B, A, H)), jnp.zeros((T, B, A, F)), jnp.zeros((T, B, A), bool)
    params = jax.jit(gru.init)(jax.random.key(0), *shapes)["params"]
    gates = np.split(np.asarray(params["recurrent_kernel"]), 3, axis=-1)
    for gate in gates:
        np.testing.assert_allclose(gate @ gate.T, np.eye(H), atol=1e-5)
    assert not np.allclose(gates[0], gates[1])
    np.testing.assert_array_equal(params["recurrent_bias"], 0.0)
    np.testing.assert_array_equal(params["input"]["bias"], 0.0)


def test_equals_the_cell_of_flax(case):
    variables, h, x, reset = case
    params = variables["params"]
    theirs = {"hn": {"bias": params["recurrent_bias"]}}
    for gate, columns in zip("rzn", np.split(np.arange(3 * H), 3), strict=True):
        theirs[f"i{gate}"] = {k: v[..., columns] for k, v in params["input"].items()}
        theirs.setdefault(f"h{gate}", {})["kernel"] = params["recurrent_kernel"][:, columns]
    cell = jax.jit(nn.GRUCell(H).apply)
    expected = []
    for t in range(T):
        h = jnp.where(reset[t][..., None], 0.0, h)
        h, _ = cell({"params": theirs}, h, x[t])
        expected.append(h)
    np.testing.assert_allclose(apply(*case), np.stack(expected), atol=1e-5)


def test_a_reset_equals_starting_from_the_empty_carry(case):
    variables, carry, x, _ = case
    reset = jnp.zeros((T, B, A), bool).at[2, 1, 0].set(True)
    whole, untouched = apply(variables, carry, x, reset), apply(variables, carry, x, jnp.zeros_like(reset))
    fresh = apply(variables, jnp.zeros((B, A, H)), x[2:], jnp.zeros((T - 2, B, A), bool))
    np.testing.assert_allclose(whole[2:, 1, 0], fresh[:, 1, 0], atol=1e-6)
    # no other row, and nothing before it, notices
    others = np.ones((T, B, A), bool)
    others[2:, 1, 0] = False
    np.testing.assert_array_equal(whole[others], untouched[others])


def test_nothing_flows_through_a_reset(case):
    variables, carry, x, _ = case
    reset = jnp.zeros((T, B, A), bool).at[3].set(True)
    gradient = jax.jit(jax.grad(lambda x: apply(variables, carry, x, reset)[3:].sum()))(x)
    np.testing.assert_array_equal(gradient[:3], 0.0)
    assert np.all(np.any(gradient[3:] != 0.0, axis=-1))


def test_a_window_equals_its_steps_one_by_one(case):
    variables, carry, x, reset = case
    whole = apply(variables, carry, x, reset)
    for t in range(T):
        states = apply(variables, carry, x[t : t + 1], reset[t : t + 1])
        carry = states[0]
        np.testing.assert_allclose(whole[t], carry, atol=1e-6)


def test_the_scan_holds_one_matmul():
    arguments = jnp.zeros((B, A, H)), jnp.zeros((T, B, A, F)), jnp.zeros((T, B, A), bool)
    variables = jax.eval_shape(gru.init, jax.random.key(0), *arguments)
    jaxpr = jax.make_jaxpr(gru.apply)(variables, *arguments).jaxpr
    scan = next(eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan")
    assert str(scan.params["jaxpr"]).count("dot_general[") == 1
    assert sum(eqn.primitive.name == "dot_general" for eqn in jaxpr.eqns) == 1

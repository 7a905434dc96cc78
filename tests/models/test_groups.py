"""Agents that differ: a network for each group on unpadded rows, what no agent has, and learnt ids."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.networks import action_value_model, policy_model, policy_value_model, value_model
from agentgym_jax.models.sharing import GROUPS, group_specs, per_agent
from agentgym_jax.ops.distributions import MASKED, NormalParams, distribution
from envs_jax.core import EnvSpec, Group
from envs_jax.spaces import Box, Discrete, MultiDiscrete

T, B, A = 3, 2, 3


def grouped(narrow, wide):
    """Two scouts that see three numbers and have the narrow actions, then a guard that sees five and has the wide ones."""
    see = Box(-1, 1, (3,)), Box(-1, 1, (5,))
    return EnvSpec(see[1], wide, A, groups=(Group("scouts", 2, see[0], narrow), Group("guard", 1, see[1], wide)))


SPEC = grouped(Discrete(2), Discrete(4))
SLICES = {"scouts": slice(0, 2), "guard": slice(2, 3)}
MLP, GRU = NetworkConfig(hidden=(8,)), NetworkConfig(torso="gru", hidden=(8,), recurrent=6)
sharings = pytest.mark.parametrize("sharing", ["shared", "group", "agent"])


def quick(function):
    """`jax.jit` without LLVM's optimisation, which takes most of the time here."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


def observations(seed=0):
    """Observations as the environment pads them, and resets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(T, B, A, 5)).astype(np.float32)
    x[:, :, :2, 3:] = 0.0
    return jnp.asarray(x), jnp.asarray(rng.random((T, B, A)) < 0.3)


def parameters(model, seed=1):
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda p: jnp.asarray(0.3 * rng.normal(size=p.shape), p.dtype), shapes)


@pytest.mark.parametrize("config", [MLP, GRU], ids=["mlp", "gru"])
@pytest.mark.parametrize("sharing", ["group", "agent"])
def test_a_group_is_the_plain_model_on_its_own_rows_and_columns(config, sharing):
    config = dataclasses.replace(config, sharing=sharing)
    model, (x, reset) = policy_value_model(config, SPEC), observations()
    params, carry = parameters(model), jax.tree.map(lambda c: c + 0.3, model.carry((B, A)))
    (logits, values), carries = quick(model.apply)(params, carry, x, reset)
    assert logits.shape == (T, B, A, 4) and values.shape == (T, B, A, 1)
    for name, own in group_specs(SPEC).items():
        rows, width = SLICES[name], own.observation_space.shape[0]
        plain = policy_value_model(dataclasses.replace(config, sharing="shared"), own)
        plain = per_agent(plain, own.agents) if sharing == "agent" else plain
        inputs = (jax.tree.map(lambda c, r=rows: c[:, r], carry), x[:, :, rows, :width], reset[:, :, rows])
        expected, states = quick(plain.apply)(params[GROUPS][name], *inputs)
        np.testing.assert_allclose(logits[:, :, rows, : own.action_space.n], expected[0], atol=1e-6)
        np.testing.assert_allclose(values[:, :, rows], expected[1], atol=1e-6)
        jax.tree.map(lambda c, s, r=rows: np.testing.assert_allclose(c[:, :, r], s, atol=1e-6), carries, states)


def test_groups_have_parameters_of_their_own_under_their_names():
    model = policy_model(dataclasses.replace(MLP, sharing="group"), SPEC)
    params, (x, reset) = quick(model.init)(jax.random.key(0)), observations()
    scouts, guard = (params[GROUPS][name]["params"]["torso"]["Dense_0"]["kernel"] for name in ("scouts", "guard"))
    assert scouts.shape == (3, 8) and guard.shape == (5, 8) and not np.allclose(scouts, guard[:3])

    def of_guard(params):
        return jnp.square(model.apply(params, (), x, reset)[0][:, :, 2, 2:]).sum()

    gradient = quick(jax.grad(of_guard))(params)[GROUPS]
    assert all(np.any(leaf != 0) for leaf in jax.tree.leaves(gradient["guard"]))
    assert not any(np.any(leaf != 0) for leaf in jax.tree.leaves(gradient["scouts"]))


@sharings
@pytest.mark.parametrize("build", [policy_model, action_value_model])
def test_what_no_agent_has_is_never_chosen_without_any_mask_and_has_no_gradient(sharing, build):
    """Logits and values of surplus actions are constants; the rows that can see them are those of the scouts."""
    model = build(dataclasses.replace(MLP, sharing=sharing, dueling=True), SPEC)
    params, (x, reset) = parameters(model), observations()
    policy, surplus = distribution(SPEC.action_space), ~np.broadcast_to(SPEC.own_actions, (T, B, A, 4))

    @quick
    def everything(params):
        outputs, pull = jax.vjp(lambda params: model.apply(params, (), x, reset)[0], params)
        drawn = policy.sample(jnp.broadcast_to(outputs, (300, *outputs.shape)), jax.random.key(1))
        last = policy.log_prob(outputs, jnp.full((T, B, A), 3))
        return outputs, pull(jnp.float32(surplus))[0], drawn, policy.mode(outputs), last, policy.entropy(outputs, None)

    outputs, gradient, drawn, mode, last, entropy = jax.tree.map(np.asarray, everything(params))
    assert (outputs[surplus] == MASKED).all() and (np.abs(outputs[~surplus]) < 100).all()
    assert not any(np.any(leaf != 0) for leaf in jax.tree.leaves(gradient))
    assert set(drawn[..., :2].ravel()) == {0, 1} and set(drawn[..., 2].ravel()) == {0, 1, 2, 3}
    assert mode[:, :, :2].max() < 2 and (last[:, :, :2] < -1e8).all() and np.isfinite(entropy).all()


def test_a_dueling_mean_is_over_the_actions_that_an_agent_has():
    """In a shared network too: moving the output of a surplus action moves nothing of the scouts."""
    model = action_value_model(dataclasses.replace(MLP, dueling=True), SPEC)
    params, (x, reset) = parameters(model), observations()
    apply = quick(model.apply)
    values, _ = apply(params, (), x, reset)
    moved = jax.tree.map(lambda p: p, params)
    moved["params"]["value"]["output"]["bias"] = params["params"]["value"]["output"]["bias"].at[3].add(5.0)
    other, _ = apply(moved, (), x, reset)
    np.testing.assert_array_equal(other[:, :, :2], values[:, :, :2])
    assert np.all(other[:, :, 2] != values[:, :, 2])


@sharings
@pytest.mark.parametrize("narrow", [MultiDiscrete((2, 3)), MultiDiscrete((3,))], ids=str)
def test_heads_that_agents_do_not_have(sharing, narrow):
    """Shorter heads, and missing ones: of those there is one choice, and it says nothing."""
    spec = grouped(narrow, MultiDiscrete((3, 4)))
    model, (x, reset) = policy_model(dataclasses.replace(MLP, sharing=sharing), spec), observations()
    policy, own, heads = distribution(spec.action_space), distribution(narrow), len(narrow.nvec)

    @quick
    def both(params):
        """Sample, log-probability and entropy of the scouts, and what the distribution of their own heads says."""
        logits, _ = model.apply(params, (), x, reset)
        sample = policy.sample(logits, jax.random.key(0))
        kept = logits[:, :, :2][..., np.flatnonzero(spec.own_actions[0])][..., : sum(narrow.nvec)]
        theirs = own.log_prob(kept, sample[:, :, :2, :heads]), own.entropy(kept, None)
        return sample, (policy.log_prob(logits, sample)[:, :, :2], policy.entropy(logits, None)[:, :, :2]), theirs

    sample, got, expected = jax.tree.map(np.asarray, both(parameters(model)))
    assert sample.shape == (T, B, A, 2) and (sample[:, :, :2, :heads] < np.broadcast_to(narrow.nvec, (T, B, 2, heads))).all()
    assert heads == 2 or (sample[:, :, :2, 1] == 0).all()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), got, expected)


@sharings
def test_dimensions_that_agents_do_not_have(sharing):
    spec = grouped(Box(-1, 1, (1,)), Box(-1, 1, (2,)))
    model, (x, reset) = policy_model(dataclasses.replace(MLP, sharing=sharing, log_std=-1.0), spec), observations()
    outputs, _ = quick(lambda params: model.apply(params, (), x, reset))(parameters(model))
    assert isinstance(outputs, NormalParams) and outputs.mean.shape == (T, B, A, 2)
    assert (outputs.mean[:, :, :2, 1] == 0).all() and (outputs.log_std[:, :, :2, 1] == 0).all()
    assert np.all(outputs.mean[:, :, :2, 0] != 0) and np.all(outputs.mean[:, :, 2] != 0)


@sharings
def test_critics_take_groups_too(sharing):
    config, (x, reset) = dataclasses.replace(MLP, sharing=sharing), observations()
    local, central = value_model(config, SPEC), value_model(config, SPEC, outputs=A, central=True)
    assert jax.eval_shape(local.apply, parameters(local), (), x, reset)[0].shape == (T, B, A, 1)
    world = x.reshape(T, B, 1, -1)
    assert jax.eval_shape(central.apply, parameters(central), (), world, reset[:, :, :1])[0].shape == (T, B, 1, A)


@pytest.mark.parametrize("sharing", ["shared", "group"])
def test_learnt_ids_tell_agents_apart(sharing):
    """Agents that see the same differ by their vectors, which nobody else's loss moves."""
    spec = SPEC if sharing == "group" else EnvSpec(Box(-1, 1, (5,)), Discrete(4), A)
    model, (x, reset) = policy_model(dataclasses.replace(MLP, sharing=sharing, id_embedding=2), spec), observations()
    params, same = parameters(model), jnp.broadcast_to(x[:, :, :1], x.shape)
    logits, _ = quick(model.apply)(params, (), same, reset)
    assert np.all(np.abs(logits[:, :, 0, :2] - logits[:, :, 1, :2]) > 1e-4)

    def of_second(params):
        return jnp.square(model.apply(params, (), x, reset)[0][:, :, 1, :2]).sum()

    gradient = quick(jax.grad(of_second))(params)
    table = (gradient[GROUPS]["scouts"] if sharing == "group" else gradient)["params"]["id_embedding"]
    assert table.shape == ((2, 2) if sharing == "group" else (3, 2))
    assert np.all(table[1] != 0) and not np.any(np.delete(table, 1, axis=0))


def test_a_central_critic_has_no_ids():
    model = value_model(dataclasses.replace(MLP, id_embedding=2), SPEC, central=True)
    assert "id_embedding" not in jax.eval_shape(model.init, jax.random.key(0))["params"]


def test_what_makes_no_sense_is_refused_in_one_line():
    alike = EnvSpec(Box(-1, 1, (5,)), Discrete(4), A)
    for build in (policy_model, lambda c, s: value_model(c, s, central=True)):
        with pytest.raises(ValueError, match=r"network.sharing: group .* none: use shared or agent"):
            build(dataclasses.replace(MLP, sharing="group"), alike)
    with pytest.raises(ValueError, match="network.id_embedding = 2 .* only one"):
        policy_model(dataclasses.replace(MLP, id_embedding=2), dataclasses.replace(alike, num_agents=1))
    with pytest.raises(ValueError, match="network.id_embedding = 2 .* set it to 0"):
        NetworkConfig(sharing="agent", id_embedding=2)
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="network.id_embedding must be"):
            NetworkConfig(id_embedding=wrong)

"""Networks by configuration: shapes in every role, one-step and batch equalities, refusals, and one's own networks."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.models import networks
from agentgym_jax.models.base import Model, apply_next, apply_once
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.networks import (
    network_names,
    policy_model,
    policy_value_model,
    register_network,
    value_model,
)
from agentgym_jax.ops.distributions import NormalParams
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete, MultiDiscrete

T, B, A = 4, 3, 2
IMAGE = Box(0, 255, (4, 4, 3), np.uint8)
SPEC = EnvSpec(Box(-1.0, 1.0, (5,)), Discrete(4), num_agents=A)
MLP = NetworkConfig(hidden=(8,))
GRU = NetworkConfig(torso="gru", hidden=(8,), recurrent=6, after=(7,))
both = pytest.mark.parametrize("config", [MLP, GRU], ids=["mlp", "gru"])


def draw(space=SPEC.observation_space, shape=(T, B, A), seed=0):
    """Observations from a space, and resets."""
    rng = np.random.default_rng(seed)
    if isinstance(space, Box):
        x = rng.uniform(*space.bounds(), size=(*shape, *space.shape))
    else:
        x = rng.integers(0, space.n if isinstance(space, Discrete) else np.array(space.nvec), (*shape, *space.shape))
    return jnp.asarray(x.astype(space.dtype)), jnp.asarray(rng.random(shape) < 0.3)


def parameters(model, seed=0):
    """Random parameters of the right shapes, with biases that are not zero; initialising for real compiles for seconds."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda p: jnp.asarray(0.3 * rng.normal(size=p.shape), p.dtype), shapes)


@functools.cache
def ready(config):
    """Actor and critic on one trunk, with its jitted apply, parameters and empty carry; built once for all tests."""
    model = policy_value_model(config, SPEC)
    return model._replace(apply=jax.jit(model.apply)), parameters(model), model.carry((B, A))


@pytest.mark.parametrize("sharing", ["shared", "agent"])
@pytest.mark.parametrize("observation", [SPEC.observation_space, IMAGE, Discrete(6), MultiDiscrete((2, 3))], ids=str)
@both
def test_shapes_of_every_role(config, sharing, observation):
    config = dataclasses.replace(config, sharing=sharing)
    spec = EnvSpec(observation, MultiDiscrete((3, 2)), num_agents=A)
    x, reset = draw(observation)
    memory = (T, B, A, 6)

    def shapes(model, x=x, reset=reset, agents=A):
        outputs, carries = jax.eval_shape(
            lambda k: model.apply(model.init(k), model.carry((B, agents)), x, reset), jax.random.key(0)
        )
        assert all(leaf.dtype == jnp.float32 and not leaf.weak_type for leaf in jax.tree.leaves((outputs, carries)))
        if config.torso == "mlp":
            assert carries == () and model.carry((B, agents)) == ()
        else:
            assert carries.shape == (*memory[:2], agents, 6)
        return jax.tree.map(lambda leaf: leaf.shape, outputs, is_leaf=lambda leaf: hasattr(leaf, "shape"))

    assert shapes(policy_model(config, spec)) == (T, B, A, 5)
    assert shapes(value_model(config, spec)) == (T, B, A, 1)
    assert shapes(value_model(config, spec, outputs=3)) == (T, B, A, 3)
    assert shapes(policy_value_model(config, spec)) == ((T, B, A, 5), (T, B, A, 1))
    joint = x.reshape(T, B, 1, -1)
    assert shapes(value_model(config, spec, outputs=A, central=True), joint, reset[:, :, :1], 1) == (T, B, 1, A)


def test_a_central_critic_reads_the_world_where_there_is_one():
    spec = dataclasses.replace(SPEC, world_space=Box(-1.0, 1.0, (11,)))
    for case, size in ((spec, 11), (SPEC, A * 5)):
        params = jax.eval_shape(value_model(MLP, case, central=True).init, jax.random.key(0))
        assert params["params"]["torso"]["Dense_0"]["kernel"].shape == (size, 8)


def test_continuous_actions():
    spec = EnvSpec(SPEC.observation_space, Box(-1.0, 1.0, (3,)), num_agents=A)
    model = policy_model(NetworkConfig(hidden=(8,), log_std=-1.0), spec)
    outputs, _ = jax.jit(lambda key, x, reset: model.apply(model.init(key), (), x, reset))(jax.random.key(0), *draw())
    assert isinstance(outputs, NormalParams) and outputs.mean.shape == (T, B, A, 3)
    np.testing.assert_array_equal(outputs.log_std, -1.0)


@both
def test_a_fresh_policy_is_nearly_uniform_and_follows_from_the_key(config):
    model, _, carry = ready(config)
    params, again, other = (jax.jit(model.init)(jax.random.key(seed)) for seed in (0, 0, 1))
    (logits, values), _ = model.apply(params, carry, *draw())
    assert np.abs(logits).max() < 0.05 < np.abs(values).max()
    jax.tree.map(np.testing.assert_array_equal, params, again)
    assert not np.array_equal(*(p["params"]["torso"]["Dense_0"]["kernel"] for p in (params, other)))


@both
def test_carries_equal_one_step_after_the_other(config):
    model, params, carry = ready(config)
    x, reset = draw()
    outputs, carries = model.apply(params, carry, x, reset)
    once = jax.jit(lambda carry, x, reset: apply_once(model, params, carry, x, reset))
    for t in range(T):
        output, carry = once(carry, x[t], reset[t])
        expected = jax.tree.map(lambda y, t=t: y[t], (outputs, carries))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), (output, carry), expected)


@both
def test_apply_next_equals_the_cell_applied_once(config):
    model, params, carry = ready(config)
    (x, reset), (following, _) = draw(), draw(seed=7)
    outputs, carries = model.apply(params, carry, x, reset)
    restart = jnp.zeros((T, B, A), bool)
    following_outputs = jax.jit(lambda x: apply_next(model, params, carries, x, restart))
    values = following_outputs(following)
    assert jax.tree.map(jnp.shape, values) == jax.tree.map(jnp.shape, outputs)
    once = jax.jit(lambda carry, x, reset: apply_once(model, params, carry, x, reset))
    for t in range(T):
        expected, _ = once(jax.tree.map(lambda c, t=t: c[t], carries), following[t], restart[t])
        jax.tree.map(lambda a, b, t=t: np.testing.assert_allclose(a[t], b, atol=1e-6), values, expected)
    # where the next observation is the next row and nothing restarts, it is that row's value
    (_, values), keep = following_outputs(jnp.roll(x, -1, axis=0)), ~np.asarray(reset[1:])
    np.testing.assert_allclose(np.asarray(values)[:-1][keep], np.asarray(outputs[1])[1:][keep], atol=1e-6)


@pytest.mark.parametrize("sharing", ["shared", "agent"])
@both
def test_a_row_alone_equals_the_row_in_a_batch(config, sharing):
    model, params, carry = ready(dataclasses.replace(config, sharing=sharing))
    x, reset = draw()
    outputs, _ = model.apply(params, carry, x, reset)
    for row in range(B):
        one = slice(row, row + 1)
        alone, _ = model.apply(params, model.carry((1, A)), x[:, one], reset[:, one])
        jax.tree.map(lambda a, b, one=one: np.testing.assert_allclose(a, b[:, one], atol=1e-6), alone, outputs)


@both
def test_one_set_of_parameters_serves_every_length_and_batch(config):
    model, params, _ = ready(config)
    for shape in ((1, 1, A), (8, 5, A), (2, 7, 1)):
        inputs = jnp.zeros((*shape, 5)), jnp.zeros(shape, bool)
        (logits, values), _ = jax.eval_shape(model.apply, params, model.carry(shape[1:]), *inputs)
        assert logits.shape == (*shape, 4) and values.shape == (*shape, 1)


@both
def test_members_of_a_population_equal_themselves_alone(config):
    model, _, carry = ready(config)
    population, (x, reset) = [parameters(model, seed) for seed in range(3)], draw()
    stacked = jax.tree.map(lambda *p: jnp.stack(p), *population)
    together = jax.jit(jax.vmap(lambda params: model.apply(params, carry, x, reset)))(stacked)
    for member, params in enumerate(population):
        alone = model.apply(params, carry, x, reset)
        jax.tree.map(lambda a, b, m=member: np.testing.assert_allclose(a, b[m], atol=1e-5), alone, together)


def test_a_feed_forward_layer_is_one_matmul():
    model = policy_model(NetworkConfig(hidden=(8, 8)), SPEC)
    params = jax.eval_shape(model.init, jax.random.key(0))
    jaxpr = str(jax.make_jaxpr(model.apply)(params, (), *draw()))
    assert jaxpr.count("dot_general[") == 3 and "transpose[" not in jaxpr and "scan[" not in jaxpr


@pytest.mark.parametrize(
    ("space", "fields", "message"),
    [
        (SPEC.observation_space, {}, r"network.torso: cnn reads \[height, width, channels\]"),
        (IMAGE, {"channels": (8, 8), "kernels": (3,)}, "network.kernels: .* leave nothing of an image of 4 × 4"),
    ],
)
def test_convolutions_refuse_what_they_cannot_read(space, fields, message):
    with pytest.raises(ValueError, match=message):
        policy_model(NetworkConfig(torso="cnn", **fields), dataclasses.replace(SPEC, observation_space=space))


def test_a_grid_goes_through_convolutions_and_a_world_through_dense_layers():
    config = NetworkConfig(torso="cnn_gru", channels=(5,), hidden=(8,), recurrent=6)
    spec = EnvSpec(IMAGE, Discrete(4), num_agents=A, world_space=Box(-1.0, 1.0, (7,)))
    actor = jax.eval_shape(policy_model(config, spec).init, jax.random.key(0))["params"]
    assert actor["convolutions"]["kernel_0"].shape == (3, 3, 3, 5) and actor["torso"]["Dense_0"]["kernel"].shape == (20, 8)
    assert "gru" in actor
    critic = jax.eval_shape(value_model(config, spec, central=True).init, jax.random.key(0))["params"]
    assert "convolutions" not in critic and critic["torso"]["Dense_0"]["kernel"].shape == (7, 8)


def test_half_precision_is_for_products_alone():
    """Parameters, memory and outputs stay in float32, and the result is that of float32 up to its three digits."""
    spec, (x, reset) = dataclasses.replace(SPEC, observation_space=IMAGE), draw(IMAGE)
    outputs = {}
    for dtype in ("float32", "bfloat16"):
        config = NetworkConfig(torso="cnn_gru", hidden=(16,), recurrent=6, after=(8,), layer_norm=True, compute_dtype=dtype)
        model = policy_value_model(config, spec)
        params, apply = parameters(model), jax.jit(model.apply)
        outputs[dtype] = apply(params, model.carry((B, A)), x, reset)
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves((params, outputs[dtype])))
        assert ("bf16" in str(jax.make_jaxpr(model.apply)(params, model.carry((B, A)), x, reset))) == (dtype == "bfloat16")
    pairs = list(zip(*map(jax.tree.leaves, outputs.values()), strict=True))
    assert all(0 < np.abs(a - b).max() < 0.05 for a, b in pairs)


def test_a_tree_of_observations_needs_a_network_of_its_own():
    spec = EnvSpec((Discrete(2), Box(0.0, 1.0, (3,))), Discrete(4), num_agents=A)
    for build in (policy_model, value_model, policy_value_model, lambda c, s: value_model(c, s, central=True)):
        with pytest.raises(ValueError, match="register_network"):
            build(MLP, spec)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"torso": "gur"}, "network.torso 'gur'"),
        ({"torso": ["mlp"]}, "network.torso"),
        ({"activation": "tahn"}, "network.activation 'tahn': did you mean tanh"),
        ({"trunk": "share"}, "network.trunk 'share': did you mean shared"),
        ({"sharing": "agents"}, "network.sharing 'agents': did you mean agent"),
        ({"hidden": 64}, "network.hidden .* got 64"),
        ({"hidden": (64, 0)}, "network.hidden .* got"),
        ({"hidden": (64, 1.5)}, "network.hidden .* got"),
        ({"torso": "gru", "after": (True,)}, "network.after .* got"),
        ({"after": (64,)}, "network.torso: gru"),
        ({"recurrent": 0}, "network.recurrent .* got 0"),
        ({"layer_norm": "yes"}, "network.layer_norm .* got 'yes'"),
        ({"log_std": math.nan}, "network.log_std .* got nan"),
        ({"log_std": 3}, "network.log_std .* got 3"),
        ({"log_std": "0"}, "network.log_std .* got '0'"),
        ({"torso": "cnn", "channels": ()}, "network.channels is empty"),
        ({"torso": "cnn", "channels": (8, 8, 8), "kernels": (3, 3)}, r"network.kernels .* 3 network.channels, got \[3, 3\]"),
        ({"torso": "cnn", "strides": (0,)}, "network.strides .* got"),
        ({"padding": "sane"}, "network.padding 'sane': did you mean same"),
        ({"compute_dtype": "float16"}, "network.compute_dtype 'float16'"),
    ],
)
def test_wrong_fields_are_refused_by_name_and_value(fields, message):
    with pytest.raises(ValueError, match=message):
        NetworkConfig(**fields)


def test_a_config_is_hashable_whatever_it_was_given():
    config = NetworkConfig(hidden=[64, 64], log_std=0)
    assert config == NetworkConfig() and hash(config) == hash(NetworkConfig())
    assert isinstance(config.hidden, tuple) and isinstance(config.log_std, float)


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(networks, "_builders", dict(networks._builders))


def linear(config, spec, role, outputs=1):
    """A bias for every output; what it was asked for is in its parameters."""
    size = {"actor": spec.action_space.n}.get(role, outputs)
    return Model(
        init=lambda key: jax.random.normal(key, (size,)),
        carry=lambda shape: (),
        apply=lambda params, carry, x, reset: (jnp.broadcast_to(params, (*reset.shape, size)), carry),
    )


def test_a_network_of_ones_own(clean_registry):
    register_network("linear", linear)
    assert network_names() == ["default", "linear"]
    config = NetworkConfig(name="linear")
    x, reset = draw()
    model = policy_model(config, SPEC)
    assert model.apply(model.init(jax.random.key(0)), (), x, reset)[0].shape == (T, B, A, 4)
    model = value_model(config, SPEC, outputs=A, central=True)
    assert model.apply(model.init(jax.random.key(0)), (), x[:, :, :1], reset[:, :, :1])[0].shape == (T, B, 1, A)
    # sharing is the framework's: every network has it
    model = policy_model(dataclasses.replace(config, sharing="agent"), SPEC)
    assert model.init(jax.random.key(0)).shape == (A, 4)
    with pytest.raises(ValueError, match="did you mean linear"):
        policy_model(NetworkConfig(name="linaer"), SPEC)


def test_a_builder_of_single_values_is_not_asked_for_more(clean_registry):
    register_network("single", lambda config, spec, role: linear(config, spec, role))
    config = NetworkConfig(name="single")
    assert isinstance(value_model(config, SPEC), Model)
    with pytest.raises(ValueError, match="network 'single' must give 3 values"):
        value_model(config, SPEC, outputs=3)


@pytest.mark.parametrize(
    ("name", "builder", "message"),
    [("default", linear, "already"), ("", linear, "non-empty"), (3, linear, "non-empty"), ("mine", None, "function")],
)
def test_registering_refuses_what_could_not_work(clean_registry, name, builder, message):
    with pytest.raises(ValueError, match=message):
        register_network(name, builder)


def test_a_name_that_has_gone_is_unknown(clean_registry):
    register_network("passing", linear)
    config = NetworkConfig(name="passing")
    del networks._builders["passing"]
    with pytest.raises(ValueError, match="unknown network.name 'passing'.*register_network"):
        policy_model(config, SPEC)

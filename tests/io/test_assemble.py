import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms.ppo import PPOConfig, networks
from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.env_numbers import with_numbers
from agentgym_jax.io.config.experiment import EnvConfig
from agentgym_jax.io.config.files import shipped_configs
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.sweeps.groups import groups
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.networks import policy_model
from agentgym_jax.types import Clock
from envs_jax import make
from envs_jax.probes import Policy
from envs_jax.spaces import Box
from tests.io.support import tiny

# Published runs that differ from one that is traced in the map or kitchen alone; those are traced with the other environments.
SAME = re.compile(r"jaxmarl/(smax_(?!2s3z_)|overcooked_(?!cramped_room)).*_full")


@pytest.mark.parametrize("name", [name for name in shipped_configs() if not SAME.fullmatch(name)])
def test_every_shipped_config_traces(name, relaxed_rank_promotion):
    # A search traces as it stands; of a sweep every group would, and its first is enough here.
    assembly = assemble(groups(dataclasses.replace(load_experiment(name), search={}))[0].experiment)
    keys, hyper = assembly.member_inputs()
    key, hyper = keys[0], jax.tree.map(lambda x: x[0], hyper)
    state = jax.eval_shape(assembly.loop.init, key, hyper)
    after, curves = jax.eval_shape(assembly.loop.advance, state, hyper, Clock(jnp.int32(0), jnp.int32(1)))
    assert [(x.shape, x.dtype) for x in jax.tree.leaves(after)] == [(x.shape, x.dtype) for x in jax.tree.leaves(state)]
    assert {"episode_return", "episode_length", "episodes", "diverged"} <= set(curves)
    assert assembly.spec.num_agents is not None


def test_the_trainer_sees_an_agent_axis_and_unit_actions_the_user_does_not():
    assembly = assemble(tiny("env=probe/continuous"))
    assert assembly.spec.num_agents == 1
    assert assembly.spec.action_space == Box(-1, 1, (1,))
    assert assembly.env.spec.num_agents is None
    assert assembly.env.spec.action_space == Box(-1, 3, (1,))


def test_wrappers_are_applied_in_order_and_team_reward_last():
    experiment = tiny("env={id: probe/individual, reward: team, wrappers: [agent_ids, {name: frame_stack, size: 2}]}")
    spec = assemble(experiment).spec
    assert spec.reward == "team"
    assert spec.observation_space.shape == (8,)  # (two features and two ids) twice


def test_plan_follows_the_environment_where_nothing_is_said():
    plan = assemble(tiny()).plan
    assert (plan.iterations, plan.points, plan.calls, plan.iterations_per_call) == (4, 2, 2, 1)
    assert plan.cap == 1  # the probe's limit
    assert plan.reset == "fresh"
    assert assemble(tiny("train.reset=pool", "eval.cap=7")).plan.cap == 7
    assert assemble(tiny("env=gymnax/CartPole-v1")).plan.reset == "pool"


def test_an_environment_says_itself_how_it_is_reset():
    def plan(mode):
        env = type("Mine", (Policy,), {"reset_mode": mode})()
        return assemble(dataclasses.replace(tiny(), env=EnvConfig(env))).plan

    assert plan("pool").reset == "pool"
    with pytest.raises(ConfigError, match="reset_mode of the environment must be fresh or pool, got 'sometimes'"):
        plan("sometimes")


def test_warm_up_counts_as_steps():
    assert assemble(tiny()).steps(4) == 64
    assert assemble(tiny("algorithm.normalise_observations=true")).steps(4) == 80


def test_members_have_their_own_root_key_and_numbers():
    experiment = dataclasses.replace(tiny("seeds=[3, 7]"), sweep={"algorithm.gamma": [0.9, 0.8]})
    keys, hyper = assemble(experiment).member_inputs()
    expected = jax.random.key_data(jnp.stack([jax.random.key(seed) for seed in (3, 7, 3, 7)]))
    assert jnp.array_equal(jax.random.key_data(keys), expected)
    assert hyper.gamma.tolist() == np.float32([0.9, 0.9, 0.8, 0.8]).tolist()
    assert all(x.dtype == jnp.float32 and not x.weak_type for x in jax.tree.leaves(hyper))


def test_environment_numbers_keep_their_dtype():
    env = make("probe/constant")
    params = with_numbers(env.default_params, {"scale": 2})
    assert params.scale.dtype == env.default_params.scale.dtype
    assert params.scale == 2
    assert with_numbers(env.default_params, {}) is env.default_params


def test_a_changed_number_of_the_environment_can_be_played():
    env = make("gymnax/CartPole-v1")
    params = with_numbers(env.default_params, {"gravity": 1.5})
    assert params.gravity == 1.5
    jax.eval_shape(lambda key: env.transition(key, *env.reset(key, params)[:1], jnp.int32(0), params), jax.random.key(0))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["env.params.scal=2"], "unknown key env.params.scal; did you mean scale?"),
        (["env.params.scale=big"], "env.params.scale: must be a number"),
        (["env.params.scale=[1, 2]"], "env.params.scale: must have the shape"),
        (["env.kwargs.dely=2", "env.id=probe/memory"], "dely"),
        (["env.wrappers=[frame_stak]"], "unknown wrapper 'frame_stak'.*frame_stack"),
        (["env.reward=team"], "single-agent"),
        (["algorithm.minibatches=3"], "algorithm.minibatches: 3 does not divide .* 16"),
        (["network.torso=gru", "algorithm.minibatches=8"], "algorithm.minibatches: 8 does not divide train.num_envs = 4"),
        (["network.trunk=shared", "algorithm.name=mappo"], "network.trunk"),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_anything_compiles(overrides, message):
    with pytest.raises(ValueError, match=message) as caught:
        assemble(tiny("env={id: probe/policy}", *overrides))
    assert "\n" not in str(caught.value)


def test_networks_may_be_models():
    experiment = tiny()
    spec = assemble(experiment).spec
    config = NetworkConfig(hidden=(4,))
    models = networks(config, spec, PPOConfig())
    models["actor"] = policy_model(NetworkConfig(hidden=(5,)), spec)
    own = dataclasses.replace(experiment, network=models)
    state = jax.eval_shape(assemble(own).loop.init, jax.random.key(0), assemble(own).hyper)
    widths = {x.shape[-1] for x in jax.tree.leaves(state.learner.params["actor"])}
    assert 5 in widths

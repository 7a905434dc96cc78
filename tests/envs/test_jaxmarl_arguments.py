"""What the adapters of jaxmarl take, pass on and refuse; how the library is imported, and named where it is missing."""

import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.adapters import jaxmarl
from envs_jax.spaces import Box, Discrete

from .contract import QUICK, check_training, check_types

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # the library relies on rank promotion


class Marching:
    """A policy of two numbers: every unit does the action that its parameters say."""

    def apply(self, params, observation):
        return SimpleNamespace(sample=lambda seed: jnp.full(len(observation), params["action"])), None


def test_a_learned_opponent_acts_by_numbers_that_may_vary():
    """Its parameters are numbers of the environment, strong and mapped: one enemy team stands, the other walks to the left."""
    policy, stay, left = Marching(), 4, 3
    env = jaxmarl.make("smax_3m", opponent="learned", policy=policy, policy_params={"action": stay})
    check_types(env)

    def places(action):
        params = env.default_params.replace(opponent={"action": action})
        state = env.initial(jax.random.PRNGKey(0), params)
        after, _ = env.transition(jax.random.PRNGKey(1), state, jnp.full(3, 4, jnp.int32), params)
        return after.library.state.unit_positions - state.library.state.unit_positions

    stood, walked = jax.jit(jax.vmap(places), compiler_options=QUICK)(jnp.array([stay, left], jnp.int32))
    np.testing.assert_allclose(stood, 0.0, atol=1e-5)
    np.testing.assert_allclose(walked[3:], np.tile([-3.15 / 2, 0.0], (3, 1)), atol=1e-3)  # marines, half a second


def test_smax_options():
    conic = jaxmarl.make("smax_3m", observation_type="conic")
    check_types(conic)
    assert conic.spec.observation_space.shape == (13 * 64 + 10,)
    continuous = jaxmarl.make("smax_2s3z", action_type="continuous", time_limit=7)
    check_types(continuous)
    assert (continuous.spec.action_space, continuous.spec.episode_limit) == (Box(0, 1, (4,)), 7)
    given = {"see_enemy_actions": False, "walls_cause_death": False, "won_battle_bonus": 2, "world_steps_per_env_step": 4}
    library = jaxmarl.make("smax_8m", attack_mode="random", enemy_shoots=False, **given).library
    assert (library.attack_mode, library.enemy_shoots) == ("random", False)
    assert {name: getattr(library._env, name) for name in given} == given


def test_smax_defaults_are_those_of_the_librarys_baselines():
    library = jaxmarl.make("smax_5m_vs_6m").library
    assert (library.attack_mode, library.enemy_shoots) == ("closest", True)
    assert (library.see_enemy_actions, library.walls_cause_death, library.max_steps) == (True, True, 101)


def test_particles_have_groups_where_agents_differ():
    tag = jaxmarl.make("MPE_simple_tag_v3", num_adversaries=4, num_obs=1, damping=0.5).spec
    assert [(group.name, group.size, group.observation_space.shape) for group in tag.groups] == [
        ("adversary", 4, (16,)),
        ("agent", 1, (14,)),
    ]
    world = jaxmarl.make("MPE_simple_world_comm_v3", action_type="discrete")
    check_types(world)
    assert [group.action_space for group in world.spec.groups] == [Discrete(20), Discrete(5), Discrete(5)]
    mask = jax.eval_shape(lambda key: world.reset(key, ())[1].action_mask, jax.random.PRNGKey(0))
    assert mask.shape == (6, 20) and world.spec.own_actions is not None
    spread = jaxmarl.make("MPE_simple_spread_v3", num_agents=5, num_landmarks=5, local_ratio=1, action_type="continuous")
    assert (spread.spec.groups, spread.spec.agents, spread.spec.action_space) == ((), 5, Box(0, 1, (5,)))


def test_the_prey_of_facmac_is_the_librarys():
    env = jaxmarl.make("MPE_simple_facmac_6a_v1")
    assert (env.spec.agents, env.names) == (6, tuple(f"adversary_{i}" for i in range(6)))
    check_training(env)


def test_overcooked_options():
    small = jaxmarl.make("overcooked_v2_grounded_coord_simple", agent_view_size=2, negative_rewards=True)
    check_types(small)
    assert small.spec.observation_space.shape == (5, 5, 40) and small.library.negative_rewards is True
    more = jaxmarl.make("overcooked_v2_cramped_room", indicate_successful_delivery=True, agent_view_size=None)
    assert more.spec.observation_space.shape == (4, 5, 31)
    for name in ("overcooked_coord_ring", "overcooked_v2_coord_ring"):
        env = jaxmarl.make(name, random_reset=True, reward="individual")
        check_types(env)
        assert (env.spec.reward, env.spec.episode_limit, env.library.random_reset) == ("individual", 400, True)
        assert env.default_params.shaping == 0


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("smax_3n", {}, "unknown jaxmarl environment 'smax_3n': did you mean smax_3m"),
        ("smax_3m", {"oponent": "learned"}, "unknown argument of jaxmarl/smax_3m 'oponent': did you mean opponent"),
        ("smax_3m", {"scenario": "8m"}, "unknown argument of jaxmarl/smax_3m 'scenario'"),
        ("smax_3m", {"opponent": "heuristics"}, "unknown opponent of jaxmarl/smax_3m 'heuristics': did you mean heuristic"),
        (
            "smax_3m",
            {"opponent": "learned"},
            "opponent learned needs policy, an object with `apply`, and policy_params",
        ),
        ("smax_3m", {"policy_params": {}}, "policy and policy_params are for opponent: learned, got opponent 'heuristic'"),
        ("smax_3m", {"attack_mode": "nearest"}, "unknown attack_mode of jaxmarl/smax_3m 'nearest': .*closest"),
        ("smax_3m", {"observation_type": "cone"}, "unknown observation_type .*conic"),
        ("smax_3m", {"see_enemy_actions": 1}, "jaxmarl/smax_3m: see_enemy_actions must be true or false, got 1"),
        ("smax_3m", {"enemy_shoots": "no"}, "jaxmarl/smax_3m: enemy_shoots must be true or false, got 'no'"),
        ("smax_3m", {"won_battle_bonus": "1"}, "won_battle_bonus must be a finite number, got '1'"),
        ("smax_3m", {"world_steps_per_env_step": 0}, "world_steps_per_env_step must be a whole number, at least 1, got 0"),
        ("smax_3m", {"time_limit": 0}, "jaxmarl/smax_3m: time_limit must be a whole number of steps, at least 1, got 0"),
        ("MPE_simple_spread_v3", {"num_agent": 4}, "unknown argument of .* 'num_agent': did you mean num_agents"),
        ("MPE_simple_spread_v3", {"num_agents": 2.5}, "num_agents must be a whole number, at least 1, got 2.5"),
        ("MPE_simple_spread_v3", {"local_ratio": 2}, "jaxmarl/MPE_simple_spread_v3: local_ratio must be between 0.0 and 1.0"),
        ("MPE_simple_tag_v3", {"contact_margin": 0}, "contact_margin must be a finite number of at least 1e-06, got 0"),
        ("MPE_simple_spread_v3", {"action_type": "discret"}, "unknown action_type .* 'discret': did you mean discrete"),
        ("MPE_simple_reference_v3", {"num_agents": 3}, "SimpleReferenceMPE only supports 2 agents"),
        ("MPE_simple_facmac_6a_v1", {"dt": 0.2}, "unknown argument of jaxmarl/MPE_simple_facmac_6a_v1 'dt'"),
        ("overcooked_cramped_room", {"layout": "coord_ring"}, "unknown argument of jaxmarl/overcooked_cramped_room 'layout'"),
        ("overcooked_cramped_room", {"reward": "teams"}, "unknown reward .* 'teams': did you mean team"),
        ("overcooked_cramped_room", {"agent_view_size": 2}, "unknown argument of .* 'agent_view_size'"),
        ("overcooked_v2_cramped_room", {"agent_view_size": 0}, "agent_view_size must be a whole number, at least 1, got 0"),
        ("overcooked_v2_cramped_room", {"random_reset": "yes"}, "random_reset must be true or false, got 'yes'"),
    ],
)
def test_bad_input_is_one_clear_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message) as caught:
        jaxmarl.make(name, **kwargs)
    assert "\n" not in str(caught.value)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxmarl", None)
    with pytest.raises(ValueError, match=r"smax_3m needs the package jaxmarl, .*: pip install agentgym-jax\[jaxmarl\]"):
        envs_jax.make("jaxmarl/smax_3m")


def test_import_and_build_are_silent_and_leave_no_mark(tmp_path):
    program = """
import io, sys, warnings, jax
sys.stdout = stream = io.StringIO()  # as in a notebook; the library would put the first one back
before = list(warnings.filters), sys.stdout, sys.stderr, sys.__stdout__
from envs_jax.adapters import jaxmarl
jaxmarl.make("overcooked_cramped_room")
assert (list(warnings.filters), sys.stdout, sys.stderr, sys.__stdout__) == before and stream.getvalue() == ""
"""
    command = [sys.executable, "-W", "error::DeprecationWarning", "-W", "error::UserWarning", "-c", program]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

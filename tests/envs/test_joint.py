"""Several agents as one: what it sees, how its action is taken apart, masks of the dead, rewards and ends."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.core import EnvSpec, Group, TimeStep
from envs_jax.probes import make
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from envs_jax.wrappers import Joint, TeamReward

from .contract import check
from .stubs import Counter, Deaths, Echo, Shown, play

KEY = jax.random.key(0)


class Given(Shown):
    """Agents that see one given observation [A, ...] and are told which of their actions are legal."""

    def __init__(self, spec, observation, mask=()):
        self.spec, self.observation, self.mask = spec, observation, mask

    def advance(self, key, state, action, params):
        return action, jnp.zeros(self.spec.num_agents)

    def initial(self, key, params):
        return jnp.zeros((self.spec.num_agents, *self.spec.action_space.shape), self.spec.action_space.dtype)

    def observe(self, state, params):
        ones = jnp.ones(self.spec.num_agents)
        return TimeStep(self.observation, 0 * ones, ones, ones > 0, jnp.bool_(False), self.mask)


def grouped(narrow, wide):
    """One agent that sees a number and has the narrow actions, and one that sees two."""
    see = Box(0, 1, (1,)), Box(0, 2, (2,))
    return EnvSpec(see[1], wide, 2, groups=(Group("a", 1, see[0], narrow), Group("b", 1, see[1], wide)))


@pytest.mark.parametrize("actions", ["factorised", "product"])
def test_it_keeps_the_contract(actions):
    for env in (make("team"), make("individual"), make("two_groups"), make("respawn", reward="individual"), Deaths()):
        joint = Joint(env, actions)
        assert joint.spec.num_agents is None and joint.spec.groups == ()
        check(joint)


def test_observations_stand_side_by_side_without_padding():
    env = make("two_groups")
    joint = Joint(env)
    assert joint.spec.observation_space == Box(-1, 1, (4,))
    state, timestep = joint.reset(KEY, env.default_params)
    np.testing.assert_array_equal(timestep.observation, state.cue)
    pictures = Box(0, (((1, 2),) * 2,) * 2, (2, 2, 2))
    images = jnp.arange(24, dtype=jnp.float32).reshape(3, 2, 2, 2)
    seen = Joint(Given(EnvSpec(pictures, Discrete(2), 3), images)).reset(KEY, ())[1].observation
    assert seen.shape == (2, 2, 6)
    np.testing.assert_array_equal(seen[..., 2:4], images[1])
    for space, x, n in ((Discrete(5), [4, 2], (5, 5)), (MultiDiscrete((2, 3)), [[1, 2], [0, 1]], (2, 3, 2, 3))):
        joint = Joint(Given(EnvSpec(space, Discrete(2), 2), jnp.asarray(x, jnp.int32)))
        assert joint.spec.observation_space == MultiDiscrete(n)
        np.testing.assert_array_equal(joint.reset(KEY, ())[1].observation, np.ravel(x))


def test_the_world_in_place_of_observations():
    env = make("respawn")
    joint = Joint(env, world=True)
    state, timestep = joint.reset(KEY, env.default_params)
    assert joint.spec.observation_space == env.spec.world_space
    np.testing.assert_array_equal(timestep.observation, env.world(state, env.default_params))


@pytest.mark.parametrize(
    ("narrow", "wide", "joint", "action", "apart"),
    [
        (Discrete(2), Discrete(3), MultiDiscrete((2, 3)), [1, 2], [1, 2]),
        (MultiDiscrete((2,)), MultiDiscrete((3, 4)), MultiDiscrete((2, 3, 4)), [1, 2, 3], [[1, 0], [2, 3]]),
        (Box(-1, 1, (1,)), Box(-2, 2, (2,)), Box((-1, -2, -2), (1, 2, 2), (3,)), [0.5, 1.5, -2.0], [[0.5, 0], [1.5, -2.0]]),
    ],
    ids=["choice", "choices", "continuous"],
)
def test_an_action_is_taken_apart(narrow, wide, joint, action, apart):
    env = Joint(Given(grouped(narrow, wide), jnp.zeros((2, 2))))
    assert env.spec.action_space == joint
    state, _ = env.transition(KEY, env.initial(KEY, ()), jnp.asarray(action, joint.dtype), ())
    np.testing.assert_array_equal(state, np.asarray(apart, joint.dtype))


def test_the_product_counts_with_the_first_head_fastest_and_masks_what_anybody_may_not():
    spec = grouped(Discrete(2), Discrete(3))
    mask = jnp.asarray([[True, True, True], [False, True, True]])  # what agent a does not have counts for nothing
    env = Joint(Given(spec, jnp.zeros((2, 2)), mask), "product")
    assert env.spec.action_space == Discrete(6)
    legal = env.reset(KEY, ())[1].action_mask
    for action, (second, first) in enumerate(itertools.product(range(3), range(2))):
        assert env.transition(KEY, jnp.zeros(2, jnp.int32), jnp.int32(action), ())[0].tolist() == [first, second]
        assert bool(legal[action]) == bool(mask[1, second])
    factorised = Joint(Given(spec, jnp.zeros((2, 2)), mask))
    assert factorised.reset(KEY, ())[1].action_mask.tolist() == [True, True, False, True, True]


def test_who_may_do_nothing_does_not_restrict_the_others():
    mask = jnp.asarray([[False, False], [True, True]])
    spec = EnvSpec(Box(0, 1, (1,)), Discrete(2), 2)
    for actions, legal in (("factorised", [True, False, True, True]), ("product", [True, False, True, False])):
        env = Joint(Given(spec, jnp.zeros((2, 1)), mask), actions)
        assert env.reset(KEY, ())[1].action_mask.tolist() == legal


def test_rewards_are_the_teams_or_the_sum_and_only_the_end_has_no_future():
    """Agents die after 2, 5 and 9 steps and are paid 1, 2 and 3 while they live."""
    for env in (Joint(Deaths()), Joint(TeamReward(Deaths()))):
        steps = play(env, 10)
        assert steps.reward.tolist() == [0, 6, 6, 5, 5, 5, 3, 3, 3, 3, 0]
        assert steps.discount.tolist() == [1] * 9 + [0] * 2 and steps.last.tolist() == [False] * 9 + [True] * 2
        assert steps.alive.all() and steps.metrics["living"].tolist() == [3, 3, 2, 2, 2, 1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("env", "arguments", "message"),
    [
        (Counter(), {}, "joint needs an environment with several agents"),
        (Deaths(), {"actions": "products"}, "'products': did you mean product"),
        (Deaths(), {"world": 1}, "joint.world must be true or false"),
        (Echo(Box(-1, 1, (2,)), agents=2), {"world": True}, "joint.world: .* no world state"),
        (Echo(Box(-1, 1, (2,)), agents=2), {"actions": "product"}, "product needs Discrete actions"),
        (Echo(Box(-1, 1, (2, 2)), agents=2), {}, "actions that are one vector"),
        (Given(EnvSpec(Box(0, 1, (1,)), Discrete(9), 4), jnp.zeros((4, 1))), {"actions": "product"}, "6,561 actions, .* 4096"),
        (Given(EnvSpec((Discrete(2),), Discrete(2), 2), ()), {}, "one array, .*flatten"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(env, arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        envs_jax.apply_wrappers(env, [{"name": "joint", **arguments}])
    assert "\n" not in str(error.value)

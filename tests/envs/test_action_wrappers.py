"""Sticky and discretised actions, and actions padded to a common number."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.core import Group
from envs_jax.probes import make
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from envs_jax.wrappers import AgentAxis, DiscretiseActions, Pad, StickyActions, TimeLimit, apply_wrappers
from tests.support import Story

from .contract import QUICK, check
from .stubs import Counter, Deaths, Echo, play

KEY = jax.random.key(0)
TWO_KINDS = (Group("a", 1, Box(0, 1, (1,)), Box(0, 3, (1,))), Group("b", 2, Box(0, 1, (2,)), Box((0, 1), (5, 2), (2,))))


def done(env, actions):
    """What `Echo` inside `env` was told to do, for actions [T, ...]."""

    @functools.partial(jax.jit, compiler_options=QUICK)
    def run(keys):
        def step(state, inputs):
            state, timestep = env.transition(inputs[0], state, inputs[1], ())
            return state, timestep.observation

        return jax.lax.scan(step, env.initial(KEY, ()), (keys, actions))[1]

    return np.asarray(run(jax.random.split(KEY, len(actions))))


def test_sticky_actions_repeat_what_was_done_as_often_as_they_say():
    steps = 4000
    chosen = np.broadcast_to(np.arange(steps, dtype=np.float32)[:, None, None], (steps, 2, 1))
    executed = done(StickyActions(Echo(Box(0, steps, (1,)), agents=2), 0.25), jnp.asarray(chosen))[..., 0]
    stuck = executed != chosen[..., 0]
    np.testing.assert_array_equal(executed[1:][stuck[1:]], executed[:-1][stuck[1:]])
    assert not stuck[0].any()
    assert np.all(np.abs(stuck.mean(axis=0) - 0.25) < 0.03)
    assert abs(np.mean(stuck[:, 0] & stuck[:, 1]) - 0.25**2) < 0.02, "agents draw for themselves"


@pytest.mark.parametrize(("probability", "wanted"), [(0, [0, 1, 2, 3]), (1, [0, 0, 0, 0])])
def test_sticky_actions_never_and_always(probability, wanted):
    env = StickyActions(Echo(Box(0, 9, (1,))), probability)
    assert done(env, jnp.arange(4, dtype=jnp.float32)[:, None])[:, 0].tolist() == wanted


def test_sticky_actions_do_not_stick_across_episodes():
    env = StickyActions(Counter(length=3), 1)
    for first in (3, 1):
        steps = play(env, 3, jnp.asarray([first, 2, 0]))
        assert steps.reward.tolist() == [0, first, first, first]


@pytest.mark.parametrize("space", [Discrete(3), MultiDiscrete((3, 4))], ids=str)
def test_sticky_actions_are_legal_and_those_of_the_same_agent(space):
    """`Story` tells by its reward what was done; a slot's next agent must not go on with what the one before did."""
    env, heads = StickyActions(Story(agents=3, action_space=space, longest=20), 1), len(space.shape)
    steps, key = 12, jax.random.key(1)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def run(state):
        def step(state, key):
            seen = env.observe(state, ())
            chosen = env.spec.sample_actions(key, seen)
            state, after = env.transition(key, state, chosen, ())
            return state, (seen, chosen, state.action, after.reward)

        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    seen, chosen, executed, reward = jax.tree.map(np.asarray, run(env.initial(key, ())))
    told = 2 * (reward - np.arange(1, steps + 1)[:, None] / 4 - np.arange(3)[None])
    np.testing.assert_array_equal(executed.sum(-1) if heads else executed, np.round(told))
    starts = np.cumsum([0, *space.nvec[:-1]]) if heads else np.zeros(1, int)
    repeated = 0
    for t, agent in np.ndindex(steps, 3):
        mask, old = seen.action_mask[t, agent], np.atleast_1d(executed[t - 1, agent])
        sticks = t > 0 and seen.alive[t - 1, agent] and seen.alive[t, agent] and mask[starts + old].all()
        np.testing.assert_array_equal(executed[t, agent], (executed[t - 1] if sticks else chosen[t])[agent])
        repeated += sticks
    assert 0 < repeated < steps * 3


@pytest.mark.parametrize("probability", [-0.1, 1.5, "often", True, float("nan")])
def test_sticky_actions_refuse(probability):
    with pytest.raises(ValueError, match=r"sticky_actions\.probability must be .* between 0 and 1"):
        StickyActions(Counter(), probability)


def test_discretised_actions_reach_the_bounds_exactly():
    space = Box((-0.1, -2), (0.3, 2), (2,))
    env = DiscretiseActions(Echo(space), (3, 5))
    assert env.spec.action_space == MultiDiscrete((3, 5))
    executed = done(env, jnp.asarray([[0, 0], [1, 1], [1, 2], [2, 4]]))
    low, high = (np.asarray(bound, np.float32) for bound in space.bounds())
    np.testing.assert_array_equal(executed[[0, 3]], [low, high])
    np.testing.assert_allclose(executed[1:3], [[0.1, -1], [0.1, 0]], atol=1e-7)


def test_discretised_actions_of_any_shape():
    env = DiscretiseActions(Echo(Box(-1, 1, (2, 1)), agents=2), 3)
    assert env.spec.action_space == MultiDiscrete((3, 3))
    assert done(env, jnp.asarray([[[0, 1], [2, 2]]]))[0].tolist() == [[[-1], [0]], [[1], [1]]]
    scalar = DiscretiseActions(Echo(Box(-1, 1)), 2)
    assert done(scalar, jnp.asarray([[0], [1]])).tolist() == [-1, 1]


def test_discretised_actions_as_one_choice():
    env = DiscretiseActions(Echo(Box((0, 0), (1, 2), (2,))), (2, 3), joint=True)
    assert env.spec.action_space == Discrete(6)
    assert done(env, jnp.arange(6)).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]]


@pytest.mark.parametrize("joint", [False, True])
def test_discretised_actions_of_groups(joint):
    """Each group has its own values; what an agent lacks is masked, and never drawn."""
    env = DiscretiseActions(Echo(Box(0, 5, (2,)), agents=3, groups=TWO_KINDS), (2, 3), joint)
    sizes = [Discrete(2), Discrete(6)] if joint else [MultiDiscrete((2,)), MultiDiscrete((2, 3))]
    assert [group.action_space for group in env.spec.groups] == sizes
    timestep = env.observe(env.initial(KEY, ()), ())
    draws = np.asarray(jax.vmap(env.spec.sample_actions, (0, None))(jax.random.split(KEY, 300), timestep))
    assert (draws[:, 0].max() == 1) if joint else (draws[:, 0, 1] == 0).all()
    assert draws[:, 1:].max() == (5 if joint else 2)
    most = jnp.full((1, 3), 5).at[0, 0].set(1) if joint else jnp.asarray([[[1, 0], [1, 2], [1, 2]]])
    executed = done(env, most)[0]
    assert executed[0, 0] == 3 and executed[1:].tolist() == [[5, 2], [5, 2]]
    check(AgentAxis(DiscretiseActions(make("continuous"), 5, joint)))


@pytest.mark.parametrize(
    ("space", "bins", "message"),
    [
        (Discrete(3), 3, "discretise_actions needs actions of a floating-point Box"),
        (Box(0, np.inf, (1,)), 3, "discretise_actions needs a finite range"),
        (Box(0, 1, (2,)), 1, r"discretise_actions\.bins must be"),
        (Box(0, 1, (2,)), [3, 3, 3], "or 2 of them"),
        (Box(0, 1, (8,)), 9, "43,046,721 joint actions are more than 4096"),
    ],
)
def test_discretised_actions_refuse(space, bins, message):
    with pytest.raises(ValueError, match=message):
        apply_wrappers(Counter(action_space=space), [{"name": "discretise_actions", "bins": bins, "joint": True}])


def paid(env, state, actions):
    """The reward of each action in one state."""
    pay = jax.vmap(lambda action: env.transition(KEY, state, action, env.default_params)[1].reward)
    return pay(jnp.asarray(actions, jnp.int32)).tolist()


def test_padded_actions_are_never_legal():
    """Two environments with two and three actions, as one network sees them: equal shapes, equal meanings, no surplus drawn."""
    for probe, own in (("policy", 2), ("masked", 3)):
        plain, env = make(probe), Pad(make(probe), actions=5)
        _, want = plain.reset(KEY, plain.default_params)
        state, timestep = env.reset(KEY, env.default_params)
        assert env.spec.action_space == Discrete(5) and timestep.action_mask.shape == (5,)
        assert timestep.action_mask[:own].tolist() == (want.action_mask.tolist() if own == 3 else [True, True])
        draws = jax.vmap(env.spec.sample_actions, (0, None))(jax.random.split(KEY, 300), timestep)
        assert draws.max() == np.flatnonzero(timestep.action_mask).max() < own
        pay, plain_pay = (paid(one, state, range(n)) for one, n in ((env, 5), (plain, own)))
        assert pay[:own] == plain_pay
        assert pay[own:] == [pay[0]] * (5 - own)


def test_padded_actions_of_agents():
    env = Pad(TimeLimit(Deaths(), 4), actions=3)
    assert play(env, 2).action_mask[0].tolist() == [[True, True, False]] * 3
    check(env)
    with pytest.raises(ValueError, match=r"pad\.actions needs Discrete actions, got Box"):
        Pad(make("continuous"), actions=3)
    with pytest.raises(ValueError, match=r"pad\.actions must be a whole number of at least 2, the environment's own, got 1"):
        Pad(make("policy"), actions=1)
    with pytest.raises(ValueError, match="pad needs the argument `observation` or `actions`"):
        Pad(make("policy"))

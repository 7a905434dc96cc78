from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.core import Group
from envs_jax.probes import make
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from envs_jax.wrappers import (
    AgentAxis,
    AgentIds,
    Flatten,
    FrameStack,
    ScaleActions,
    TeamReward,
    TimeLimit,
    Wrapper,
    apply_wrappers,
)

from .contract import check_types
from .stubs import Counter, Deaths, Echo, Shown, play

KEY = jax.random.key(0)


def test_a_wrapper_passes_everything_on():
    inner = Deaths()
    env = Wrapper(TimeLimit(Wrapper(inner), 4))
    assert env.unwrapped is inner and env.spec.metrics == inner.spec.metrics and env.default_params == ()
    state, timestep = env.reset(KEY, ())
    state, timestep = env.transition(KEY, state, jnp.zeros(3, jnp.int32), ())
    assert env.world(state, ()).tolist() == [1.0]
    assert timestep.action_mask.shape == (3, 2) and timestep.metrics == {"living": 3.0}


def test_agent_axis():
    env, plain = AgentAxis(make("masked")), make("masked")
    state, timestep = env.reset(KEY, env.default_params)
    _, want = plain.reset(KEY, plain.default_params)
    assert env.spec.num_agents == 1 and env.spec.reward == "individual"
    assert timestep.last.shape == ()
    for name in ("observation", "reward", "discount", "alive", "action_mask"):
        np.testing.assert_array_equal(getattr(timestep, name)[0], getattr(want, name))
    _, after = env.transition(KEY, state, jnp.asarray([2]), env.default_params)
    assert after.reward.shape == (1,) and after.reward[0] in (1, 10)
    with pytest.raises(ValueError, match="num_agents = 3"):
        AgentAxis(Deaths())


def test_agent_ids():
    env = AgentIds(Deaths())
    observation = env.reset(KEY, ())[1].observation
    assert env.spec.observation_space == Box((0, 0, 0, 0), (10, 1, 1, 1), (4,))
    np.testing.assert_array_equal(observation[:, 1:], np.eye(3))
    with pytest.raises(ValueError, match="single-agent"):
        AgentIds(Counter())
    with pytest.raises(ValueError, match=r"one vector.*flatten"):
        AgentIds(AgentAxis(make("image")))


def test_agent_ids_stand_behind_the_columns_of_the_group():
    env = AgentIds(Deaths(widths=(1, 3, 2)))
    state = jnp.int32(1)
    observation = np.asarray(env.observe(state, ()).observation)
    want = [[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 1, 0], [1, 1, 0, 0, 1, 0]]
    np.testing.assert_array_equal(observation, want)
    assert [group.observation_space.shape for group in env.spec.groups] == [(4,), (6,), (5,)]
    for group, row in zip(env.spec.groups, observation, strict=True):
        assert group.observation_space.contains(row[: group.observation_space.shape[0]])


def test_team_reward():
    env = TeamReward(Deaths())
    steps = play(env, 10)
    assert env.spec.reward == "team"
    assert steps.reward[:, 0].tolist() == [0, 6, 6, 5, 5, 5, 3, 3, 3, 3, 0]
    assert (steps.reward == steps.reward[:, :1]).all()
    assert (steps.discount[:9] == 1).all() and (steps.discount[9:] == 0).all()
    assert not steps.alive[2, 0] and steps.alive[2, 1]
    with pytest.raises(ValueError, match="single-agent"):
        TeamReward(Counter())


def test_team_reward_at_a_time_limit_is_no_end():
    for env in (TeamReward(TimeLimit(Deaths(), 4)), TimeLimit(TeamReward(Deaths()), 4)):
        steps = play(env, 4)
        assert steps.last.tolist() == [False] * 4 + [True] and (steps.discount == 1).all()


def test_team_reward_leaves_a_team_alone():
    env = TeamReward(make("team"))
    state, timestep = env.reset(KEY, env.default_params)
    right = (timestep.observation[:, 0] > 0).astype(jnp.int32)
    assert env.transition(KEY, state, right, env.default_params)[1].reward.tolist() == [1, 1]


def test_frame_stack_starts_with_zeros():
    steps = play(FrameStack(Deaths(), 3), 4)
    assert steps.observation[:, 1].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_frame_stack_is_cut_between_episodes():
    """Each start is free of the episode before, whatever the key."""
    env = FrameStack(Counter(length=2), 4)
    for key in jax.random.split(KEY, 2):
        state, timestep = env.reset(key, env.default_params)
        assert timestep.observation[:3].tolist() == [0, 0, 0] and timestep.observation[3] > 0
        env.transition(key, state, jnp.int32(0), env.default_params)


def test_frame_stack_of_images_and_groups():
    env = FrameStack(make("image"), 2)
    assert env.spec.observation_space == Box(0, 255, (8, 8, 2), np.uint8)
    _, timestep = env.reset(KEY, env.default_params)
    assert (timestep.observation[..., 0] == 0).all() and timestep.observation[..., 1].max() == 255
    env = FrameStack(Deaths(widths=(1, 3, 2)), 2)
    state, _ = env.reset(KEY, ())
    _, timestep = env.transition(
        KEY, *(env.transition(KEY, state, jnp.zeros(3, jnp.int32), ())[0], jnp.zeros(3, jnp.int32)), ()
    )
    assert timestep.observation.tolist() == [[1, 2, 0, 0, 0, 0], [1, 1, 1, 2, 2, 2], [1, 1, 2, 2, 0, 0]]
    assert [group.observation_space.shape for group in env.spec.groups] == [(2,), (6,), (4,)]


def test_frame_stack_widens_the_space_to_hold_zeros():
    env = FrameStack(Shown(Box(1, 2, (1,)), jnp.ones(1)), 2)
    assert env.spec.observation_space == Box(0, 2, (2,))
    for size in (0, 1.5, True):
        with pytest.raises(ValueError, match=r"frame_stack\.size"):
            FrameStack(Counter(), size)
    with pytest.raises(ValueError, match=r"one array.*flatten"):
        FrameStack(Shown(Discrete(3), jnp.int32(1)), 2)


@pytest.mark.parametrize("bound", [(-2.0, 2.0), (-0.1, 0.3), (1e-3, 7.7), (-1.0, 1.0)])
def test_scaled_actions_reach_the_bounds_exactly(bound):
    space = Box((bound[0], -0.4), (bound[1], 0.9), (2,))
    env = ScaleActions(Echo(space))
    step = jax.jit(lambda action: env.transition(KEY, jnp.zeros(2), action, ())[1].observation)
    low, high = (np.asarray(b, np.float32) for b in space.bounds())
    np.testing.assert_array_equal(step(-jnp.ones(2)), low)
    np.testing.assert_array_equal(step(jnp.ones(2)), high)
    np.testing.assert_array_equal(step(jnp.full(2, 9.0)), high)
    np.testing.assert_allclose(step(jnp.zeros(2)), (low + high) / 2, rtol=1e-6, atol=1e-7)
    assert env.spec.action_space == Box(-1, 1, (2,))


def test_scaled_actions_of_a_unit_box_are_untouched():
    env = ScaleActions(Echo(Box(-1, 1, (1,))))
    action = jnp.asarray([1.2345678e-5])
    assert env.transition(KEY, jnp.zeros(1), action, ())[1].observation == action


def test_scaled_actions_of_agents_and_groups():
    env = ScaleActions(Echo(Box(0, 4, (2,)), agents=2))
    assert env.transition(KEY, jnp.zeros((2, 2)), jnp.ones((2, 2)), ())[1].observation.tolist() == [[4, 4], [4, 4]]
    groups = (Group("a", 1, Box(0, 1, (1,)), Box(0, 3, (1,))), Group("b", 1, Box(0, 1, (2,)), Box(0, 5, (2,))))
    env = ScaleActions(Echo(Box(0, 5, (2,)), agents=2, groups=groups))
    assert env.transition(KEY, jnp.zeros((2, 2)), jnp.ones((2, 2)), ())[1].observation.tolist() == [[3, 1], [5, 5]]
    assert [group.action_space for group in env.spec.groups] == [Box(-1, 1, (1,)), Box(-1, 1, (2,))]


@pytest.mark.parametrize(
    "space", [Discrete(3), MultiDiscrete((2, 2)), Box(0, np.inf, (2,)), Box(0, 5, (1,), np.int32)], ids=str
)
def test_scaled_actions_refuse_and_name_the_space(space):
    with pytest.raises(ValueError, match="scale_actions") as caught:
        ScaleActions(Counter(action_space=space))
    assert str(space) in str(caught.value)


def test_flatten():
    spaces = (Discrete(3), Box(0, 9, (2, 2)), MultiDiscrete((2, 2)))
    shown = (jnp.int32(2), jnp.arange(4, dtype=jnp.float32).reshape(2, 2), jnp.asarray([1, 0]))
    env = Flatten(Shown(spaces, shown))
    check_types(env)
    assert env.reset(KEY, ())[1].observation.tolist() == [0, 0, 1, 0, 1, 2, 3, 0, 1, 1, 0]
    assert env.spec.observation_space.contains(env.reset(KEY, ())[1].observation)
    image = Flatten(AgentAxis(make("image")))
    assert image.spec.observation_space == Box(0, 255, (64,), np.uint8)
    assert image.reset(KEY, image.default_params)[1].observation.shape == (1, 64)
    with pytest.raises(ValueError, match="flatten knows"):
        Flatten(Shown(("what",), ()))


@pytest.mark.parametrize("limit", [1, 4, 5, 9])
def test_time_limit_is_exact(limit):
    env = TimeLimit(Counter(length=5), limit)
    steps = play(env, 9)
    end = int(steps.last.argmax())
    assert end == min(limit, 5) == env.spec.episode_limit
    assert steps.discount[end] == (0 if limit >= 5 else 1)
    assert bool(steps.last[end] & (steps.discount[end] > 0)) == (limit < 5)


def test_time_limits_count_for_themselves():
    """Two limits around each other, and an environment that counts too, do not disturb each other."""
    steps = play(TimeLimit(TimeLimit(Counter(length=9), 6), 4), 5)
    assert steps.last.tolist() == [False] * 4 + [True] * 2
    for limit in (0, 2.0, True):
        with pytest.raises(ValueError, match=r"time_limit\.limit"):
            TimeLimit(Counter(), limit)


def test_apply_wrappers_in_order():
    env = apply_wrappers(Deaths(), ["agent_ids", {"name": "frame_stack", "size": 4}])
    assert isinstance(env, FrameStack) and isinstance(env.env, AgentIds) and env.spec.observation_space.shape == (16,)
    env = apply_wrappers(Deaths(), [{"name": "frame_stack", "size": 4}, "agent_ids"])
    assert isinstance(env, AgentIds) and env.spec.observation_space.shape == (7,)
    plain = Counter()
    assert apply_wrappers(plain, []) is plain


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("agent_id", "unknown wrapper 'agent_id': did you mean agent_ids"),
        ({"size": 4}, "unknown wrapper None"),
        ({"name": "frame_stack", "sise": 4}, "unknown argument of wrapper frame_stack 'sise': did you mean size"),
        ("frame_stack", "wrapper frame_stack needs the argument `size`"),
        ({"name": "flatten", "size": 4}, "wrapper flatten takes no `size`"),
    ],
)
def test_apply_wrappers_refuses(entry, message):
    with pytest.raises(ValueError, match=message):
        apply_wrappers(Deaths(), [entry])

"""What a rollout records is what stepping the environments by hand gives, through every kind of end."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.types import Clock, Sizes
from envs_jax import probes
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from envs_jax.wrappers import AgentAxis
from tests.support import Story, compiled, watcher

SIZES = Sizes(num_envs=5, rollout_length=14)
CLOCK = Clock(jnp.int32(0), jnp.int32(10))
BOX = Box(-1, 1, (2,))
STORIES = {space: Story(action_space=space) for space in (Discrete(3), MultiDiscrete((2, 3)), BOX)}
equal = np.testing.assert_array_equal


@functools.cache
def roll(env, mode="fresh", uniform=False, rollouts=2):
    """Actors before each rollout and after the last, and their trajectories, of the watching algorithm."""
    acting = make_acting(env, fixed(env.default_params), watcher(env.spec), SIZES, mode)
    one = compiled(lambda actor, key: unroll(acting, {}, {}, actor, (), key, CLOCK, uniform)[:2])
    actors, trajectories = [compiled(functools.partial(start, acting))((), jax.random.key(0))], []
    for key in jax.random.split(jax.random.key(1), rollouts):
        actor, trajectory = one(actors[-1], key)
        actors.append(actor)
        trajectories.append(jax.tree.map(np.asarray, trajectory))
    return actors, trajectories


@pytest.fixture(scope="module", params=["fresh", "pool"])
def story(request):
    env = Story(world=True)
    return env, *roll(env, request.param)


def ends_of_every_kind(steps):
    """The rollout must hold what the tests are about."""
    assert steps.last.any() and not steps.last.all()
    assert (steps.last & (steps.discount.max(-1) > 0)).any(), "no truncation"
    assert (steps.last & (steps.discount.max(-1) == 0)).any(), "no termination"
    assert (steps.reset[1:] & ~steps.last[:-1, :, None]).any(), "no slot was used again"


def test_every_recorded_step_is_the_environments_own(story):
    """From the state that an observation tells of, the recorded action gives the recorded outcome, before any reset."""
    env, _, trajectories = story
    transition = compiled(jax.vmap(lambda state, action: env.transition(jax.random.key(0), state, action, ())))
    look = compiled(jax.vmap(lambda state: env.observe(state, ())))
    for trajectory in trajectories:
        steps = trajectory.steps
        ends_of_every_kind(steps)
        for t in range(SIZES.rollout_length):
            state = env.state_of(steps.observation[t])
            now = look(state)
            after, outcome = transition(state, steps.action[t])
            equal(now.observation, steps.observation[t])
            equal(now.alive, steps.alive[t])
            equal(now.action_mask, steps.action_mask[t])
            equal(outcome.observation, steps.next_observation[t])
            equal(outcome.alive, steps.next_alive[t])
            equal(outcome.action_mask, steps.next_action_mask[t])
            for field in ("reward", "discount", "last"):
                equal(getattr(outcome, field), getattr(steps, field)[t], err_msg=field)
            for field, moment in {"world": state, "next_world": after}.items():
                equal(jax.vmap(lambda s: env.world(s, ()))(moment), getattr(steps, field)[t], err_msg=field)


def test_inside_an_episode_the_next_observation_is_the_next_row_and_at_an_end_it_is_not(story):
    _, actors, trajectories = story
    for trajectory, after in zip(trajectories, actors[1:], strict=True):
        steps = trajectory.steps
        following = np.concatenate([steps.observation[1:], np.asarray(after.timestep.observation)[None]])
        goes_on = ~steps.last
        equal(following[goes_on], steps.next_observation[goes_on])
        time, new_time = steps.next_observation[..., 0, 0], following[..., 0, 0]
        equal(time[steps.last], steps.next_observation[..., 0, 1][steps.last])  # time = length: the final observation
        equal(new_time[steps.last], 0.0)
        assert np.all(np.any(steps.next_observation[steps.last] != following[steps.last], axis=-1))


def test_rollouts_join_without_a_gap(story):
    """The second starts where the first stopped, with the carry and the reset flags that belong there."""
    _, actors, trajectories = story
    for before, trajectory in zip(actors, trajectories, strict=False):
        steps = trajectory.steps
        equal(before.timestep.observation, steps.observation[0])
        equal(before.reset, steps.reset[0])
        equal(before.carry, trajectory.carry)
    assert np.all(trajectories[0].steps.reset[0])


def test_reset_is_true_at_an_agents_first_observation_and_nowhere_else(story):
    """At time 0 for everybody, and where agent 1's slot has a new agent: at times 3, 6, …"""
    _, _, trajectories = story
    for trajectory in trajectories:
        time = trajectory.steps.observation[..., 0, 0]
        equal(trajectory.steps.reset[..., 0], time == 0)
        equal(trajectory.steps.reset[..., 1], time % 3 == 0)


def test_the_carry_counts_from_each_reset(story):
    """Memory is cut before the first observation is read: the age there is 1."""
    _, _, trajectories = story
    steps = [t.steps for t in trajectories]
    age = np.concatenate([s.extras["age"] for s in steps])
    reset = np.concatenate([s.reset for s in steps])
    expected = np.zeros(age.shape[1:], np.int32)
    for t in range(len(age)):
        expected = np.where(reset[t], 0, expected) + 1
        equal(age[t], expected)


def test_act_sees_the_recorded_observation_and_world(story):
    _, _, trajectories = story
    for trajectory in trajectories:
        equal(trajectory.steps.extras["seen"], trajectory.steps.observation)
        equal(trajectory.steps.extras["world"], trajectory.steps.world)


def test_a_single_agent_probe_with_an_agent_axis():
    """The memory probe: cue at the start, the answer due three steps later, paid ±1 at the end."""
    env = AgentAxis(probes.make("memory", delay=3))
    _, trajectories = roll(env, rollouts=1)
    steps = trajectories[0].steps
    first = np.arange(SIZES.rollout_length) % 4
    equal(steps.last, np.broadcast_to((first == 3)[:, None], steps.last.shape))
    equal(steps.discount[..., 0], np.where(steps.last, 0.0, 1.0))
    equal(steps.reset[..., 0], np.broadcast_to((first == 0)[:, None], steps.last.shape))
    equal(steps.observation[..., 0, 1] == 1, np.broadcast_to((first == 3)[:, None], steps.last.shape))
    for start_row in range(0, 12, 4):
        cue, answer = steps.observation[start_row, :, 0, 0], steps.action[start_row + 3, :, 0]
        equal(steps.reward[start_row + 3, :, 0], np.where((answer == 1) == (cue > 0), 1.0, -1.0))
        equal(steps.reward[start_row : start_row + 3], 0.0)
    assert steps.action_mask == () and steps.next_action_mask == ()
    equal(steps.world, steps.observation.reshape(*steps.last.shape, -1))


@pytest.mark.parametrize("record", [{"observation"}, {"reward", "last", "extras"}, {"next_world"}])
def test_fields_that_record_does_not_name_are_none(record):
    env = Story(longest=3)
    acting = make_acting(env, fixed(()), watcher(env.spec, record), SIZES, "fresh")
    actor = jax.eval_shape(functools.partial(start, acting), (), jax.random.key(0))
    _, trajectory, _ = jax.eval_shape(
        lambda actor, key: unroll(acting, {}, {}, actor, (), key, CLOCK, False), actor, jax.random.key(0)
    )
    kept = {name for name in trajectory.steps.__dataclass_fields__ if getattr(trajectory.steps, name) is not None}
    assert kept == record


@pytest.mark.parametrize("space", STORIES)
def test_uniform_warm_up_takes_every_legal_action_and_no_other(space):
    _, trajectories = roll(STORIES[space], uniform=True)
    steps = jax.tree.map(lambda *x: np.concatenate(x), *[t.steps for t in trajectories])
    if isinstance(space, Box):
        assert steps.action.shape == (*steps.alive.shape, 2)
        assert steps.action.min() < -0.9 and steps.action.max() > 0.9 and np.abs(steps.action).max() <= 1.0
        return
    heads = steps.action.reshape(*steps.alive.shape, -1)
    sizes = (space.n,) if isinstance(space, Discrete) else space.nvec
    offset = 0
    for head, size in enumerate(sizes):
        mask, chosen = steps.action_mask[..., offset : offset + size], heads[..., head]
        legal = np.take_along_axis(mask, chosen[..., None], -1)[..., 0]
        assert np.all(legal[steps.alive])
        equal(chosen[~steps.alive], 0)
        counts = np.bincount(chosen[steps.alive], minlength=size)
        assert counts.min() > 0.5 * steps.alive.sum() / size
        offset += size


def test_environments_and_steps_have_noise_of_their_own():
    actors, trajectories = roll(STORIES[BOX], uniform=True)
    actions = np.concatenate([t.steps.action.reshape(-1, 2) for t in trajectories])
    assert len(np.unique(actions[:, 0])) == len(actions) and len(np.unique(actions)) == actions.size
    assert len(np.unique(actors[0].timestep.observation[:, 0, 3])) == SIZES.num_envs

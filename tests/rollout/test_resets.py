"""New starts: distinct, uniform over the pool, new in every rollout, and the task stays with its episode."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from agentgym_jax.rollout.resets import MODES, Start, make_resets, new_starts, restart, starts_each
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import Tasks, fixed
from agentgym_jax.types import Clock, Sizes
from envs_jax.wrappers import TimeLimit
from tests.envs.contract import QUICK, Once
from tests.support import Story, compiled, simulated_devices, watcher
from tests.training.support import with_agent_axis

ENV = Story(longest=20)
SIZES = Sizes(num_envs=4, rollout_length=16)
CLOCK = Clock(jnp.int32(0), jnp.int32(1))
EACH = 2
LIGHT = {"brax/ant": {"backend": "spring", "n_frames": 1}}  # the cheapest physics: the test is about starts


@functools.cache
def starts(mode):
    """(key, ended) -> marks [T, N] of the starts that would be used at every step, their observations' too, and the pool's."""
    resets = make_resets(mode, ENV, fixed(()), SIZES)

    @compiled
    def marks(key, ended):
        inputs, shared = resets.prepare((), key, CLOCK)
        begun = jax.vmap(lambda row: resets.start((), shared, row, jnp.full(4, ended)))(inputs)
        pool = shared.env_state.mark if mode == "pool" else jnp.zeros(0)
        return begun.env_state.mark, begun.timestep.observation[..., 0, 3], pool

    return marks


@pytest.mark.parametrize("mode", MODES)
def test_state_and_observation_of_a_start_belong_together(mode):
    mark, seen, _ = starts(mode)(jax.random.key(0), EACH)
    assert mark.shape == (SIZES.rollout_length, SIZES.num_envs)
    np.testing.assert_array_equal(mark, seen)


def test_fresh_starts_are_all_distinct():
    assert len(np.unique(starts("fresh")(jax.random.key(0), 0)[0])) == 64


def test_everyone_takes_starts_of_its_own_in_turn():
    """As long as they last, no start is used twice, by whomever and at whichever step."""
    taken = [np.asarray(starts("pool")(jax.random.key(0), ended)[0]) for ended in range(EACH)]
    assert all((marks == marks[0]).all() for marks in taken)
    pool = starts("pool")(jax.random.key(0), 0)[2]
    assert len(np.unique(pool)) == EACH * SIZES.num_envs
    np.testing.assert_array_equal(np.concatenate([marks[0] for marks in taken]), pool)


def test_further_starts_are_drawn_uniformly_from_the_whole_pool():
    """Every place takes every start of its pool about equally often, and places choose independently."""
    mark, _, pool = jax.vmap(starts("pool"), (0, None))(jax.random.split(jax.random.key(0), 3000), EACH)
    mark, pool = np.asarray(mark), np.asarray(pool)
    size = EACH * SIZES.num_envs
    assert pool.shape == (3000, size)
    assert len(np.unique(pool)) > 0.99 * pool.size  # every rollout has a new pool
    chosen = np.argmax(mark.reshape(3000, -1, 1) == pool[:, None], axis=-1)
    np.testing.assert_array_equal(np.take_along_axis(pool, chosen, axis=1), mark.reshape(3000, -1))
    for place in range(chosen.shape[1]):
        counts = np.bincount(chosen[:, place], minlength=size)
        assert np.max(np.abs(counts - 3000 / size)) < 5 * np.sqrt(3000 / size)
    same = np.mean(chosen[:, 0] == chosen[:, 1])
    assert abs(same - 1 / size) < 0.05


@pytest.mark.parametrize(("longest", "length", "expected"), [(20, 128, 16), (20, 1, 1), (20, 100, 13), (3, 7, 3), (1, 9, 9)])
def test_a_pool_holds_a_start_for_every_eight_steps_or_shorter_episode(longest, length, expected):
    assert starts_each(Story(longest=longest), Sizes(4, length)) == expected


def test_own_starts_do_not_depend_on_the_number_of_devices():
    resets = make_resets("pool", ENV, fixed(()), Sizes(2, 16), simulated_devices(2))
    pool = jax.vmap(lambda _: resets.prepare((), jax.random.key(0), CLOCK)[1].env_state.mark, axis_name="device")
    halves = compiled(pool)(jnp.arange(2))
    whole = starts("pool")(jax.random.key(0), 0)[2]
    np.testing.assert_array_equal(halves.reshape(2, EACH, 2).transpose(1, 0, 2).reshape(-1), whole)


def begin(env, mode, sizes, rollouts):
    """The first observations of all episodes: [bytes, ...] for each of the N environments."""
    acting = make_acting(env, fixed(env.default_params), watcher(env.spec, frozenset({"observation", "reset"})), sizes, mode)

    @functools.partial(jax.jit, compiler_options=QUICK)
    def run(key):
        key_start, key = jax.random.split(key)

        def one(actor, key):
            actor, trajectory, _ = unroll(acting, {}, {}, actor, (), key, CLOCK, False)
            return actor, (trajectory.steps.observation, trajectory.steps.reset)

        return jax.lax.scan(one, start(acting, (), key_start, CLOCK), jax.random.split(key, rollouts))[1]

    seen, reset = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:])[:, :, 0], run(jax.random.key(0)))
    return [[x.tobytes() for x in seen[reset[:, place], place]] for place in range(sizes.num_envs)]


@functools.cache
def traced(id):
    """The environment, whose functions are traced once for both modes."""
    return Once(envs_jax.make(id, **LIGHT.get(id, {})))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("id", ["gymnax/CartPole-v1", "jumanji/Snake-v1", "brax/ant"])
def test_starts_hardly_repeat(id, mode, relaxed_rank_promotion):
    """Twenty episodes of at most 16 steps in each of 64 environments; on the continuous ones no two environments share one."""
    env = with_agent_axis(TimeLimit(traced(id), 16))
    begun = [first[:20] for first in begin(env, mode, Sizes(64, 32), 10)]
    assert all(len(first) == 20 for first in begun)
    assert min(len(set(first)) for first in begun) >= 18
    if id != "jumanji/Snake-v1":
        assert len(set().union(*begun)) >= 0.99 * 20 * 64


def test_start_keys_are_those_of_each_environment():
    """A key gives one start, whichever others are drawn beside it."""
    keys = jax.random.split(jax.random.key(3), 6)
    make = compiled(lambda keys: new_starts(ENV, fixed(()), (), keys, CLOCK, jnp.arange(len(keys))).env_state.mark)
    np.testing.assert_array_equal(make(keys)[:3], make(keys[:3]))


@pytest.mark.parametrize("mode", MODES)
def test_a_task_changes_when_an_episode_does_and_never_before(mode):
    """Tasks are numbers here; the recorded ones are told apart by the starts they came with."""
    tasks = Tasks(init=lambda: (), sample=lambda state, key, CLOCK, index: jax.random.uniform(key), params=lambda task: ())
    acting = make_acting(ENV, tasks, watcher(ENV.spec, frozenset({"last"})), Sizes(4, 1), mode)
    step = compiled(lambda actor, key: unroll(acting, {}, {}, actor, (), key, CLOCK, False)[:2])
    actor = compiled(functools.partial(start, acting))((), jax.random.key(0))
    seen = []
    for key in jax.random.split(jax.random.key(1), 12):
        after, trajectory = step(actor, key)
        last = np.asarray(trajectory.steps.last[0])
        np.testing.assert_array_equal(np.asarray(after.task) != np.asarray(actor.task), last)
        np.testing.assert_array_equal(np.asarray(after.env_state.mark) != np.asarray(actor.env_state.mark), last)
        seen.append(last)
        actor = after
    assert np.any(seen) and not np.all(seen)


def begin_and_count(made: list[int]) -> Start:
    """Starts of three environments with the state 10 ... 12, counting in `made` how often they are computed."""
    jax.debug.callback(lambda: made.append(1))
    return Start(jnp.arange(10, 13), jnp.full((3, 2), 1.5), jnp.ones(3, bool))


def test_what_ended_starts_anew_and_nothing_is_made_where_nothing_ended():
    on, made = Start(jnp.arange(3), jnp.zeros((3, 2)), jnp.zeros(3, bool)), []
    after = jax.jit(lambda last: restart(last, functools.partial(begin_and_count, made), on))
    for last in ([False, True, False], [True, True, True]):
        state, timestep, task = after(jnp.asarray(last))
        assert state.tolist() == [10 + i if ended else i for i, ended in enumerate(last)]
        assert timestep.tolist() == [[1.5 * ended] * 2 for ended in last] and task.tolist() == last
    jax.effects_barrier()
    assert len(made) == 2
    jax.tree.map(np.testing.assert_array_equal, after(jnp.zeros(3, bool)), on)
    jax.effects_barrier()
    assert len(made) == 2 or jax.default_backend() != "cpu"


def test_members_that_run_side_by_side_start_anew_each_where_its_own_episodes_ended():
    on = Start(jnp.arange(3), jnp.zeros((3, 2)), jnp.zeros(3, bool))
    last = jnp.asarray([[False, True, False], [False, False, False], [True, False, True]])
    after = lambda last: restart(last, functools.partial(begin_and_count, []), on)  # noqa: E731
    alone = [jax.jit(after)(row) for row in last]
    together = jax.jit(jax.vmap(after))(last)
    jax.tree.map(np.testing.assert_array_equal, together, jax.tree.map(lambda *rows: jnp.stack(rows), *alone))

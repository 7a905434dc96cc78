"""New starts: distinct, uniform over the pool, new in every rollout, and the task stays with its episode."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.rollout.resets import MODES, make_resets, new_starts, pool_size
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import Tasks, fixed
from agentgym_jax.types import Clock, Sizes
from tests.support import Story, compiled, watcher

ENV = Story(longest=3)
SIZES = Sizes(num_envs=4, rollout_length=8)


@functools.cache
def starts(mode):
    """(key) -> marks [T, N] of the starts that would be used at every step, and of the pool."""
    resets = make_resets(mode, ENV, fixed(()), SIZES)

    @compiled
    def marks(key):
        inputs, shared = resets.prepare((), key)
        begun = jax.vmap(lambda row: resets.start((), shared, row))(inputs)
        pool = shared.env_state.mark if mode == "pool" else jnp.zeros(0)
        return begun.env_state.mark, begun.timestep.observation[..., 0, 3], pool

    return marks


@pytest.mark.parametrize("mode", MODES)
def test_state_and_observation_of_a_start_belong_together(mode):
    mark, seen, _ = starts(mode)(jax.random.key(0))
    assert mark.shape == (SIZES.rollout_length, SIZES.num_envs)
    np.testing.assert_array_equal(mark, seen)


def test_fresh_starts_are_all_distinct():
    assert len(np.unique(starts("fresh")(jax.random.key(0))[0])) == 32


def test_pool_starts_are_distinct_and_handed_out_uniformly():
    """Every place takes every start of its pool about equally often, and places choose independently."""
    mark, _, pool = jax.vmap(starts("pool"))(jax.random.split(jax.random.key(0), 3000))
    mark, pool = np.asarray(mark), np.asarray(pool)
    size = pool_size(SIZES)
    assert pool.shape == (3000, size) and size == 4
    assert all(len(np.unique(starts)) == size for starts in pool)
    assert len(np.unique(pool)) > 0.99 * pool.size  # every rollout has a new pool
    chosen = np.argmax(mark.reshape(3000, -1, 1) == pool[:, None], axis=-1)
    np.testing.assert_array_equal(np.take_along_axis(pool, chosen, axis=1), mark.reshape(3000, -1))
    for place in range(chosen.shape[1]):
        counts = np.bincount(chosen[:, place], minlength=size)
        assert np.max(np.abs(counts - 750)) < 5 * np.sqrt(750)
    same = np.mean(chosen[:, 0] == chosen[:, 1])
    assert abs(same - 0.25) < 0.05


@pytest.mark.parametrize("sizes, expected", [((4, 128), 64), ((64, 1), 64), ((16, 100), 200), ((3, 3), 3)])
def test_the_pool_grows_with_the_rollout(sizes, expected):
    assert pool_size(Sizes(*sizes)) == expected


def test_start_keys_are_those_of_each_environment():
    """A key gives one start, whichever others are drawn beside it."""
    keys = jax.random.split(jax.random.key(3), 6)
    make = compiled(lambda keys: new_starts(ENV, fixed(()), (), keys).env_state.mark)
    np.testing.assert_array_equal(make(keys)[:3], make(keys[:3]))


@pytest.mark.parametrize("mode", MODES)
def test_a_task_changes_when_an_episode_does_and_never_before(mode):
    """Tasks are numbers here; the recorded ones are told apart by the starts they came with."""
    tasks = Tasks(init=lambda: (), sample=lambda state, key: jax.random.uniform(key), params=lambda task: ())
    acting = make_acting(ENV, tasks, watcher(ENV.spec, {"last"}), Sizes(4, 1), mode)
    step = compiled(lambda actor, key: unroll(acting, {}, {}, actor, (), key, Clock(jnp.int32(0), jnp.int32(1)), False)[:2])
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

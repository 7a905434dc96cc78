"""Normalisation: what acts is what learns, and the statistics are those of the raw rows of living agents."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from agentgym_jax.algorithms.normalise import LIMIT, normalised
from agentgym_jax.checks import ConfigError
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.training.evaluate import play
from agentgym_jax.types import Batch, Clock, Sizes
from envs_jax.spaces import Discrete
from tests.support import Story, compiled, watcher

SIZES = Sizes(num_envs=4, rollout_length=9)
CLOCK = Clock(jnp.int32(0), jnp.int32(10))
ENV = Story(world=True)
GAMMA = 0.9
close = np.testing.assert_allclose


@struct.dataclass
class Hyper:
    gamma: object = GAMMA


def reporting(spec):
    """A watcher that gives away the batch it was given to learn from."""
    return watcher(spec)._replace(learn=lambda learner, hyper, batch, key, clock: (learner, {"batch": batch.steps}, ()))


ALGORITHM = normalised(reporting(ENV.spec), ENV.spec)
ACTING = make_acting(ENV, fixed(()), ALGORITHM, SIZES, "fresh")


@compiled
def iterate(learner, actor, key):
    actor, trajectory, _ = unroll(ACTING, learner, Hyper(), actor, (), key, CLOCK, False)
    _, scalars, _ = ALGORITHM.learn(learner, Hyper(), Batch(trajectory.steps, trajectory.carry), key, CLOCK)
    after, carry = ALGORITHM.observe(learner, Hyper(), trajectory, actor.carry, CLOCK)
    return after, actor.replace(carry=carry), trajectory.steps, scalars


@pytest.fixture(scope="module")
def iterations():
    """(learner before, raw steps, what was learned from, learner after) of each of three iterations."""
    learner = ALGORITHM.init(jax.random.key(0), Hyper())
    actor = compiled(functools.partial(start, ACTING))((), jax.random.key(1))
    out = []
    for key in jax.random.split(jax.random.key(2), 3):
        after, actor, steps, scalars = iterate(learner, actor, key)
        out.append((learner, jax.tree.map(np.asarray, steps), scalars, after))
        learner = after
    return out


def test_what_acted_is_what_is_learned_from(iterations):
    for index, (_, raw, scalars, _) in enumerate(iterations):
        learned = scalars["batch"]
        np.testing.assert_array_equal(learned.observation, raw.extras["seen"])
        np.testing.assert_array_equal(learned.world, raw.extras["world"])
        assert index == 0 or np.any(learned.observation != raw.observation)


def test_every_observation_is_standardised_by_the_statistics_before_the_rollout(iterations):
    for before, raw, scalars, _ in iterations[1:]:
        for field in ("observation", "world"):
            moments = getattr(before, field)
            deviation = np.sqrt(np.asarray(moments.variance) + 1e-8)
            for moment in (field, f"next_{field}"):
                expected = ((getattr(raw, moment) - np.asarray(moments.mean)) / deviation).clip(-LIMIT, LIMIT)
                close(getattr(scalars["batch"], moment), expected, rtol=1e-4, atol=1e-4)
        scale = np.sqrt(float(before.reward.variance) + 1e-8)
        close(scalars["batch"].reward, (raw.reward / scale).clip(-LIMIT, LIMIT), rtol=1e-5)
        close(scalars["reward_deviation"], scale, rtol=1e-5)


def test_before_any_data_nothing_is_changed_but_the_clip(iterations):
    _, raw, scalars, _ = iterations[0]
    np.testing.assert_array_equal(scalars["batch"].observation, raw.observation.clip(-LIMIT, LIMIT))
    np.testing.assert_array_equal(scalars["batch"].reward, raw.reward)


def test_statistics_equal_numpy_over_all_raw_rows_of_living_agents(iterations):
    observations, worlds = [], []
    for _, raw, _, after in iterations:
        assert not raw.alive.all()
        observations.append(raw.observation[raw.alive])
        worlds.append(raw.world[raw.alive.any(-1)])
        for moments, rows in ((after.observation, observations), (after.world, worlds)):
            rows = np.concatenate(rows).astype(np.float64)
            close(moments.count, np.full(rows.shape[1], len(rows)))
            close(moments.mean, rows.mean(0), rtol=1e-4, atol=1e-5)
            close(moments.variance, rows.var(0), rtol=1e-3, atol=1e-5)


def test_statistics_have_the_shape_of_one_observation(iterations):
    learner = iterations[-1][-1]
    assert learner.observation.mean.shape == ENV.spec.observation_space.shape
    assert learner.world.mean.shape == ENV.spec.world_space.shape
    assert learner.reward.mean.shape == ()


def test_the_return_behind_the_reward_scale_equals_a_loop(iterations):
    """G ← r + γ G over every step of an agent, from 0 at its first, on through the borders of rollouts."""
    running = np.zeros((SIZES.num_envs, 2))
    seen = []
    for _, raw, _, after in iterations:
        for t in range(SIZES.rollout_length):
            running = raw.reward[t] + GAMMA * np.where(raw.reset[t], 0.0, running)
            seen.append(running[raw.alive[t]])
        rows = np.concatenate(seen)
        close([after.reward.count, after.reward.mean, after.reward.variance], [rows.size, rows.mean(), rows.var()], rtol=1e-4)


def test_evaluation_changes_no_statistics_and_uses_them(iterations):
    """`play` acts through the same function, gets the learner as a constant and returns results alone."""
    learner = iterations[-1][-1]
    before = jax.tree.map(np.array, learner)
    played = compiled(lambda learner, key: play(ACTING, learner, Hyper(), key, jnp.int32(6), jnp.bool_(True)))(
        learner, jax.random.key(5)
    )
    assert "return" in played and not any(isinstance(x, dict) for x in played.values())
    jax.tree.map(np.testing.assert_array_equal, before, learner)


@pytest.mark.parametrize("observations, rewards", [(True, False), (False, True)])
def test_each_part_can_be_left_out(observations, rewards):
    algorithm = normalised(reporting(ENV.spec), ENV.spec, observations, rewards)
    learner = algorithm.init(jax.random.key(0), Hyper())
    assert (learner.observation is not None) == observations and (learner.world is not None) == observations
    assert (learner.reward is not None) == rewards


def test_there_is_a_warm_up_and_a_carry_and_what_is_needed_is_recorded():
    blind = watcher(ENV.spec, {"last"})
    algorithm = normalised(blind, ENV.spec)
    assert algorithm.warmup == 1 and normalised(blind._replace(warmup=3), ENV.spec).warmup == 3
    assert jax.tree.leaves(algorithm.carry((4,)))
    assert {"observation", "reward", "alive", "reset"} <= algorithm.record
    assert algorithm.init(jax.random.key(0), Hyper()).world is None


def test_observations_that_are_no_numbers_are_refused():
    spec = dataclasses.replace(ENV.spec, observation_space=Discrete(4))
    with pytest.raises(ConfigError, match="algorithm.normalise_observations: needs a Box"):
        normalised(watcher(spec), spec)

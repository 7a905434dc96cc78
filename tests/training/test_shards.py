"""One member on several devices: the same learner everywhere, and the learning of one device."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.rollout.unroll import make_acting, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.training.parallel import Population, across_devices, state_shapes
from agentgym_jax.types import Across, Batch, Sizes

from .support import (
    Drift,
    assert_close,
    assert_same_bits,
    clock,
    hyper,
    member,
    members,
    quick,
    raw,
    run_population,
    small_loop,
    with_agent_axis,
)

NORMALISED = {"normalise_observations": True, "normalise_rewards": True}


@functools.cache
def loop(shards, reset="fresh"):
    """Eight environments on so many devices, with every statistic that devices have to agree on."""
    return small_loop(Drift(), config=NORMALISED, across=across_devices(shards), num_envs=8, reset=reset)


@functools.cache
def population(shards, size, devices, reset="fresh"):
    population = Population(loop(shards, reset), size, "map", jax.devices()[:devices])
    population.compile(*(population.place(tree) for tree in members(size)))
    return population


@functools.cache
def run(shards, size, devices):
    return run_population(population(shards, size, devices), *members(size))


@pytest.mark.parametrize(("shards", "size", "devices", "reset"), [(2, 1, 2, "pool"), (2, 3, 4, "fresh")])
def test_every_device_holds_the_same_learner(shards, size, devices, reset):
    shared = population(shards, size, devices, reset)
    assert (len(shared.devices), shared.groups) == (devices, devices // shards)
    keys, hypers = (shared.place(tree) for tree in members(size))
    states = shared.init(keys, hypers)
    for call in range(3):
        states, _ = shared.advance(states, hypers, shared.clock(call, 9))
    for x in map(raw, jax.tree.leaves((states.learner, states.key))):
        x = x.reshape(shared.groups, shards, *x.shape[1:])
        np.testing.assert_array_equal(x, np.broadcast_to(x[:, :1], x.shape))
    places = np.asarray(states.actor.env_state["place"])
    assert len(np.unique(places)) == size * 8, "and environments of its own; what fills the last row is a copy"


@pytest.mark.parametrize("shards", [2, 4])
def test_first_starts_are_those_of_one_device(shards):
    """By the global number of the environment."""
    starts: dict[int, Any] = {}
    for count in (1, shards):
        plain = small_loop(Drift(), across=across_devices(count), num_envs=8)
        init = jax.pmap(lambda key, loop=plain: loop.init(key, hyper()).actor, axis_name="devices")
        starts[count] = init(jnp.stack([jax.random.key(3)] * count))
    whole = jax.tree.map(lambda x: x.reshape(1, 8, *x.shape[2:]), starts[shards])
    assert starts[shards].env_state["place"].shape == (shards, 8 // shards)
    assert_same_bits(whole, starts[1])


def test_a_run_on_several_devices_learns_and_counts_like_one():
    """The same shapes and sums; every number of an evaluation is told once, whoever played it."""
    shared, single = run(2, 3, 4), run(1, 3, 1)
    assert jax.tree.map(np.shape, shared["curves"]) == jax.tree.map(np.shape, single["curves"])
    assert jax.tree.map(np.shape, shared["evaluation"]) == jax.tree.map(np.shape, single["evaluation"])
    np.testing.assert_allclose(shared["curves"]["episodes"], single["curves"]["episodes"], atol=4)
    assert shared["curves"]["episodes"].min() > 0 and not shared["curves"]["diverged"].any()


def test_a_state_survives_the_host():
    """Host order has every environment once, and goes back to where it came from."""
    shared = population(2, 3, 4)
    keys, hypers = (shared.place(tree) for tree in members(3))
    kept = shared.members(shared.init(keys, hypers))
    shapes = state_shapes(loop(2), *members(3))
    assert jax.tree.structure(shapes) == jax.tree.structure(kept)
    assert [x.shape for x in jax.tree.leaves(shapes)] == [x.shape for x in jax.tree.leaves(kept)]
    assert kept.actor.timestep.last.shape == (3, 8)
    direct, _ = shared.advance(shared.init(keys, hypers), hypers, shared.clock(0, 2))
    restored, _ = shared.advance(shared.place(kept), hypers, shared.clock(0, 2))
    assert_same_bits(shared.members(direct), shared.members(restored))


def test_replay_on_two_devices():
    """Each device has half of the memory and half of every batch, drawn by itself; both hold one learner."""
    settings = {"capacity": 128, "batch_size": 16, "learning_starts": 64, "updates": 2, "prioritised": True}
    numbers = as_hyper(get_algorithm("dqn").hyper(learning_rate=1e-2))
    shared = Population(small_loop(Drift(), "dqn", None, settings, across=across_devices(2), num_envs=8), 1, "map")
    keys, hypers = (shared.place(jax.tree.map(lambda x: x[None], tree)) for tree in (jax.random.key(0), numbers))
    shared.compile(keys, hypers)
    states, _ = shared.advance(shared.init(keys, hypers), hypers, shared.clock(0, 2))
    both = jax.tree.map(raw, states)
    jax.tree.map(lambda x: np.testing.assert_array_equal(x[0], x[1]), both.learner)
    assert both.memory.steps.reward.shape[:4] == (2, 1, 16, 4) and not np.array_equal(*both.memory.steps.observation)
    assert not np.array_equal(*both.memory.tree.levels[-1]), "priorities of what each has drawn"
    kept = shared.members(states)
    assert kept.memory.steps.reward.shape[:4] == (1, 2, 16, 4)
    assert_same_bits(shared.members(shared.place(kept)), kept)


def learner(across, config):
    """PPO of one epoch and one minibatch on the environments of one device."""
    env = with_agent_axis(Drift())
    entry = get_algorithm("ppo")
    config = entry.config(epochs=1, minibatches=1, **config)
    models = entry.networks(NetworkConfig(hidden=(16,)), env.spec, config)
    return entry.make(env.spec, config, models, Sizes(8 // across.size, 8), across)


@functools.cache
def trajectory():
    """A rollout of eight environments, its learner, and the hidden states that go with both."""
    loop = small_loop(Drift(), num_envs=8, config=NORMALISED)
    state = quick(loop.init)(jax.random.key(0), hyper())
    single, (key_steps, key_reward) = learner(Across(), NORMALISED), jax.random.split(jax.random.key(1))
    acting = make_acting(with_agent_axis(Drift()), fixed(()), single, Sizes(8, 8), "fresh")
    args = (state.learner, hyper(), state.actor, (), key_steps, clock(0, 1), False)
    actor, made, _ = quick(lambda *args: unroll(acting, *args[:-1], uniform=False))(*args)
    noise = jax.random.normal(key_reward, made.steps.reward.shape)
    return state.learner, made.replace(steps=made.steps.replace(reward=made.steps.reward + noise)), actor.carry


def learnt(across, shards):
    """`learn` and `observe` on the one trajectory, dealt to so many devices; leaves [shards, ...]."""
    start, made, carry = trajectory()
    algorithm = learner(across, NORMALISED)

    def program(steps, before, after):
        new, scalars, _ = algorithm.learn(start, hyper(), Batch(steps, before), jax.random.key(2), clock(0, 1))
        observed, _ = algorithm.observe(new, hyper(), made.replace(steps=steps, carry=before), after, clock(0, 1))
        return observed, scalars

    def deal(x, axis):
        x = x.reshape(*x.shape[:axis], shards, -1, *x.shape[axis + 1 :])
        return jnp.moveaxis(x, axis, 0)

    steps = jax.tree.map(lambda x: deal(x, 1), made.steps)
    carries = jax.tree.map(lambda x: deal(x, 0), (made.carry, carry))
    return jax.pmap(program, axis_name="devices", devices=jax.devices()[:shards])(steps, *carries)


@pytest.mark.parametrize("shards", [2, 4])
def test_learning_from_one_trajectory_is_that_of_one_device(shards):
    """A whole step: gradients, advantage statistics, clipped norms, moments, and every scalar that is logged."""
    one = member(learnt(Across(), 1), 0)
    shared = learnt(across_devices(shards), shards)
    for index in range(shards):
        assert_close(member(shared, index), one, f"{shards} devices, device {index}", floor=2e-7)
    # and without the reduction it is not
    alone = learnt(across_devices(shards)._replace(mean=lambda x: x), shards)
    with pytest.raises(AssertionError):
        assert_close(member(alone, 0), one, "no reduction", floor=2e-7)


def test_too_few_devices_are_named():
    with pytest.raises(ConfigError, match="train.shards: 4 devices are to share a member, but there are 2"):
        Population(loop(4), 1, devices=jax.devices()[:2])

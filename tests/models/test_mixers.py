"""Mixers: the sum, and QMIX's hypernetwork against its closed form, monotonic whatever its parameters."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.models.mixers import Mixer, hypernet_mixer, sum_mixer
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from tests.algorithms.value_windows import host, slow_hypernet
from tests.support import compiled

AGENTS, EMBED = 3, 4
VECTOR = Box(-math.inf, math.inf, (5,))
close, same = np.testing.assert_allclose, np.testing.assert_array_equal


@functools.cache
def mixer_of(hidden: int, space=VECTOR) -> Mixer:
    return hypernet_mixer(AGENTS, space, EMBED, hidden)


@functools.cache
def applied(hidden: int, space=VECTOR):
    """Mixed values and their derivatives by each agent's, compiled."""
    mixer = mixer_of(hidden, space)

    def run(params, values, world):
        slope = jax.grad(lambda values: jnp.sum(mixer.apply(params, values, world)))(values)
        return mixer.apply(params, values, world), slope

    return compiled(run)


@functools.cache
def params_of(hidden: int, space=VECTOR, seed: int = 0):
    """Parameters from anywhere, not only where they begin."""
    start, draw = compiled(mixer_of(hidden, space).init)(jax.random.key(seed)), np.random.default_rng(seed)
    return jax.tree.map(lambda x: jnp.float32(2 * draw.normal(size=x.shape)), start)


def inputs(seed: int = 0, *shape: int):
    """Values [..., A] and worlds [..., 5]."""
    draw = np.random.default_rng(seed)
    return np.float32(3 * draw.normal(size=(*shape, AGENTS))), np.float32(2 * draw.normal(size=(*shape, 5)))


def test_the_sum_is_the_sum():
    mixer = sum_mixer()
    values, _ = inputs(0, 2, 4)
    assert mixer.init(jax.random.key(0)) == {} and not mixer.needs_world
    close(mixer.apply({}, values, ()), values.sum(-1), rtol=1e-6)


@pytest.mark.parametrize("hidden", [0, 6])
def test_the_hypernetwork_is_its_closed_form(hidden):
    values, world = inputs(1, 2, 7)
    params = params_of(hidden)
    mixed, slope = applied(hidden)(params, values, world)
    assert mixed.shape == (2, 7) and mixed.dtype == jnp.float32 and slope.shape == values.shape
    expected = [[slow_hypernet(host(params), host(values[i, j]), host(world[i, j])) for j in range(7)] for i in range(2)]
    close(mixed, expected, rtol=1e-4, atol=1e-3)
    names = {"first_weights", "first_bias", "second_weights", "state_hidden", "state_value"}
    assert set(params["params"]) == names | ({"first_hidden", "second_hidden"} if hidden else set())
    assert params["params"]["first_weights"]["kernel"].shape == (hidden or 5, AGENTS * EMBED)
    assert params["params"]["second_weights"]["kernel"].shape == (hidden or 5, EMBED)


@pytest.mark.parametrize("hidden", [0, 6])
def test_no_agents_value_ever_lowers_the_teams(hidden):
    """All derivatives are at least 0 for any parameters, values and worlds, and hardly any is exactly 0."""
    for seed in range(5):
        values, world = inputs(seed, 300)
        _, slope = applied(hidden)(params_of(hidden, seed=seed), values, world)
        assert np.all(np.asarray(slope) >= 0) and (np.asarray(slope) > 0).mean() > 0.5  # elu is flat far below 0
    fresh = compiled(mixer_of(hidden).init)(jax.random.key(0))
    values, world = inputs(9, 300)
    mixed, slope = applied(hidden)(fresh, values, world)
    assert np.all(np.asarray(slope) >= 0) and (np.asarray(slope) > 0).mean() > 0.8
    raised, _ = applied(hidden)(fresh, values + 1, world)
    assert np.all(raised >= mixed) and np.mean(raised > mixed) > 0.9


@pytest.mark.parametrize("hidden", [0, 6])
def test_a_fresh_mixer_adds_up_even_in_a_world_of_zeros(hidden):
    """Q starts as elu(Σ q), so that every agent's value has a gradient from the first step on."""
    fresh = compiled(mixer_of(hidden).init)(jax.random.key(0))
    values, world = inputs(2, 50)
    mixed, slope = applied(hidden)(fresh, values, np.zeros_like(world))
    total = np.asarray(values).sum(-1)
    np.testing.assert_allclose(mixed, np.where(total > 0, total, np.expm1(total)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slope, np.broadcast_to(np.exp(np.minimum(total, 0))[:, None], slope.shape), rtol=1e-5, atol=1e-6)


def test_each_agents_best_action_is_best_for_the_team():
    """The individual-global-max principle, by trying all joint actions of three agents with four actions each."""
    draw = np.random.default_rng(3)
    own = np.float32(draw.normal(size=(AGENTS, 4)))
    joint = np.stack([own[a, choice] for a, choice in enumerate(np.indices((4, 4, 4)))], axis=-1)
    world = np.broadcast_to(inputs(4)[1], (4, 4, 4, 5))
    mixed, _ = applied(6)(params_of(6), joint, world)
    assert np.asarray(mixed)[tuple(own.argmax(-1))] == np.asarray(mixed).max()


def test_the_world_changes_how_agents_are_mixed_and_what_the_team_is_worth():
    values, world = inputs(5, 50)
    values[:] = values[:1]
    mixed, slope = applied(6)(params_of(6), values, world)
    assert np.std(mixed) > 0.1 and np.all(np.std(slope, axis=0) > 0.1)


@pytest.mark.parametrize("space", [Discrete(4), MultiDiscrete((4, 2))])
def test_whole_numbers_of_a_world_are_one_hot(space):
    """The same parameters on vectors of zeros and ones give the same values."""
    draw = np.random.default_rng(6)
    shape = (10, *space.shape)
    world = np.int32(draw.integers(0, 4 if space.shape == () else space.nvec, shape))
    flat = np.eye(4, dtype=np.float32)[world].reshape(10, -1)
    values, _ = inputs(7, 10)
    params, plain = params_of(6, space), Box(0, 1, (flat.shape[-1],))
    got, expected = applied(6, space)(params, values, world), applied(6, plain)(params, values, flat)
    jax.tree.map(lambda x, y: close(x, y, rtol=1e-6), got, expected)
    assert np.unique(got[0]).size > 5


def test_pictures_of_a_world_are_laid_flat_and_scaled():
    picture = Box(0, 255, (2, 3, 1), np.uint8)
    draw = np.random.default_rng(8)
    world, (values, _) = np.uint8(draw.integers(0, 256, (4, 2, 3, 1))), inputs(7, 4)
    params = params_of(6, picture)
    got = applied(6, picture)(params, values, world)[0]
    close(got, applied(6, Box(0, 1, (6,)))(params, values, np.float32(world.reshape(4, 6) / 255))[0], rtol=1e-5)

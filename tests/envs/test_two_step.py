from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.multi.two_step import PALETTE, Params

ENV = envs_jax.make("multi/two_step")
PAYOFFS = {0: [[7, 7], [7, 7]], 1: [[0, 1], [1, 8]]}
PLAYS = list(itertools.product((0, 1), repeat=4))


def play(first, second, params=ENV.default_params):
    """One episode: the timesteps and states [3], start first, of two joint actions."""
    state, timestep = ENV.reset(jax.random.key(0), params)
    moments = [(state, timestep)]
    for action in (first, second):
        moments.append(ENV.transition(jax.random.key(1), moments[-1][0], action, params))
    states, timesteps = zip(*moments, strict=True)
    return jax.tree.map(lambda *x: jnp.stack(x), *timesteps), jax.tree.map(lambda *x: jnp.stack(x), *states)


jit_play = jax.jit(jax.vmap(play, in_axes=(0, 0, None)))


def test_every_episode_pays_as_in_the_paper():
    actions = jnp.asarray(PLAYS, jnp.int32)
    steps, states = jax.tree.map(np.asarray, jit_play(actions[:, :2], actions[:, 2:], ENV.default_params))
    for episode, (chooser, _, row, column) in enumerate(PLAYS):
        paid = PAYOFFS[chooser][row][column]
        np.testing.assert_array_equal(steps.reward[episode], [[0, 0], [0, 0], [paid, paid]])
        np.testing.assert_array_equal(steps.last[episode], [False, False, True])
        np.testing.assert_array_equal(steps.discount[episode], [[1, 1], [1, 1], [0, 0]])
        seen = np.eye(3)[[0, 1 + chooser, 1 + chooser]]
        for agent in range(2):
            np.testing.assert_array_equal(steps.observation[episode, :, agent, :3], seen)
            np.testing.assert_array_equal(steps.observation[episode, :, agent, 3:], [np.eye(2)[agent]] * 3)
        world = jax.vmap(lambda state: ENV.world(state, ENV.default_params))(jax.tree.map(lambda x, e=episode: x[e], states))
        np.testing.assert_array_equal(world, seen)
        np.testing.assert_array_equal(steps.metrics["success"][episode], [0, 0, paid == 8])


def test_other_payoffs_need_no_new_program_and_move_success():
    actions, traces = jnp.asarray(PLAYS, jnp.int32), []
    for params in (ENV.default_params, Params(jnp.full((2, 2), 9, jnp.float32), jnp.zeros((2, 2), jnp.float32))):
        steps, _ = jit_play(actions[:, :2], actions[:, 2:], params)
        traces.append(jit_play._cache_size())
    assert traces[0] == traces[1]
    np.testing.assert_array_equal(steps.reward[:, -1, 0], [9.0] * 8 + [0.0] * 8)
    np.testing.assert_array_equal(steps.metrics["success"][:, -1], [1] * 8 + [0] * 8)


def test_a_picture_shows_what_is_to_be_decided_and_what_was_chosen():
    episode = jit_play(jnp.int32([[1, 0]]), jnp.int32([[0, 1]]), ENV.default_params)
    states = jax.tree.map(lambda x: x[0], episode[1])
    pictures = np.asarray(jax.jit(jax.vmap(ENV.render))(states))
    assert pictures.dtype == np.uint8 and pictures.shape == (3, 72, 84, 3)
    _, _, bright, gold = (np.array(colour) for colour in PALETTE)
    cells = pictures[:, 6::12, 6::12]

    def where(colour):
        return [{(int(y), int(x)) for y, x in np.argwhere((cells[t] == colour).all(-1))} for t in range(3)]

    assert where(bright) == [{(1, 2), (1, 4)}, {(3, 4), (3, 5), (4, 4), (4, 5)}, set()]
    assert where(gold) == [set(), {(1, 4)}, {(1, 4), (3, 5)}]


@pytest.mark.parametrize(
    ("name", "arguments", "message"), [("two_stp", {}, "two_step"), ("two_step", {"limit": 3}, "takes no `limit`")]
)
def test_bad_names_and_arguments(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        envs_jax.make(f"multi/{name}", **arguments)

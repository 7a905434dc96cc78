"""Predators and prey: an episode by hand, and the scripts against each other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax

from .contract import QUICK

ENV = envs_jax.make("multi/tag")
EPISODES, STEPS = 64, 25
FAR = [[-0.8, 0.8], [-0.8, 0], [-0.8, -0.8]]


def start(prey, predators=FAR, obstacles=((0.8, 0.8), (0.8, -0.8))):
    """All at rest at these places."""
    state = ENV.initial(jax.random.key(0), ENV.default_params)
    return state.replace(position=jnp.asarray([*predators, prey], jnp.float32), landmarks=jnp.asarray(obstacles, jnp.float32))


@jax.jit
def resting(state):
    return ENV.transition(jax.random.key(0), state, jnp.zeros(4, jnp.int32), ENV.default_params)


def test_a_touch_pays_every_predator_and_costs_the_prey():
    """Two predators overlap the prey: every predator is paid 10 for each, the prey pays 20. It is not tagged a step later."""
    state, timestep = resting(start([0, 0], [[-0.1, 0], [0.1, 0], [0, 0.9]]))
    np.testing.assert_array_equal(timestep.reward, [20, 20, 20, -20])
    assert timestep.metrics["tags"] == 2 and timestep.metrics["success"] == 1
    assert state.velocity[0, 0] < -0.1 and state.velocity[1, 0] > 0.1 and abs(state.velocity[3, 0]) < 1e-5
    for _ in range(3):
        state, timestep = resting(state)
    assert timestep.metrics["tags"] == 0 and timestep.metrics["success"] == 1
    np.testing.assert_array_equal(timestep.reward, [0, 0, 0, 0])


@pytest.mark.parametrize(("x", "cost"), [(0.5, 0), (0.95, 0.5), (-1.2, np.exp(0.4)), (4, 10)])
def test_prey_pays_for_leaving_the_middle(x, cost):
    timestep = resting(start([x, 0.1]))[1]
    np.testing.assert_allclose(timestep.reward, [0, 0, 0, -cost], atol=1e-5)
    assert timestep.metrics["outside"] == (abs(x) > 1)


def test_an_obstacle_pushes_and_stays():
    state, _ = resting(start([0.6, 0.8]))
    assert state.velocity[3, 0] < -0.1
    np.testing.assert_array_equal(state.landmarks, start([0, 0]).landmarks)


def test_what_each_group_sees():
    """The prey's row is two columns narrower: nobody tells it a velocity but its own."""
    state = start([0.5, 0.25]).replace(velocity=jnp.arange(8, dtype=jnp.float32).reshape(4, 2))
    rows = np.asarray(ENV.observe(state, ENV.default_params).observation)
    np.testing.assert_allclose(rows[1], [2, 3, -0.8, 0, 1.6, 0.8, 1.6, -0.8, 0, 0.8, 0, -0.8, 1.3, 0.25, 6, 7], atol=1e-6)
    np.testing.assert_allclose(rows[3, 8:], [-1.3, 0.55, -1.3, -0.25, -1.3, -1.05, 0, 0], atol=1e-6)
    groups = [(group.name, group.size, group.observation_space.shape, group.action_space.n) for group in ENV.spec.groups]
    assert groups == [("predator", 3, (16,), 5), ("prey", 1, (14,), 5)]


def match(predator, prey):
    """Scripts against each other: touches an episode, its standard error, and the part of steps outside."""
    wide = [group.observation_space.shape[0] for group in ENV.spec.groups]

    def episode(key):
        def step(moment, key):
            state, timestep = moment
            rows = timestep.observation[:3, : wide[0]], timestep.observation[3:, : wide[1]]
            pairs = zip((predator, prey), rows, strict=True)
            acts = [script.act(script.init(len(row)), key, row, (), jnp.zeros(len(row), bool))[1] for script, row in pairs]
            moment = ENV.transition(key, state, jnp.concatenate(acts), ENV.default_params)
            return moment, (moment[1].metrics["tags"], moment[1].metrics["outside"])

        first = ENV.reset(key, ENV.default_params)
        return jax.tree.map(jnp.sum, jax.lax.scan(step, first, jax.random.split(key, STEPS))[1])

    program = jax.jit(jax.vmap(episode), compiler_options=QUICK)
    tags, outside = (np.asarray(x) for x in program(jax.random.split(jax.random.key(1), EPISODES)))
    return tags.mean(), tags.std() / np.sqrt(EPISODES), outside.mean() / STEPS


def test_fleeing_beats_resting_and_chasing_beats_resting():
    hunters, prey = ENV.scripts["predator"], ENV.scripts["prey"]
    fled, error, outside = match(hunters["chase"], prey["flee"])
    caught, error_rest, _ = match(hunters["chase"], prey["rest"])
    idle, _, _ = match(hunters["rest"], prey["flee"])
    assert fled + 3 * (error + error_rest) < caught / 2, "measured over 512 episodes: 1.9 against 7.3 touches"
    assert idle < fled / 2
    assert outside < 0.1


@pytest.mark.parametrize("env", [ENV, envs_jax.make("multi/tag", actions="continuous", num_prey=2, num_obstacles=0)])
def test_scripts_speak_the_action_space(env):
    def inside(key):
        rows, begin, checks = env.reset(key, env.default_params)[1].observation, 0, []
        for group in env.spec.groups:
            own = rows[begin : begin + group.size, : group.observation_space.shape[0]]
            begin += group.size
            acts = [script.act((), key, own, (), None)[1] for script in env.scripts[group.name].values()]
            assert all(len(act) == group.size for act in acts)
            checks += [jax.vmap(group.action_space.contains)(act) for act in acts]
        return jnp.concatenate(checks)

    assert jax.jit(inside, compiler_options=QUICK)(jax.random.key(0)).all()


def test_a_picture_shows_predators_prey_and_obstacles():
    picture = np.asarray(jax.jit(ENV.render, compiler_options=QUICK)(start([0, 0])))
    assert picture.shape == (160, 160, 3) and picture.dtype == np.uint8

    def colour(x, y):  # the square from −1.2 to 1.2 in 160 pixels
        return tuple(picture[round(79.5 - y * 80 / 1.2), round(79.5 + x * 80 / 1.2)])

    assert [colour(*place) for place in FAR] == [(243, 115, 115)] * 3
    assert colour(0, 0) == (115, 243, 115) and colour(0.8, 0.8) == (84, 84, 96)

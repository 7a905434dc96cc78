from __future__ import annotations

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.spaces import Box, Discrete

NAMES = [id.partition("/")[2] for id in envs_jax.ids() if id.startswith("gymnax/")]
LIMIT, STEPS = 120, 300


@pytest.mark.parametrize("name", NAMES)
def test_every_step_equals_gymnax(name):
    """From the same keys and actions: observation, reward and both ends, over episodes that end and that are cut."""
    library, numbers = gymnax.make(name)
    numbers = numbers.replace(max_steps_in_episode=LIMIT)
    env = envs_jax.make(f"gymnax/{name}", time_limit=LIMIT)
    params, key = env.default_params, jax.random.key(7)

    def theirs(carry, key):
        key, key_act = jax.random.split(key)
        observation, state, reward, terminated, truncated, info = library.step(key, carry, sample(key_act), numbers)
        return state, (info["final_observation"], reward, terminated, truncated & ~terminated, observation)

    def ours(carry, key):
        key, key_act = jax.random.split(key)
        key_step, key_reset = jax.random.split(key)
        state, outcome = env.transition(key_step, carry, sample(key_act), params)
        ended = outcome.terminated | outcome.truncated
        state, timestep = jax.tree.map(lambda a, b: jnp.where(ended, a, b), env.reset(key_reset, params), (state, outcome))
        ends = (outcome.discount == 0, outcome.last & (outcome.discount == 1))
        return state, (outcome.observation, outcome.reward, *ends, timestep.observation)

    def sample(key):
        return env.spec.action_space.sample(key)

    keys = jax.random.split(key, STEPS)
    want = jax.jit(lambda: jax.lax.scan(theirs, library.reset(key, numbers)[1], keys)[1])()
    got = jax.jit(lambda: jax.lax.scan(ours, env.reset(key, params)[0], keys)[1])()
    for x, y in zip(got[2:4], want[2:4], strict=True):
        np.testing.assert_array_equal(x, y)
    for x, y in zip((*got[:2], got[4]), (*want[:2], want[4]), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    assert got[2].any() or got[3].any()


@pytest.mark.parametrize("name", NAMES)
def test_the_time_limit_is_exact_and_no_death(name):
    env = envs_jax.make(f"gymnax/{name}", time_limit=3)
    assert env.spec.episode_limit == 3
    step = jax.jit(env.transition)
    state, timestep = env.reset(jax.random.PRNGKey(0), env.default_params)
    for time in range(1, 4):
        action = env.spec.sample_actions(jax.random.PRNGKey(time), timestep)
        state, timestep = step(jax.random.PRNGKey(time), state, action, env.default_params)
        assert bool(timestep.last) == bool(timestep.truncated) == (time == 3)
        assert timestep.discount == 1 and timestep.alive
    assert step._cache_size() == 1


def test_limits_default_to_those_of_gymnax():
    limits = {name: envs_jax.make(f"gymnax/{name}").spec.episode_limit for name in NAMES}
    assert limits == {
        "CartPole-v1": 500,
        "Acrobot-v1": 500,
        "MountainCar-v0": 200,
        "MountainCarContinuous-v0": 999,
        "Pendulum-v1": 200,
    }


def test_a_true_end_has_no_future():
    env = envs_jax.make("gymnax/CartPole-v1")
    state, timestep = env.reset(jax.random.key(0), env.default_params)
    step, count = jax.jit(env.step), 0
    while not timestep.last:
        state, timestep = step(jax.random.key(0), state, jnp.int32(1), env.default_params)
        count += 1
    assert timestep.terminated and timestep.discount == 0 and count < 15
    assert abs(timestep.observation[2]) > env.default_params.theta_threshold_radians


def test_spaces():
    env = envs_jax.make("gymnax/CartPole-v1")
    low, high = env.spec.observation_space.bounds()
    np.testing.assert_allclose(high, [4.8, np.inf, 24 * np.pi / 180, np.inf], rtol=1e-6)
    assert env.spec.action_space == Discrete(2)
    assert envs_jax.make("gymnax/Pendulum-v1").spec.action_space == Box(-2, 2, (1,))


def test_numbers_are_traced():
    """Another gravity is another argument, and compiles nothing anew."""
    env = envs_jax.make("gymnax/CartPole-v1")
    state, _ = env.reset(jax.random.key(0), env.default_params)
    step = jax.jit(env.transition)
    seen = []
    for gravity in (9.8, 20.0):
        params = env.default_params.replace(gravity=jnp.float32(gravity))
        seen.append(step(jax.random.key(0), state, jnp.int32(0), params)[1].observation)
    assert step._cache_size() == 1 and not np.allclose(seen[0], seen[1])
    many = jax.tree.map(lambda x: jnp.stack([x, x]), env.default_params)
    assert jax.vmap(env.reset, in_axes=(None, 0))(jax.random.key(0), many)[1].observation.shape == (2, 4)


def test_bad_arguments():
    with pytest.raises(ValueError, match="gymnax/CartPole-v1.*'length'"):
        envs_jax.make("gymnax/CartPole-v1", length=3)
    for limit in (0, 2.5, True):
        with pytest.raises(ValueError, match="time_limit must be a whole number"):
            envs_jax.make("gymnax/CartPole-v1", time_limit=limit)
    env = envs_jax.make("gymnax/CartPole-v1")
    with pytest.raises(ValueError, match="constructor argument `time_limit`"):
        env.reset(jax.random.key(0), env.default_params.replace(max_steps_in_episode=3))

from __future__ import annotations

import gzip
import struct

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.utils import load_mnist

import envs_jax
from envs_jax.adapters.gymnax import mnist
from envs_jax.spaces import Box, Discrete

from .contract import QUICK, check

NAMES = [id.partition("/")[2] for id in envs_jax.ids() if id.startswith("gymnax/") and not id.endswith(mnist.NAME)]
LIMIT, STEPS = 60, 130


def test_every_environment_of_gymnax_is_registered():
    assert sorted([*NAMES, mnist.NAME]) == sorted(gymnax.registered_envs)


def compare(env, library, numbers):
    """From the same keys and actions, `STEPS` steps each: (observation, reward, both ends, next observation) of both.

    The last of ours is whether every observation lies in its space.
    """
    params, key = env.default_params, jax.random.key(7)
    space, sample = env.spec.observation_space, env.spec.action_space.sample

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
        inside = space.contains(outcome.observation) & space.contains(timestep.observation)
        return state, (outcome.observation, outcome.reward, *ends, timestep.observation, inside)

    def both(keys):
        starts = library.reset(key, numbers)[1], env.reset(key, params)[0]
        return tuple(jax.lax.scan(step, start, keys)[1] for step, start in zip((ours, theirs), reversed(starts), strict=True))

    return jax.tree.map(np.asarray, jax.jit(both, compiler_options=QUICK)(jax.random.split(key, STEPS)))


def form(name, observation):
    """What the adapter shows of gymnax's observations."""
    if name == "FrozenLake-misc":
        return np.eye(16)[observation]
    return observation[..., None] if name in ("Catch-bsuite", "DeepSea-bsuite", mnist.NAME) else observation


def check_equal(name, got, want):
    np.testing.assert_array_equal(got[2], want[2])
    np.testing.assert_array_equal(got[3], want[3])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-5)
    for index in (0, 4):
        np.testing.assert_allclose(got[index], form(name, want[index]), rtol=1e-5, atol=1e-5)
    assert got[5].all(), "an observation left its space"


@pytest.mark.parametrize("name", NAMES)
def test_every_step_equals_gymnax(name, relaxed_rank_promotion):
    """Observation, reward and both ends, over whole episodes that end and that are cut, at the limit exactly; all in space."""
    library, numbers = gymnax.make(name)
    limit = 100 if name == "DiscountingChain-bsuite" else LIMIT
    env = envs_jax.make(f"gymnax/{name}", time_limit=limit)
    got, want = compare(env, library, numbers.replace(max_steps_in_episode=limit))
    if name == "DiscountingChain-bsuite":  # the one departure
        assert want[3].any() and not want[2].any()
        want = (*want[:2], want[3], want[2], want[4])
    check_equal(name, got, want)
    terminated, truncated = got[2:4]
    ends = np.flatnonzero(terminated | truncated)
    lengths = np.diff(ends, prepend=-1)
    assert ends.size and lengths.max() <= limit
    assert (lengths[truncated[ends]] == limit).all()
    assert env.spec.episode_limit == limit


def test_limits_default_to_those_of_gymnax(relaxed_rank_promotion):
    for name in NAMES:
        _, numbers = gymnax.make(name)
        assert envs_jax.make(f"gymnax/{name}").spec.episode_limit == numbers.max_steps_in_episode


@pytest.mark.parametrize("name", ["CartPole-v1", "BernoulliBandit-misc"])  # whole numbers, and floats
def test_the_time_limit_is_exact_and_no_death(name):
    env = envs_jax.make(f"gymnax/{name}", time_limit=3)
    step = jax.jit(env.transition, compiler_options=QUICK)
    state, timestep = env.reset(jax.random.PRNGKey(0), env.default_params)
    for time in range(1, 4):
        action = env.spec.sample_actions(jax.random.PRNGKey(time), timestep)
        state, timestep = step(jax.random.PRNGKey(time), state, action, env.default_params)
        assert bool(timestep.last) == bool(timestep.truncated) == (time == 3)
        assert timestep.discount == 1 and timestep.alive
    assert step._cache_size() == 1


def test_a_true_end_has_no_future():
    env = envs_jax.make("gymnax/CartPole-v1")
    state, timestep = env.reset(jax.random.key(0), env.default_params)
    step, count = jax.jit(env.step), 0
    while not timestep.last:
        state, timestep = step(jax.random.key(0), state, jnp.int32(1), env.default_params)
        count += 1
    assert timestep.terminated and timestep.discount == 0 and count < 15
    assert abs(timestep.observation[2]) > env.default_params.theta_threshold_radians


@pytest.mark.parametrize(("limit", "end"), [(99, "truncated"), (100, "terminated"), (150, "terminated")])
def test_the_discounting_chain_ends_with_its_last_payment(limit, end):
    """A cut before it hides a reward, so the future keeps its value; nothing comes after it, whatever the limit."""
    env = envs_jax.make("gymnax/DiscountingChain-bsuite", time_limit=limit)
    state, _ = env.reset(jax.random.key(0), env.default_params)

    def step(state, key):
        state, timestep = env.transition(key, state, jnp.int32(4), env.default_params)
        return state, (timestep.reward, timestep.terminated, timestep.truncated)

    keys = jax.random.split(jax.random.key(0), min(limit, 100))
    reward, terminated, truncated = jax.jit(lambda s: jax.lax.scan(step, s, keys)[1], compiler_options=QUICK)(state)
    assert not terminated[:-1].any() and not truncated[:-1].any()
    assert (bool(terminated[-1]), bool(truncated[-1])) == (end == "terminated", end == "truncated")
    assert reward.sum() == (end == "terminated")


def test_spaces():
    def space(name, **kwargs):
        return envs_jax.make(f"gymnax/{name}", **kwargs).spec.observation_space

    _, high = space("CartPole-v1").bounds()
    np.testing.assert_allclose(high, [4.8, np.inf, 24 * np.pi / 180, np.inf], rtol=1e-6)
    assert envs_jax.make("gymnax/CartPole-v1").spec.action_space == Discrete(2)
    assert envs_jax.make("gymnax/Pendulum-v1").spec.action_space == Box(-2, 2, (1,))
    assert space("Breakout-MinAtar") == Box(0, 1, (10, 10, 4))
    assert space("DeepSea-bsuite", size=5) == Box(0, 1, (5, 5, 1))
    assert space("FrozenLake-misc", map_name="8x8") == Box(0, 1, (64,))
    assert space("FourRooms-misc") == Box(1, 11, (4,), np.int32)
    assert space("FourRooms-misc", use_visual_obs=True) == Box(0, 1, (13, 13, 2))
    assert space("MemoryChain-bsuite", num_bits=3).bounds()[1].tolist() == [1, 2, 1, 1, 1]
    assert space("UmbrellaChain-bsuite", n_distractor=2).shape == (5,)


@pytest.mark.parametrize("name", ["MemoryChain-bsuite", "UmbrellaChain-bsuite"])
def test_the_time_left_stays_in_its_space_when_optimised(name):
    """XLA computes 1 − t / n with n a constant by a fused product, which ends a little below 0."""
    env = envs_jax.make(f"gymnax/{name}")

    @jax.jit
    def play(key):
        def step(state, key):
            state, timestep = env.transition(key, state, jnp.int32(0), env.default_params)
            return state, (env.spec.observation_space.contains(timestep.observation), timestep.last)

        return jax.lax.scan(step, env.reset(key, env.default_params)[0], jax.random.split(key, 10))[1]

    inside, last = play(jax.random.key(0))
    assert inside[: int(np.argmax(last)) + 1].all() and last.any()


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
    for id, kwargs, message in (
        ("CartPole-v1", {"length": 3}, "gymnax/CartPole-v1 takes no arguments but `time_limit`, got 'length'"),
        ("FrozenLake-misc", {"map": "8x8"}, "argument of gymnax/FrozenLake-misc 'map'.*map_name"),
        ("FrozenLake-misc", {"map_name": "9x9"}, "gymnax/FrozenLake-misc cannot be built with map_name='9x9': .*'8x8'"),
        ("MetaMaze-misc", {"maze_size": 4}, "gymnax/MetaMaze-misc cannot be built with maze_size=4"),
        ("CartPole-v1", {"time_limit": 0}, "time_limit must be a whole number"),
        ("CartPole-v1", {"time_limit": 2.5}, "time_limit must be a whole number"),
        ("CartPole-v1", {"time_limit": True}, "time_limit must be a whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            envs_jax.make(f"gymnax/{id}", **kwargs)
    env = envs_jax.make("gymnax/CartPole-v1")
    with pytest.raises(ValueError, match="constructor argument `time_limit`"):
        env.reset(jax.random.key(0), env.default_params.replace(max_steps_in_episode=3))


@pytest.fixture
def digits(tmp_path):
    """A folder in MNIST's format: six pictures of 4 × 3 pixels, dark to bright."""
    pictures = np.arange(6 * 12, dtype=np.uint8) * 3
    for name in mnist.FILES:
        head = struct.pack(">IIII", 2051, 6, 4, 3) if "images" in name else struct.pack(">II", 2049, 6)
        body = pictures if "images" in name else np.array([3, 1, 4, 1, 5, 9], np.uint8)
        (tmp_path / name).write_bytes(gzip.compress(head + body.tobytes()))
    return tmp_path


def test_mnist_from_a_folder(digits, monkeypatch):
    env = envs_jax.make(f"gymnax/{mnist.NAME}", path=str(digits))
    assert env.spec.observation_space == Box(-128 / 255, 127 / 255, (4, 3, 1)) and env.spec.action_space == Discrete(10)
    check(env)
    load = load_mnist.load_mnist
    monkeypatch.setattr(load_mnist, "load_mnist", lambda: load(str(digits)))
    got, want = compare(env, *gymnax.make(mnist.NAME))
    check_equal(mnist.NAME, got, want)
    assert got[2].all() and set(got[1]) == {-1.0, 1.0}
    assert len(np.unique(got[4], axis=0)) == 6
    assert envs_jax.make(f"gymnax/{mnist.NAME}", path=digits, fraction=0.5)._env.num_data == 3


def test_mnist_without_its_data_says_what_to_fetch(digits, tmp_path):
    def fails(message, **kwargs):
        with pytest.raises(ValueError, match=message) as error:
            envs_jax.make(f"gymnax/{mnist.NAME}", **kwargs)
        assert "\n" not in str(error.value)
        return str(error.value)

    line = fails("gymnax/MNISTBandit-bsuite needs data: fetch")
    assert all(name in line for name in mnist.FILES) and mnist.SOURCE in line
    assert mnist.SOURCE in fails("path '/nowhere/at/all' is no folder", path="/nowhere/at/all")
    fails("fraction 0.0", path=digits, fraction=0.0)
    fails("did you mean path", pth=digits)
    (digits / mnist.FILES[0]).write_bytes(b"no archive")
    fails(f"the files in path '{digits}' cannot be read", path=digits)
    (digits / mnist.FILES[1]).unlink()
    fails(f"path '{digits}' has no train-labels-idx1-ubyte.gz", path=digits)

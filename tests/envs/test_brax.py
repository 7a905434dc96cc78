"""brax's adapters against brax itself."""

import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.adapters import brax

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # brax's ant relies on rank promotion

EPISODES = 8
QUICKLY = {"xla_backend_optimization_level": 0}  # compiling takes most of the time here
CASES = {
    "fast": ({"time_limit": 6}, 8),
    "inverted_pendulum": ({"time_limit": 9}, 11),
    "ant": ({"time_limit": 3, "backend": "spring"}, 4),
}


def play_side_by_side(env, steps):
    """[EPISODES, steps + 1] rows of an adapter's absorbing `step`, and of the library's step from the same state.

    Equal at every step, they are equal over the episode, and XLA compiles what they have in common once.
    """

    def seen(library):
        return library.pipeline_state, library.obs, 1.0 * library.done, 1.0 * library.reward

    def episode(key):
        key_reset, key_steps = jax.random.split(key)
        start = env.library.reset(key_reset)
        state, timestep = env.reset(key_reset, ())

        def step(state, key):
            action = jax.random.uniform(key, env.spec.action_space.shape, minval=-1.0, maxval=1.0)
            library = start.replace(pipeline_state=state.pipeline, metrics=dict(start.metrics))
            theirs = seen(env.library.step(library, action))
            state, timestep = env.step(key, state, action, ())
            return state, (state, timestep, theirs)

        _, rows = jax.lax.scan(step, state, jax.random.split(key_steps, steps))
        return jax.tree.map(lambda first, later: jnp.concatenate([first[None], later]), (state, timestep, seen(start)), rows)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        play = jax.jit(jax.vmap(episode), compiler_options=QUICKLY)
        return jax.device_get(play(jax.random.split(jax.random.PRNGKey(0), EPISODES)))


@pytest.mark.parametrize("name", CASES)
def test_an_episode_is_the_librarys_up_to_its_exact_limit(name):
    kwargs, steps = CASES[name]
    env = brax.make(name, **kwargs)
    states, timesteps, (pipeline, observation, done, reward) = play_side_by_side(env, steps)
    running = np.cumsum(timesteps.last, axis=1) - timesteps.last == 0
    for ours, theirs in zip(jax.tree.leaves(states.pipeline), jax.tree.leaves(pipeline), strict=True):
        np.testing.assert_allclose(ours[running], theirs[running], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(timesteps.observation[running], observation[running], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(timesteps.reward[running], reward[running], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(timesteps.discount[running], 1 - done[running])
    lengths = np.argmax(timesteps.last, axis=1)
    rows = np.arange(EPISODES), lengths
    assert timesteps.last[rows].all()
    np.testing.assert_array_equal(lengths[done[rows] == 0], kwargs["time_limit"])
    assert (done[rows] == 0).any()
    assert (done[rows] == 1).any() == (name == "inverted_pendulum"), "the sample of the pendulum must hold both kinds of end"
    assert np.all(timesteps.reward[~running] == 0) and np.all(timesteps.last[~running])
    np.testing.assert_array_equal(states.steps[:, -1], lengths)
    assert np.all(jax.vmap(env.spec.observation_space.contains)(timesteps.observation[running]))


@pytest.mark.parametrize("name", CASES)
def test_reset_and_step_agree_in_shape_and_strong_dtype(name):
    env, key = brax.make(name, **CASES[name][0]), jax.random.PRNGKey(0)
    start = jax.eval_shape(env.reset, key, ())
    action = jax.eval_shape(env.spec.action_space.sample, key)
    later = jax.eval_shape(env.transition, key, start[0], action, ())
    assert jax.tree.structure(start) == jax.tree.structure(later)
    for before, after in zip(jax.tree.leaves(start), jax.tree.leaves(later), strict=True):
        assert (before.shape, before.dtype, before.weak_type) == (after.shape, after.dtype, False)


def test_full_speed_on_fast_earns_the_most_there_is():
    env = brax.make("fast", time_limit=128)

    def total(action):
        def step(state, _):
            state, timestep = env.step(jax.random.PRNGKey(0), state, action, ())
            return state, (timestep.reward, timestep.last)

        _, (rewards, last) = jax.lax.scan(step, env.reset(jax.random.PRNGKey(0), ())[0], length=130)
        return rewards.sum(), last

    (best, none), last = jax.jit(jax.vmap(total))(jnp.array([[1.0], [-1.0]], jnp.float32))
    n = 128
    np.testing.assert_allclose(best, 0.02**2 * n * (n + 1) * (n + 2) / 6, rtol=1e-5)  # 143.1
    assert none == 0 and np.argmax(last[0]) == n - 1


def test_the_backend_is_the_one_asked_for():
    assert brax.make("inverted_pendulum").library.backend == "generalized"
    assert brax.make("inverted_pendulum", backend="positional", n_frames=1).library.backend == "positional"
    assert brax.make("inverted_pendulum").spec.episode_limit == 1000


def test_import_build_and_trace_are_silent_and_leave_no_mark(root):
    program = """
import sys, warnings, jax
before = list(warnings.filters), sys.stdout, sys.stderr
from envs_jax.adapters import brax
env = brax.make("inverted_pendulum")
jax.eval_shape(env.reset, jax.random.PRNGKey(0), ())
assert (list(warnings.filters), sys.stdout, sys.stderr) == before
"""
    command = [sys.executable, "-W", "error::DeprecationWarning", "-W", "error::UserWarning", "-c", program]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("inverted_pendullum", {}, "did you mean inverted_pendulum"),
        ("ant", {"backand": "spring"}, "unknown argument of brax/ant 'backand': did you mean backend"),
        ("ant", {"backend": "springs"}, "unknown brax backend 'springs': did you mean spring"),
        ("fast", {"backend": "spring"}, "unknown argument of brax/fast 'backend'"),
        ("fast", {"time_limit": 0}, "time_limit must be a whole number of steps, at least 1, got 0"),
        ("fast", {"obs_mode": "dict_state"}, "Fast: the observation must be one array"),
    ],
)
def test_bad_input_is_one_clear_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        brax.make(name, **kwargs)

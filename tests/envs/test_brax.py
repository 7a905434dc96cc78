"""brax's adapters against brax itself."""

import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.adapters import brax
from envs_jax.adapters.brax.env import LibraryState
from envs_jax.adapters.brax.library import BACKENDS, CLASSES, building, quiet
from envs_jax.adapters.brax.params import write
from envs_jax.adapters.common import strong

from .contract import QUICK, check_types

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # brax's ant relies on rank promotion

EPISODES = 8
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
        state, timestep = env.reset(key_reset, env.default_params)

        def step(state, key):
            action = jax.random.uniform(key, env.spec.action_space.shape, minval=-1.0, maxval=1.0)
            library = start.replace(pipeline_state=state.pipeline, metrics=dict(start.metrics))
            theirs = seen(env.library.step(library, action))
            state, timestep = env.step(key, state, action, env.default_params)
            return state, (state, timestep, theirs)

        _, rows = jax.lax.scan(step, state, jax.random.split(key_steps, steps))
        return jax.tree.map(lambda first, later: jnp.concatenate([first[None], later]), (state, timestep, seen(start)), rows)

    with quiet():
        play = jax.jit(jax.vmap(episode), compiler_options=QUICK)
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


def expressions(function, *arguments):
    """A hash for each output, of the operations, inputs and constants that it is made of; and the outputs' shapes."""
    with quiet():
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    known = {variable: ("input", i) for i, variable in enumerate(closed.jaxpr.invars)}
    known |= {variable: constant(value) for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)}

    def meaning(atom):
        return constant(atom.val) if isinstance(atom, jax.extend.core.Literal) else known[atom]

    for equation in closed.jaxpr.eqns:
        settings = re.sub("0x[0-9a-f]+", "", str(equation.params))
        made = hash((equation.primitive.name, settings, *map(meaning, equation.invars)))
        known |= {variable: (made, i) for i, variable in enumerate(equation.outvars)}
    return [meaning(atom) for atom in closed.jaxpr.outvars], shapes


def constant(value):
    value = np.asarray(value)
    return "constant", value.shape, str(value.dtype), value.tobytes()


def documented_sizes():
    rows = re.findall(r"^\| (\w+)[^|]*\| (\d+) +\| (\d+) ", brax.__doc__, re.MULTILINE)
    return {name: (int(observation), int(action)) for name, observation, action in rows}


@pytest.mark.parametrize("name", CLASSES)
def test_reset_and_step_are_the_librarys_own_programs(name):
    """With the default params, which are then constants: the same operations on the same numbers, so equal for every input."""
    env, key = brax.make(name), jax.random.PRNGKey(0)
    params, zero = env.default_params, jnp.float32(0)

    def seen(after):
        return strong((after.pipeline_state, jnp.float32(after.obs), jnp.asarray(after.done) > 0))

    def library_step(state, action):
        after = env.library.step(LibraryState(state.pipeline, state.observation, zero, zero), action)
        return seen(after), state.steps + 1, jnp.float32(after.reward)

    def step(state, action):
        state, timestep = env.transition(key, state, action, params)
        return state, timestep.reward

    untouched = dict(vars(env.library))
    reset, start = expressions(lambda key: env.reset(key, params)[0], key)
    inputs = start, jnp.zeros(env.spec.action_space.shape)
    stepped, _ = expressions(step, *inputs)
    assert vars(env.library) == untouched, "brax's shared object was written to"
    assert reset == expressions(lambda key: (seen(env.library.reset(key)), jnp.int32(0)), key)[0]
    assert stepped == expressions(library_step, *inputs)[0]
    assert (env.spec.observation_space.shape[0], env.spec.action_space.shape[0]) == documented_sizes()[name]


@pytest.mark.parametrize("backend", BACKENDS["ant"][1:])
def test_the_contract_by_types_on_the_other_backends(backend):
    env = brax.make("ant", backend=backend)
    assert env.library.backend == backend
    check_types(env)


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


@pytest.mark.parametrize(
    ("name", "backend", "varied"),
    [
        ("ant", "spring", ("gravity", "mass", "friction", "gear")),
        ("inverted_double_pendulum", "generalized", ("gravity", "mass", "gear")),  # it touches nothing
    ],
)
def test_a_domain_is_randomised_by_vmap(name, backend, varied):
    """Row 0 has the default numbers, given as arguments: the library's motion. Each other row has one of them changed."""
    env, steps = brax.make(name, backend=backend), 12
    default = env.default_params
    rows = [default] + [default.replace(**{field: 0.5 * getattr(default, field)}) for field in varied]

    def play(params, key):
        key_reset, key_steps = jax.random.split(key)

        def step(state, key):
            state, timestep = env.transition(key, state, env.spec.action_space.sample(key), params)
            return state, timestep.observation

        return jax.lax.scan(step, env.initial(key_reset, params), jax.random.split(key_steps, steps))[1]

    def both(params, key):
        return play(default, key), jax.vmap(play, (0, None))(params, key)

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
    library, (same, *others) = jax.jit(both, compiler_options=QUICK)(stacked, jax.random.PRNGKey(0))
    np.testing.assert_allclose(same[:3], library[:3], rtol=1e-4, atol=1e-4)  # later, contacts make rounding grow
    for field, other in zip(varied, others, strict=True):
        assert np.isfinite(other).all() and np.abs(other - library).max() > 1e-2, f"{field} changes nothing"


def test_params_are_the_numbers_that_the_physics_has():
    params = brax.make("halfcheetah", backend="spring").default_params
    np.testing.assert_allclose(params.gravity, [0, 0, -9.81])
    np.testing.assert_array_equal(params.gear, np.float32([120, 90, 60, 120, 100, 100]))
    mass = brax.make("halfcheetah").default_params.mass
    np.testing.assert_allclose(params.mass, mass**0.7, rtol=1e-5)  # its `spring_mass_scale` is 0.3
    np.testing.assert_allclose(params.friction, [0.4] * 9)


def test_mujoco_and_brax_read_the_same_numbers():
    """`mjx` reads fields of its own: without a change they agree with brax's, and they follow a change."""
    env = brax.make("ant", backend="mjx")
    default = env.default_params
    other = jax.tree.map(lambda leaf: 2 * leaf + 1, default)
    for params in (default, other):
        sys = write(env.library.sys, params, default)
        np.testing.assert_array_equal(sys.opt.gravity, params.gravity)
        np.testing.assert_array_equal(sys.gravity, params.gravity)
        np.testing.assert_array_equal(sys.body_mass[1:], params.mass)
        np.testing.assert_array_equal(sys.link.inertia.mass, params.mass)
        np.testing.assert_array_equal(sys.geom_friction[:, 0], params.friction)
        np.testing.assert_array_equal(sys.actuator_gear[:, 0], params.gear)
        np.testing.assert_array_equal(sys.actuator.gear, params.gear)
    assert sys.body_mass[0] == env.library.sys.body_mass[0]
    np.testing.assert_array_equal(sys.geom_friction[:, 1:], env.library.sys.geom_friction[:, 1:])


def builds(name, backend):
    try:
        with building():
            CLASSES[name](backend=backend)
    except ValueError:
        return False
    return True


def test_the_table_of_backends_is_what_builds():
    assert not BACKENDS["fast"]
    for name in CLASSES.keys() - {"fast"}:
        assert BACKENDS[name] == tuple(backend for backend in BACKENDS["ant"] if builds(name, backend)), name


def test_defaults():
    env = brax.make("inverted_pendulum")
    assert (env.library.backend, env.spec.episode_limit) == ("generalized", 1000)
    assert brax.make("fast").default_params == ()


def test_import_build_and_trace_are_silent_and_leave_no_mark(tmp_path):
    program = """
import sys, warnings, jax
before = list(warnings.filters), sys.stdout, sys.stderr
from envs_jax.adapters import brax
env = brax.make("halfcheetah")  # MuJoCo warns of its model from C, in a file too
jax.eval_shape(env.reset, jax.random.PRNGKey(0), env.default_params)
assert (list(warnings.filters), sys.stdout, sys.stderr) == before
"""
    command = [sys.executable, "-W", "error::DeprecationWarning", "-W", "error::UserWarning", "-c", program]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("inverted_pendullum", {}, "did you mean inverted_pendulum"),
        ("ant", {"backand": "spring"}, "unknown argument of brax/ant 'backand': did you mean backend"),
        ("ant", {"backend": "springs"}, "brax/ant has no backend 'springs': it supports generalized, spring, positional, mjx"),
        ("ant", {"backend": 3}, "brax/ant has no backend 3: it supports generalized"),
        ("swimmer", {"backend": "spring"}, "brax/swimmer has no backend 'spring': it supports generalized$"),
        ("fast", {"backend": "spring"}, "unknown argument of brax/fast 'backend'"),
        ("fast", {"time_limit": 0}, "time_limit must be a whole number of steps, at least 1, got 0"),
        ("fast", {"obs_mode": "dict_state"}, "Fast: the observation must be one array"),
        ("fast", {"obs_mode": "picture"}, "brax/fast: obs_mode must be one of ndarray, .*, got 'picture'"),
        ("ant", {"n_frames": "abc"}, "brax/ant: n_frames must be a whole number, at least 1, got 'abc'"),
        ("ant", {"n_frames": True}, "brax/ant: n_frames must be a whole number, at least 1, got True"),
        ("ant", {"terminate_when_unhealthy": "no"}, "terminate_when_unhealthy must be true or false, got 'no'"),
        ("hopper", {"ctrl_cost_weight": "0.1"}, "brax/hopper: ctrl_cost_weight must be a finite number, got '0.1'"),
        ("hopper", {"healthy_reward": float("nan")}, "healthy_reward must be a finite number, got nan"),
        ("humanoid", {"healthy_z_range": [1.0]}, "healthy_z_range must be 2 numbers, got \\[1.0\\]"),
        ("ant", {"use_contact_forces": True}, "brax/ant: use_contact_forces not implemented"),
    ],
)
def test_bad_input_is_one_clear_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message) as caught:
        brax.make(name, **kwargs)
    assert "\n" not in str(caught.value)


def test_good_arguments_reach_the_library():
    heights = {"healthy_z_range": [0.5, float("inf")], "terminate_when_unhealthy": False}
    library = brax.make("hopper", **heights, reset_noise_scale=0, n_frames=2).library
    assert (list(library._healthy_z_range), library._reset_noise_scale, library._n_frames) == ([0.5, float("inf")], 0, 2)
    assert library._terminate_when_unhealthy is False

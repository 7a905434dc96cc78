"""The particle worlds against jaxmarl's, step by step, and what they do by hand-worked episodes."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.multi import particles, reference, speaker_listener, spread, tag
from envs_jax.pictures import palette

from .contract import QUICK, check_types, relaxed

LIBRARY = {
    "spread": "MPE_simple_spread_v3",
    "speaker_listener": "MPE_simple_speaker_listener_v4",
    "reference": "MPE_simple_reference_v3",
    "tag": "MPE_simple_tag_v3",
}
COPIES, STEPS = 4, 25


@functools.cache
def make(name, **kwargs):
    return envs_jax.make(f"multi/{name}", **kwargs)


def from_library(name, state, agents):
    """Our state of a state of jaxmarl."""
    places = {
        "time": state.step.astype(jnp.int32),
        "position": state.p_pos[:agents],
        "velocity": state.p_vel[:agents],
        "landmarks": state.p_pos[agents:],
    }
    if name == "spread":
        return spread.Bodies(**places)
    if name == "tag":
        return tag.State(**places, tagged=jnp.bool_(False))
    if name == "reference":
        return reference.State(**places, goal=state.goal, message=state.c)
    listener = {"position": state.p_pos[1:2], "velocity": state.p_vel[1:2]}
    return speaker_listener.State(**places | listener, goal=state.goal, message=state.c[0])


def widths(spec):
    """What is each agent's own of the widest observation."""
    groups = [group.observation_space.shape[0] for group in spec.groups for _ in range(group.size)]
    return groups or [spec.observation_space.shape[0]] * spec.agents


def draw(space, key):
    """A random action of jaxmarl's; continuous ones lie at the ends of their range half of the time."""
    if hasattr(space, "n"):
        return jax.random.randint(key, (), 0, space.n, jnp.int32)
    return jnp.clip(jax.random.uniform(key, space.shape, minval=-0.5, maxval=1.5), 0.0, 1.0)


def beside_library(name, library, env, key):
    """One episode of both from one state, the bodies close together: (observations, rewards) of theirs, and our timesteps."""
    agents, key_reset = library.num_agents, jax.random.fold_in(key, STEPS)
    _, first = library.reset(key_reset)
    first = first.replace(p_pos=0.2 * first.p_pos)
    pads = [(0, width - size) for size in widths(env.spec) for width in env.spec.observation_space.shape]

    def joint(actions):
        wide = env.spec.action_space.shape
        return jnp.stack([jnp.pad(x, [(0, wide[0] - x.shape[0])]) if wide else x for x in actions])

    def step(states, key):
        keys = jax.random.split(key, agents)
        actions = [draw(library.action_space(agent), key) for agent, key in zip(library.agents, keys, strict=True)]
        seen, theirs, paid, _, _ = library.step_env(key, states[0], dict(zip(library.agents, actions, strict=True)))
        ours, timestep = env.transition(key, states[1], joint(actions), env.default_params)
        rows = jnp.stack([jnp.pad(seen[agent], pad) for agent, pad in zip(library.agents, pads, strict=True)])
        rewards = jnp.stack([paid[agent] for agent in library.agents])
        return (theirs, ours), ((rows, rewards), timestep)

    return jax.lax.scan(step, (first, from_library(name, first, agents)), jax.random.split(key, STEPS))[1]


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
@pytest.mark.parametrize("name", LIBRARY)
def test_an_episode_equals_jaxmarls(name, kind):
    with relaxed():
        import jaxmarl

        library, env = jaxmarl.make(LIBRARY[name], action_type=kind.capitalize()), make(name, actions=kind)
        program = jax.jit(jax.vmap(lambda key: beside_library(name, library, env, key)), compiler_options=QUICK)
        (rows, rewards), steps = jax.tree.map(np.asarray, program(jax.random.split(jax.random.key(1), COPIES)))
    # A deep contact multiplies rounding by the stiffness of the contact.
    np.testing.assert_allclose(steps.observation, rows, rtol=0, atol=1e-4)
    np.testing.assert_allclose(steps.reward, rewards, rtol=1e-5, atol=1e-4)
    if name in ("spread", "tag"):
        assert steps.metrics["collisions" if name == "spread" else "tags"].sum() > 3, "nobody met"
    np.testing.assert_array_equal(steps.last, [[False] * (STEPS - 1) + [True]] * COPIES)  # the limit is exact, and no death
    assert (steps.discount == 1).all() and steps.alive.all()


def play(env, state, actions):
    """The timesteps [T, ...] and the states that follow from a state by joint actions [T, A]."""

    def step(state, action):
        state, timestep = env.transition(jax.random.key(0), state, action, env.default_params)
        return state, (timestep, state)

    return jax.jit(lambda: jax.lax.scan(step, state, jnp.asarray(actions))[1], compiler_options=QUICK)()


def at(env, key=0, **fields):
    """A start with some places or goals put by hand."""
    state = env.initial(jax.random.key(key), env.default_params)
    return state.replace(**{name: jnp.asarray(x, getattr(state, name).dtype) for name, x in fields.items()})


def test_spread_by_hand():
    """Two agents on two landmarks; one pushes off, so its speed is 0.5, then ¾ of that, and it moves a step later."""
    env = make("spread", num_agents=2, num_landmarks=2, time_limit=3)
    start = at(env, position=[[0, 0], [0, 1]], landmarks=[[0, 0], [0, 1]])
    steps, states = play(env, start, np.array([[2, 0], [0, 0], [0, 0]], np.int32))
    np.testing.assert_allclose(states.velocity[:, 0, 0], [0.5, 0.375, 0.28125], rtol=1e-6)
    x = np.array([0, 0.05, 0.0875])
    np.testing.assert_allclose(states.position[:, 0, 0], x, rtol=1e-6)
    np.testing.assert_allclose(steps.reward, np.stack([-x / 2, -x / 2], axis=1), atol=1e-6)  # half of −(x + 0)
    np.testing.assert_array_equal(steps.metrics["success"], [1, 1, 1])
    np.testing.assert_array_equal(steps.metrics["covered"], [2, 2, 2])
    last = [0.28125, 0, x[2], 0, -x[2], 0, -x[2], 1, -x[2], 1, 0, 0]
    np.testing.assert_allclose(steps.observation[2, 0], last, atol=1e-6)
    np.testing.assert_array_equal(steps.last, [False, False, True])


def test_agents_that_overlap_are_both_paid_less_and_pushed_apart():
    """At a distance of 0.2 two discs of 0.15 overlap by 0.1: a force of 100 · 0.1, so a speed of 1 after a step."""
    env = make("spread")
    start = at(env, position=[[-0.1, 0], [0.1, 0], [1, 1]], landmarks=[[-0.1, 0], [0.1, 0], [1, 1]])
    steps, states = play(env, start, np.zeros((2, 3), np.int32))
    np.testing.assert_allclose(states.velocity[0, :, 0], [-1, 1, 0], atol=1e-5)
    np.testing.assert_allclose(steps.reward[0], [-0.5, -0.5, 0], atol=1e-6)
    np.testing.assert_array_equal(steps.metrics["collisions"], [1, 0])  # at a distance of 0.4 they have parted
    np.testing.assert_allclose(steps.reward[1], [-0.1] * 3, atol=1e-6)  # half of −(0.1 + 0.1)


@pytest.mark.parametrize("agents", [1, 3, 4])
def test_every_pair_in_a_heap_pushes_each_other_once(agents):
    key, radius = jax.random.key(agents), 0.1 + 0.02 * np.arange(agents)
    place = np.asarray(0.1 * jax.random.normal(key, (agents, 2)))
    physics = particles.Physics(**particles.numbers(list(radius), [1.0] * agents))
    bodies = particles.Bodies(jnp.int32(0), jnp.asarray(place), jnp.zeros((agents, 2)), jnp.zeros((0, 2)))
    force = jax.jit(particles.contacts, compiler_options=QUICK)(bodies, physics)
    wanted = np.zeros((agents, 2))
    for i, j in itertools.permutations(range(agents), 2):
        way = place[i] - place[j]
        distance = np.linalg.norm(way)
        wanted[i] += 100 * 1e-3 * np.logaddexp(0, (radius[i] + radius[j] - distance) / 1e-3) * way / distance
    np.testing.assert_allclose(force, wanted, rtol=1e-3, atol=1e-3)


def test_speaker_listener_by_hand():
    """The word is heard one step after it was said; both are paid minus the squared distance of the listener from the goal."""
    env = make("speaker_listener")
    start = at(env, position=[[0, 0]], landmarks=[[0, 0], [1, 0], [0, -1]], goal=1)
    first = env.observe(start, env.default_params)
    np.testing.assert_allclose(first.observation[0], [0.15, 0.65, 0.15] + [0] * 8)
    np.testing.assert_array_equal(first.action_mask, [[True] * 3 + [False] * 2, [True] * 5])
    steps, _ = play(env, start, np.array([[1, 2], [2, 0]], np.int32))
    np.testing.assert_allclose(steps.reward, [[-1, -1], [-(0.95**2)] * 2], rtol=1e-6)
    np.testing.assert_allclose(steps.observation[0, 1], [0.5, 0, 0, 0, 1, 0, 0, -1, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(steps.observation[1, 1, -3:], [0, 0, 1])
    near = at(env, position=[[0.95, 0]], landmarks=[[0, 0], [1, 0], [0, -1]], goal=1)
    steps, _ = play(env, near, np.zeros((1, 2), np.int32))
    assert steps.metrics["success"][0] == 1
    assert [(group.name, group.size) for group in env.spec.groups] == [("speaker", 1), ("listener", 1)]
    np.testing.assert_array_equal(env.spec.own_actions, first.action_mask)


def test_what_a_listener_gets_who_goes_where_it_is_told():
    """The ceiling of the learning gate: the speaker names the goal, the listener makes for it; before the first word it makes
    for the middle of the landmarks."""
    env, episodes = make("speaker_listener"), 4000
    moves = jnp.asarray([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]], jnp.float32)

    def act(seen):
        velocity, ways, heard = seen[1, :2], seen[1, 2:8].reshape(3, 2), seen[1, 8:]
        where = 0.25 * (0.75 * velocity[None] + 0.5 * moves)  # after a push, 0.25 s later
        weight = jnp.where(jnp.any(heard > 0), heard, 1 / 3)
        nearest = jnp.argmin(jnp.sum(jnp.square(jnp.sum(weight[:, None] * ways, axis=0)[None] - where), axis=-1))
        return jnp.stack([jnp.argmax(seen[0, :3]), nearest])

    def step(carry, key):
        state, seen = carry
        state, timestep = env.transition(key, state, act(seen), env.default_params)
        return (state, timestep.observation), timestep.reward[0]

    def episode(key):
        state, first = env.reset(key, env.default_params)
        return jnp.sum(jax.lax.scan(step, (state, first.observation), jax.random.split(key, STEPS))[1])

    returns = np.asarray(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), episodes)))
    np.testing.assert_allclose(returns.mean(), -7.37, atol=4 * returns.std() / np.sqrt(episodes))
    assert returns.std() < 10


def test_reference_by_hand():
    """Agent 0 moves up and says word 3, agent 1 rests and says word 0. Each knows the other's goal, and is paid half by it."""
    env = make("reference")
    start = at(env, position=[[0, 0], [1, 0]], landmarks=[[0, 1], [1, 1], [-1, 0]], goal=[0, 2])
    steps, _ = play(env, start, np.array([[4 + 5 * 3, 0], [0, 0]], np.int32))
    seen = steps.observation[1]
    np.testing.assert_allclose(seen[0, :2], [0, 0.375], atol=1e-6)
    np.testing.assert_allclose(seen[0, 2:8], [0, 0.95, 1, 0.95, -1, -0.05], atol=1e-6)
    np.testing.assert_allclose(seen[0, 8:11], [0.25, 0.25, 0.75])
    np.testing.assert_allclose(seen[1, 8:11], [0.75, 0.25, 0.25])
    np.testing.assert_array_equal(steps.observation[0, 1, 11:], np.eye(10)[3])
    np.testing.assert_array_equal(steps.observation[0, 0, 11:], np.eye(10)[0])
    np.testing.assert_allclose(steps.reward[1], [-2 / 2 - 2.95 / 4, -0.95 / 2 - 2.95 / 4], rtol=1e-6)
    together = at(env, position=[[0, 1], [-1, 0]], landmarks=[[0, 1], [1, 1], [-1, 0]], goal=[0, 2])
    steps, _ = play(env, together, np.zeros((1, 2), np.int32))
    assert steps.metrics["success"][0] == 1 and steps.metrics["distance"][0] < 1e-6


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("spread", {"num_agents": 0}, "num_agents must be a whole number of at least 1"),
        ("tag", {"time_limit": 2.5}, "time_limit must be a whole number"),
        ("reference", {"actions": "discreet"}, "did you mean discrete"),
        ("speaker_listener", {"landmarks": 3}, "num_landmarks"),
    ],
)
def test_bad_arguments(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        envs_jax.make(f"multi/{name}", **arguments)


def test_other_sizes_and_the_same_again():
    """Every number of bodies and words gives sound types; a key gives the same episode twice, and another key another one."""
    for env in (
        make("spread", num_agents=1, num_landmarks=4),
        make("speaker_listener", num_landmarks=6),
        make("reference", num_landmarks=2, num_words=4, actions="continuous"),
        make("tag", num_predators=2, num_prey=3, num_obstacles=0, actions="continuous"),
    ):
        check_types(env)
    env = make("tag")
    first, again, other = (env.reset(jax.random.key(key), env.default_params)[1].observation for key in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (np.asarray(first) != np.asarray(other)).any()


@pytest.mark.parametrize("name", ["spread", "reference", "speaker_listener"])
def test_a_picture_shows_bodies_and_landmarks_in_their_colours(name):
    """Every disc's middle, in a square from -1.2 to 1.2, has its colour; all are apart."""
    env = make(name)
    state = env.initial(jax.random.PRNGKey(0), env.default_params)
    count = len(state.position)
    places = jnp.linspace(-1, 1, count + len(state.landmarks))
    line = jnp.stack([places, -0.8 * places], axis=-1)
    state = state.replace(position=line[:count], landmarks=line[count:])
    colours = [spread.AGENT] * count + [spread.LANDMARK] * len(state.landmarks)
    if name != "spread":
        landmarks = palette(len(state.landmarks))
        state = state.replace(goal=jnp.full_like(state.goal, 1))
        colours = [landmarks[1]] * count + landmarks
    if name == "speaker_listener":
        unheard = env.render(state.replace(message=jnp.zeros_like(state.message)))
        assert tuple(np.asarray(unheard)[_pixel(line[0])]) == speaker_listener.SILENT
        state = state.replace(message=jnp.zeros_like(state.message).at[1].set(1.0))
    picture = np.asarray(jax.jit(env.render, compiler_options=QUICK)(state))
    assert picture.dtype == np.uint8 and picture.shape == (160, 160, 3)
    assert [tuple(picture[_pixel(place)]) for place in line] == colours


def _pixel(place):
    x, y = np.asarray(place)
    return int(80 - 80 * y / 1.2), int(80 + 80 * x / 1.2)

"""The matrix games, the rendezvous and the switch riddle: rules, returns that are known, pictures."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.multi import matrix, rendezvous, switch

from .contract import QUICK


def replay(env, state, actions, params=None):
    """The timesteps [T + 1, ...] and states of fixed joint actions [T, A] from a state, jitted."""
    params = env.default_params if params is None else params

    def episode(state, actions, params):
        def step(state, action):
            state, timestep = env.transition(jax.random.key(7), state, action, params)
            return state, (timestep, state)

        first = (env.observe(state, params), state)
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, jax.lax.scan(step, state, actions)[1])

    program = jax.jit(episode, compiler_options=QUICK)
    return jax.tree.map(np.asarray, program(state, jnp.asarray(actions, jnp.int32), params))


def start(env, seed=0):
    return env.initial(jax.random.key(seed), env.default_params)


# Matrix games.


@pytest.mark.parametrize(("game", "best"), [("climbing", 11), ("penalty", 10)])
def test_a_team_game_pays_its_matrix_once(game, best):
    env = envs_jax.make("multi/matrix", game=game)
    for row, column in itertools.product(range(3), repeat=2):
        steps, _ = replay(env, start(env), [[row, column]])
        paid = matrix.PAYOFFS[game][row][column]
        np.testing.assert_array_equal(steps.reward, [[0, 0], [paid, paid]])
        np.testing.assert_array_equal(steps.last, [False, True])
        np.testing.assert_array_equal(steps.discount, [[1, 1], [0, 0]])
        assert steps.metrics["success"][1] == (paid == best)
        ids = np.eye(2)
        np.testing.assert_array_equal(steps.observation[0], np.hstack([np.zeros((2, 6)), ids]))
        own = np.eye(3)[[row, column]]
        np.testing.assert_array_equal(steps.observation[1], np.hstack([own, own[::-1], ids]))
    assert np.max(matrix.PAYOFFS[game]) == best


def test_the_dilemma_pays_each_agent_for_ten_rounds():
    env = envs_jax.make("multi/matrix", game="prisoners_dilemma")
    assert (env.spec.reward, env.spec.episode_limit) == ("individual", 10)
    rounds = [(0, 0), (0, 1), (1, 0), (1, 1)]
    steps, states = replay(env, start(env), [*rounds, *[(0, 0)] * 6])
    np.testing.assert_array_equal(steps.reward[1:5], [[3, 3], [0, 5], [5, 0], [1, 1]])
    np.testing.assert_array_equal(steps.last, [False] * 10 + [True])
    np.testing.assert_array_equal(steps.discount[:, 0], [1] * 10 + [0])
    np.testing.assert_array_equal(steps.metrics["success"][1:], [1, 0, 0, 0] + [1] * 6)
    np.testing.assert_array_equal(steps.observation[2], [[1, 0, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1]])
    world = jax.vmap(lambda state: env.world(state, env.default_params))(states)
    np.testing.assert_allclose(world[2], [1, 0, 0, 1, 0.8])
    np.testing.assert_array_equal(world[0], [0, 0, 0, 0, 1])


def test_other_payoffs_and_rounds_move_what_is_best():
    env = envs_jax.make("multi/matrix", game="climbing", rounds=2)
    params = env.default_params.replace(payoff=-env.default_params.payoff)
    steps, _ = replay(env, start(env), [[0, 0], [0, 1]], params)
    np.testing.assert_array_equal(steps.reward[:, 0], [0, -11, 30])
    np.testing.assert_array_equal(steps.metrics["success"], [0, 0, 1])
    np.testing.assert_array_equal(steps.last, [False, False, True])


# Rendezvous.


def placed(*cells):
    return rendezvous.State(jnp.int32(0), jnp.asarray(cells, jnp.int32))


def test_two_agents_who_walk_towards_each_other_get_the_best_return():
    env = envs_jax.make("multi/rendezvous")
    stay, up, down, left, right = range(5)
    steps, states = replay(env, placed((0, 0), (1, 4)), [[right, left], [right, left], [stay, up]])
    np.testing.assert_allclose(steps.reward[:, 0], [0, -0.02, -0.02, 0.98], atol=1e-7)
    np.testing.assert_array_equal(steps.reward[:, 0], steps.reward[:, 1])
    np.testing.assert_array_equal(steps.last, [False, False, False, True])
    np.testing.assert_array_equal(steps.discount[:, 0], [1, 1, 1, 0])
    np.testing.assert_array_equal(steps.metrics["success"], [0, 0, 0, 1])
    np.testing.assert_allclose(steps.observation[0], [[0, 0, 0.25, 1], [0.25, 1, -0.25, -1]])
    np.testing.assert_array_equal(states.position[1:, 0], [[0, 1], [0, 2], [0, 2]])
    assert math.isclose(steps.reward[:, 0].sum(), 1 - 0.02 * math.ceil((1 + 4) / 2), rel_tol=1e-6)
    steps, states = replay(env, placed((0, 0), (4, 4)), [[up, down], [left, right]])
    np.testing.assert_array_equal(states.position[2], [[0, 0], [4, 4]])  # into the walls


def test_all_agents_must_meet_and_the_limit_cuts():
    env = envs_jax.make("multi/rendezvous", size=3, agents=3, limit=2)
    steps, states = replay(env, placed((1, 1), (1, 1), (0, 1)), np.zeros((2, 3)))
    np.testing.assert_array_equal(steps.last, [False, False, True])
    assert (steps.discount == 1).all()
    assert not steps.metrics["success"].any()
    np.testing.assert_allclose(steps.observation[0, 1], [0.5, 0.5, -0.5, 0, 0, 0])  # the third agent, then the first
    np.testing.assert_allclose(env.world(jax.tree.map(lambda x: x[1], states), None), [0.5, 0.5, 0.5, 0.5, 0, 0.5, 0.5])


def test_agents_start_in_different_cells_and_everywhere():
    env = envs_jax.make("multi/rendezvous", size=2, agents=3)
    keys = jax.random.split(jax.random.key(1), 400)
    places = np.asarray(jax.jit(jax.vmap(lambda key: env.initial(key, None).position))(keys))
    cells = places[..., 0] * 2 + places[..., 1]
    assert len({tuple(row) for row in cells}) == 24
    assert all(len(set(row)) == 3 for row in cells)


def test_noise_grows_with_the_agents_and_is_zero_on_average():
    for agents in (2, 8):
        env = envs_jax.make("multi/rendezvous", agents=agents)
        params = env.default_params.replace(noise=jnp.float32(0.5))
        state, still = start(env), jnp.zeros(agents, jnp.int32)
        keys = jax.random.split(jax.random.key(2), 4000)
        paid = np.asarray(jax.jit(jax.vmap(lambda key, s=state, a=still, p=params, e=env: e.advance(key, s, a, p)[1]))(keys))
        assert (paid == paid[:, :1]).all()
        deviation = 0.5 * math.sqrt(agents)
        assert abs(paid[:, 0].std() / deviation - 1) < 0.05
        assert abs(paid[:, 0].mean() + 0.02) < 4 * deviation / math.sqrt(4000)


# The switch riddle.


def riddle(visits, prisoners=3):
    """Plays the paper's protocol over given visits [T]: the return, and the day (from 1) on which one told, or None."""
    been, lit = set(), False
    for day, visitor in enumerate(visits, start=1):
        if visitor not in been and lit:
            return (1 if len(been) == prisoners - 1 else -1), day
        lit = lit or (visitor not in been and day > 1)
        been.add(visitor)
    return 0, None


def test_the_protocol_of_the_paper_reaches_what_seeing_all_would():
    played = [riddle(visits) for visits in itertools.product(range(3), repeat=6)]
    chance = sum((-1) ** k * math.comb(3, k) * (1 - k / 3) ** 6 for k in range(4))
    assert math.isclose(np.mean([paid for paid, _ in played]), chance)
    assert math.isclose(chance, 20 / 27)


def memoryless_value(joint):
    """The exact expected return of three deterministic policies (an action for a dark bulb, one for a lit one)."""
    states, value = {(frozenset(), False): 1.0}, 0.0
    for _ in range(6):
        after = {}
        for ((been, lit), chance), (visitor, policy) in itertools.product(states.items(), enumerate(joint)):
            now, action = been | {visitor}, policy[lit]
            if action == switch.TELL:
                value += chance / 3 * (1 if len(now) == 3 else -1)
            else:
                key = (now, (lit or action == switch.ON) and action != switch.OFF)
                after[key] = after.get(key, 0.0) + chance / 3
        states = after
    return value


def test_without_memory_the_riddle_is_not_solved():
    policies = list(itertools.product(range(4), repeat=2))
    assert max(memoryless_value((policy,) * 3) for policy in policies) == 0
    best = max(memoryless_value(joint) for joint in itertools.combinations_with_replacement(policies, 3))
    assert math.isclose(best, 115 / 729)


def visited(env, visits, actions, lit=False):
    """Timesteps of an episode whose visits [T + 1] are given: what the one in the room does, day by day [T]."""
    been, rows, state = np.zeros(3, bool), [], start(env)
    for day, (visitor, action) in enumerate(zip(visits, [*actions, None], strict=True)):
        been[visitor] = True
        state = state.replace(day=jnp.int32(day), room=jnp.int32(visitor), been=jnp.asarray(been), bulb=jnp.bool_(lit))
        if action is None:
            return state, rows
        joint = jnp.full(3, switch.TELL, jnp.int32).at[visitor].set(action)  # what the others choose is without effect
        after, timestep = env.transition(jax.random.key(3), state, joint, env.default_params)
        lit = bool(after.bulb)
        rows.append(jax.tree.map(np.asarray, (env.observe(state, env.default_params), timestep, after)))
    raise AssertionError("unreachable")


def test_a_scripted_riddle_ends_with_freedom():
    env = envs_jax.make("multi/switch")
    nothing, on, off, tell = switch.NOTHING, switch.ON, switch.OFF, switch.TELL
    _, rows = visited(env, [2, 2, 0, 2, 1, 1], [nothing, nothing, on, nothing, tell])
    seen = [before.observation for before, _, _ in rows]
    assert [int(x[:, 0].argmax()) for x in seen] == [2, 2, 0, 2, 1]
    assert [x[:, 1].tolist() for x in seen] == [[0] * 3, [0] * 3, [0] * 3, [0, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(rows[0][0].action_mask, [[1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]])
    assert [timestep.reward.tolist() for _, timestep, _ in rows] == [[0] * 3] * 4 + [[1] * 3]
    assert [bool(timestep.last) for _, timestep, _ in rows] == [False] * 4 + [True]
    assert rows[-1][1].metrics["success"] == 1
    assert (rows[-1][1].discount == 0).all()
    np.testing.assert_allclose(env.world(rows[-1][2], None), [1, 1, 1, 0, 1, 0, 1, 5 / 6])
    _, rows = visited(env, [0, 1, 2, 0], [on, off, on])
    assert [bool(after.bulb) for _, _, after in rows] == [True, False, True]


def test_telling_too_early_and_never():
    env = envs_jax.make("multi/switch")
    _, rows = visited(env, [0, 1, 1], [switch.NOTHING, switch.TELL])
    (_, timestep, _) = rows[-1]
    assert timestep.reward.tolist() == [-1, -1, -1]
    assert timestep.last
    assert not timestep.discount.any()
    assert not timestep.metrics["success"]
    steps, _ = replay(env, start(env), np.zeros((6, 3)))
    np.testing.assert_array_equal(steps.last, [False] * 6 + [True])
    assert (steps.discount == 1).all()
    assert not steps.reward.any()


def test_visits_are_uniform_and_independent():
    env = envs_jax.make("multi/switch")
    keys = jax.random.split(jax.random.key(5), 3000)

    def two_days(key):
        key_start, key_next = jax.random.split(key)
        state = env.initial(key_start, env.default_params)
        return state.room, env.advance(key_next, state, jnp.zeros(3, jnp.int32), env.default_params)[0].room

    first, second = jax.tree.map(np.asarray, jax.jit(jax.vmap(two_days))(keys))
    counts = np.bincount(3 * first + second, minlength=9)
    assert (abs(counts - 3000 / 9) < 5 * math.sqrt(3000 / 9)).all()
    lit = env.default_params.replace(lit=jnp.float32(1))
    assert env.initial(keys[0], lit).bulb
    assert not env.initial(keys[0], env.default_params).bulb


# Pictures and bad input.


def test_pictures_show_what_happens():
    env = envs_jax.make("multi/matrix")
    _, states = replay(env, start(env), [[0, 0]])
    before, after = np.asarray(jax.vmap(env.render)(states))
    assert before.shape == (84, 84, 3) and before.dtype == np.uint8
    golden = np.array(matrix.PALETTE[5])
    assert not (before == golden).all(-1).any()
    ys, xs = np.nonzero((after == golden).all(-1))
    assert (ys.min(), ys.max(), xs.min(), xs.max()) == (25, 35, 25, 35)

    env = envs_jax.make("multi/rendezvous", size=3)
    apart, met = (np.asarray(env.render(placed(*cells))) for cells in (((0, 0), (2, 1)), ((2, 1), (2, 1))))
    assert apart.shape == (72, 72, 3) and apart.dtype == np.uint8
    for picture, cell, colour in ((apart, (0, 0), 0), (apart, (2, 1), 1), (met, (2, 1), 1)):
        np.testing.assert_array_equal(picture[24 * cell[0] + 12, 24 * cell[1] + 12], rendezvous.COLOURS[colour])
    np.testing.assert_array_equal(met[49, 25], rendezvous.FIELD[2])

    env = envs_jax.make("multi/switch")
    state, _ = visited(env, [0, 2], [switch.ON], lit=False)
    picture = np.asarray(env.render(state))
    assert picture.shape == (144, 120, 3) and picture.dtype == np.uint8
    np.testing.assert_array_equal(picture[24, 60], switch.LIT)
    for prisoner, colour in enumerate((switch.VISITED, switch.UNSEEN, switch.GROUND)):  # the third is in the room
        np.testing.assert_array_equal(picture[108, 40 * prisoner + 20], colour)
    freed = state.replace(told=jnp.bool_(True), free=jnp.bool_(True))
    np.testing.assert_array_equal(np.asarray(env.render(freed))[6, 60], switch.FREE)


@pytest.mark.parametrize(
    ("id", "arguments", "message"),
    [
        ("matrix", {"game": "climbin"}, "did you mean climbing"),
        ("matrix", {"rounds": 0}, "at least 1, got 0"),
        ("matrix", {"rounds": True}, "at least 1, got True"),
        ("matrix", {"game": ["climbing"]}, "unknown game of multi/matrix"),
        ("rendezvous", {"size": 2, "agents": 5}, "5 are more than 2²"),
        ("rendezvous", {"limit": 1.5}, "limit .* 1.5"),
        ("switch", {"prisoners": 2}, "at least 3, got 2"),
    ],
)
def test_bad_arguments(id, arguments, message):
    with pytest.raises(ValueError, match=message):
        envs_jax.make(f"multi/{id}", **arguments)

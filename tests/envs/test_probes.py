from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.probes import PROBES, Params, make

from .contract import check

GAMMA = 0.9
SCALE = Params(scale=jnp.float32(1))


def right(name, timestep):
    """The right action, known from the observation alone (memory apart)."""
    o = timestep.observation
    if name in ("policy_observation", "memory", "team", "individual"):
        return (o[..., 0] > 0).astype(jnp.int32)
    if name == "policy":
        return jnp.int32(1)
    if name == "continuous":
        return 1 + o
    if name == "masked":
        return jnp.where(o[0] > 0, 1, 2)
    if name == "multi_discrete":
        return jnp.stack([(o[0] > 0).astype(jnp.int32), jnp.int32(2)])
    if name == "two_groups":
        return jnp.stack([*(o[:2, 0] > 0).astype(jnp.int32), jnp.sum(o[2] > 0, dtype=jnp.int32)])
    if name == "respawn":
        return jnp.stack([jnp.int32(1), jnp.where(o[1, 2] == 1, 0, (o[1, 0] > 0).astype(jnp.int32) + 1)])
    if name == "image":
        return (o[..., 0].max(0).sum() == 255).astype(jnp.int32)
    return jnp.int32(0)


def discounted(env, key, act, gamma=GAMMA):
    """Σ γᵗ rₜ of one episode, the last timestep, and the first."""
    state, first = env.reset(key, SCALE)
    timestep, total, weight = first, jnp.zeros_like(first.reward), 1.0
    while not timestep.last:
        state, timestep = env.transition(key, state, act(first, timestep), SCALE)
        total, weight = total + weight * timestep.reward, weight * gamma
    return total, timestep, first


VALUES = {
    "constant": lambda o: 1.0,
    "observation": lambda o: o[0],
    "discounted": lambda o: GAMMA,
    "policy": lambda o: 1.0,
    "policy_observation": lambda o: 1.0,
    "truncation": lambda o: (1 - GAMMA**10) / (1 - GAMMA),  # what is collected before the cut
    "memory": lambda o: GAMMA**3,
    "continuous": lambda o: 0.0,
    "masked": lambda o: 1.0,
    "multi_discrete": lambda o: 1.0,
    "image": lambda o: 1.0,
    "team": lambda o: np.ones(2),
    "individual": lambda o: np.asarray([1, 2 + 2 * GAMMA]),
    "two_groups": lambda o: np.ones(3),
    "respawn": lambda o: np.full(2, 2 + GAMMA + GAMMA**2),
}


@pytest.mark.parametrize("name", PROBES)
def test_the_right_value_is_right(name):
    env = make(name)

    def act(first, timestep):
        return right(name, first if name == "memory" else timestep)

    seen = set()
    for seed in range(6):
        total, end, first = discounted(env, jax.random.key(seed), act)
        np.testing.assert_allclose(total, VALUES[name](first.observation), rtol=1e-6)
        assert bool(end.truncated) == (name == "truncation")
        seen.add(first.observation.tobytes() if hasattr(first.observation, "tobytes") else bytes(np.asarray(first.observation)))
        if env.spec.metrics:
            assert end.metrics == {"success": 1.0}
    assert len(seen) > 1 or name in ("constant", "discounted", "policy", "truncation")


@pytest.mark.parametrize("name", ["policy", "policy_observation", "memory", "multi_discrete", "image", "individual"])
def test_the_wrong_action_costs(name):
    env = make(name)

    def act(first, timestep):
        action = right(name, first if name == "memory" else timestep)
        return jnp.stack([1 - action[0], jnp.int32(0)]) if name == "multi_discrete" else 1 - action

    total, _, first = discounted(env, jax.random.key(0), act)
    np.testing.assert_allclose(total, -np.asarray(VALUES[name](first.observation)), rtol=1e-6)


def test_memory_shows_its_cue_only_once():
    env = make("memory", delay=2)
    state, timestep = env.reset(jax.random.key(0), SCALE)
    seen = [timestep.observation]
    for _ in range(2):
        state, timestep = env.transition(jax.random.key(0), state, jnp.int32(0), SCALE)
        seen.append(timestep.observation)
        assert timestep.reward == 0
    assert abs(seen[0][0]) == 1 and [float(o[0]) for o in seen[1:]] == [0, 0] and [float(o[1]) for o in seen] == [0, 0, 1]


def test_illegal_actions_would_pay_more():
    env = make("masked")
    state, timestep = env.reset(jax.random.key(0), SCALE)
    illegal = jnp.argmin(timestep.action_mask)
    assert env.transition(jax.random.key(0), state, illegal, SCALE)[1].reward == 10


def test_a_team_fails_together():
    env = make("team")
    state, timestep = env.reset(jax.random.key(1), SCALE)
    half = right("team", timestep).at[0].set(1 - right("team", timestep)[0])
    _, after = env.transition(jax.random.key(1), state, half, SCALE)
    assert after.reward.tolist() == [0, 0] and after.metrics == {"success": 0.0}
    assert env.world(state, SCALE).tolist() == state.cue.tolist()


def test_the_dead_agent_is_out():
    env = make("individual")
    state, first = env.reset(jax.random.key(0), SCALE)
    state, second = env.transition(jax.random.key(0), state, right("individual", first), SCALE)
    assert second.alive.tolist() == [False, True] and second.discount.tolist() == [0, 1] and not second.last
    assert second.observation[0].tolist() == [0, 0]
    assert env.transition(jax.random.key(0), state, jnp.ones(2, jnp.int32), SCALE)[1].reward[0] == 0


def test_every_role_of_two_groups_counts():
    """One wrong agent costs a third; a scout's third action is masked, wrong, and no other's."""
    env = make("two_groups")
    state, timestep = env.reset(jax.random.key(0), SCALE)
    assert timestep.action_mask.tolist() == [[True, True, False]] * 2 + [[True] * 3]
    assert timestep.observation[:2, 1].tolist() == [0, 0] and env.world(state, SCALE).shape == (4,)
    best = right("two_groups", timestep)
    for agent in range(3):
        for wrong in {0, 1, 2} - {int(best[agent])}:
            reward = env.transition(jax.random.key(0), state, best.at[agent].set(wrong), SCALE)[1].reward
            np.testing.assert_allclose(reward, np.full(3, 2 / 3), rtol=1e-6)


def lives(reward, guess=0):
    """One episode of `respawn` with right actions but for the new agent's: timesteps and cue."""
    env = make("respawn", reward=reward)
    state, timestep = env.reset(jax.random.key(2), SCALE)
    steps, cue = [timestep], float(state.cue)
    for _ in range(3):
        action = right("respawn", timestep)
        action = action.at[1].set(guess) if timestep.observation[1, 2] == 1 else action
        state, timestep = env.transition(jax.random.key(0), state, action, SCALE)
        steps.append(timestep)
    return jax.tree.map(lambda *x: np.stack(x), *steps), cue


@pytest.mark.parametrize("reward", ["team", "individual"])
def test_a_slot_dies_rests_and_is_born_again(reward):
    """The values of the docstring, backwards from rewards and discounts; the corpse shows what it saw when it lived."""
    steps, cue = lives(reward)
    assert steps.alive.tolist() == [[True, True], [True, False], [True, True], [True, True]]
    assert steps.last.tolist() == [False] * 3 + [True]
    assert steps.observation[:3, 1].tolist() == [[cue, 0, 0, 0], [cue, 0, 0, 0], [0, 0, 1, 1]]
    assert steps.observation[:3, 0].tolist() == [[0, 1, 0, 0], [0, 1, 0, 0.5], [0, 1, 0, 1]]
    value, values = np.zeros(2), []
    for t in (3, 2, 1):
        value = steps.reward[t] + GAMMA * steps.discount[t] * value
        values.insert(0, value)
    team = [2 + GAMMA + GAMMA**2, 1 + GAMMA, 1]
    want = [[v, v] for v in team] if reward == "team" else [[GAMMA, 2], [1, values[1][1]], [0, 1]]
    np.testing.assert_allclose(values, want, rtol=1e-6)


def test_to_guess_the_dead_ones_cue_pays_more_only_to_who_remembers_it():
    rewards = {guess: lives("individual", guess)[0].reward[3, 1] for guess in (0, 1, 2)}
    cue = lives("individual")[1]
    assert rewards == {0: 1.0, 1: -3.0 * cue, 2: 3.0 * cue}


def test_respawn_of_individuals_keeps_the_contract():
    check(make("respawn", reward="individual"))


def test_scale_multiplies_rewards():
    env = make("constant")
    state, _ = env.reset(jax.random.key(0), SCALE)
    assert env.transition(jax.random.key(0), state, jnp.int32(0), Params(scale=jnp.float32(3)))[1].reward == 3


def test_an_image_is_one_line_of_bytes():
    env = make("image")
    images = np.asarray(jax.vmap(lambda key: env.reset(key, SCALE)[1].observation)(jax.random.split(jax.random.key(0), 200)))
    assert images.dtype == np.uint8 and set(np.unique(images)) == {0, 255}
    assert (np.sum(images == 255, axis=(1, 2, 3)) == 8).all()
    assert len(np.unique(images.reshape(200, -1), axis=0)) == 16


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("memroy", {}, "did you mean memory"),
        ("memory", {"delya": 2}, "did you mean delay"),
        ("memory", {"delay": 0}, "delay must be"),
        ("constant", {"delay": 2}, "takes no `delay`"),
        ("respawn", {"reward": "tame"}, "must be team or individual, got 'tame'"),
    ],
)
def test_bad_arguments(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(name, **arguments)

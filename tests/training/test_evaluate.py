"""Evaluation against hand computations: one episode an environment, what is counted, and which policy is kept."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.training.loop import _EVALUATION
from envs_jax.core import Box, Discrete, Env, EnvSpec, TimeStep

from .support import assert_same_bits, hyper, quick, raw, small_loop

METRICS = {"newest": "last", "total": "sum", "average": "mean"}


class Scripted(Env):
    """Two agents; step t = 1 … 4 pays t to agent 0 and 10 t to agent 1 (as a team: t), and every metric shows t."""

    def __init__(self, reward: str):
        self.spec = EnvSpec(Box(0, 4, (1,)), Discrete(2), num_agents=2, reward=reward, metrics=METRICS, episode_limit=4)

    def initial(self, key, params):
        return jnp.int32(0)

    def advance(self, key, state, action, params):
        scale = jnp.float32([1, 1]) if self.spec.reward == "team" else jnp.float32([1, 10])
        return state + 1, (state + 1) * scale

    def observe(self, state, params):
        time = state.astype(jnp.float32)
        return TimeStep(
            observation=jnp.full((2, 1), time),
            reward=jnp.zeros(2, jnp.float32),
            discount=jnp.full(2, jnp.where(state >= 4, 0.0, 1.0)),
            alive=jnp.stack([state < 2, jnp.bool_(True)]),  # agent 0 rests after two steps and is paid all the same
            last=state >= 4,
            metrics=dict.fromkeys(METRICS, time),
        )


class Drawn(Env):
    """A number is drawn at the start and says what happens: `length` steps, each paid `pay` and counting ones chosen."""

    def __init__(self, length=lambda number: jnp.int32(1), pay=lambda number: number):
        self.length, self.pay = length, pay
        self.spec = EnvSpec(Box(0, 1, (1,)), Discrete(2), metrics={"ones": "sum"}, episode_limit=20)

    def initial(self, key, params):
        number = jax.random.uniform(key, (), jnp.float32)
        return {"number": number, "time": jnp.int32(0), "action": jnp.int32(0)}

    def advance(self, key, state, action, params):
        return {"number": state["number"], "time": state["time"] + 1, "action": action}, self.pay(state["number"])

    def observe(self, state, params):
        last = state["time"] >= self.length(state["number"])
        return TimeStep(
            observation=jnp.ones(1, jnp.float32),
            reward=jnp.float32(0),
            discount=jnp.where(last, 0.0, 1.0),
            alive=jnp.bool_(True),
            last=last,
            metrics={"ones": state["action"].astype(jnp.float32)},
        )


def evaluated(env, rounds=(0,), seeds=(0,), **plan):
    """The results of these rounds, for untrained policies of these seeds: {(seed, round): results}."""
    loop = small_loop(env, **plan)
    init, evaluate = quick(loop.init), quick(loop.evaluate)
    states = {seed: init(jax.random.key(seed), hyper()) for seed in seeds}
    return {(s, r): jax.device_get(evaluate(states[s], hyper(), jnp.int32(r))[1]) for s in seeds for r in rounds}


@pytest.mark.parametrize(("reward", "returned", "each"), [("individual", 11, 5.5), ("team", 1, 1)])
@pytest.mark.parametrize(("cap", "length", "cut"), [(9, 4, 0), (4, 4, 0), (3, 3, 1)])
def test_a_scripted_episode_is_counted_as_by_hand(reward, returned, each, cap, length, cut):
    total = sum(range(1, length + 1))
    wanted = {"return": returned * total, "agent_return": each * total, "length": length, "cut": cut}
    wanted |= {"newest": length, "total": total, "average": total / length}
    results = evaluated(Scripted(reward), cap=cap)[0, 0]
    for kind in ("greedy", "sampled"):
        assert set(results[kind]) == set(wanted)
        for name, value in wanted.items():
            np.testing.assert_allclose(results[kind][name], np.full(4, value, np.float32), rtol=1e-6, err_msg=name)


def test_short_and_long_episodes_are_counted_by_quota():
    env = Drawn(length=lambda number: jnp.where(number < 0.5, 1, 10), pay=lambda number: jnp.float32(1))
    results = evaluated(env, episodes=64, cap=20)[0, 0]["greedy"]
    long = results["length"] == 10
    assert set(results["length"].tolist()) == {1.0, 10.0} and not results["cut"].any()
    assert 20 <= long.sum() <= 44, "half of the starts are long; who finishes first would make one in eleven"
    np.testing.assert_array_equal(results["return"], results["length"])


def test_greedy_takes_the_mode_and_sampled_does_not():
    results = evaluated(Drawn(length=lambda number: jnp.int32(20)), episodes=8, cap=20)[0, 0]
    assert set(results["greedy"]["ones"].tolist()) in ({0.0}, {20.0})
    assert np.all((results["sampled"]["ones"] > 0) & (results["sampled"]["ones"] < 20))
    assert len(np.unique(results["sampled"]["ones"])) > 1


def test_starts_are_fixed_by_the_evaluation_seed_alone():
    drawn = {seed: evaluated(Drawn(), rounds=(0, 1, 2), seeds=(0, 1), seed=seed) for seed in (0, 1)}
    numbers = [drawn[0][0, 0]["greedy"], drawn[0][0, 0]["sampled"], drawn[0][0, 1]["greedy"], drawn[0][0, 2]["greedy"]]
    numbers.append(drawn[1][0, 0]["greedy"])
    every = np.concatenate([results["return"] for results in numbers])
    assert len(np.unique(every)) == len(every) == 20, "points, rounds, kinds and seeds all have starts of their own"
    for number in (0, 1, 2):
        same, other = (drawn[0][seed, number]["greedy"]["return"] for seed in (0, 1))
        np.testing.assert_array_equal(same, other, err_msg="every member plays the same starts")


def bent(state, action):
    """The state with a policy that always prefers this action."""

    def leaf(path, x):
        if jax.tree_util.DictKey("actor") not in path:
            return x
        return jnp.full(2, -5.0).at[action].set(5.0) if x.shape == (2,) else jnp.zeros_like(x)

    params = jax.tree_util.tree_map_with_path(leaf, state.learner.params)
    return state.replace(learner=state.learner.replace(params=params))


@pytest.fixture(scope="module")
def policy_probe():
    loop = small_loop("probe/policy")
    return quick(loop.init)(jax.random.key(0), hyper()), quick(loop.evaluate)


def test_the_best_policy_is_kept_and_plays_the_absolute_rounds(policy_probe):
    state, evaluate = policy_probe
    bad, good = bent(state, 0), bent(state, 1)
    assert state.best.score == -jnp.inf
    first, results = evaluate(bad, hyper(), jnp.int32(0))
    assert first.best.score == -1.0 and np.all(raw(results["greedy"]["return"]) == -1.0)
    assert_same_bits(first.best.learner, bad.learner)
    second, _ = evaluate(good.replace(best=first.best), hyper(), jnp.int32(0))
    assert second.best.score == 1.0
    assert_same_bits(second.best.learner, good.learner)
    third, results = evaluate(bad.replace(best=second.best), hyper(), jnp.int32(0))
    assert np.all(raw(results["greedy"]["return"]) == -1.0), "a point plays the current policy"
    assert_same_bits(third.best, second.best)
    fourth, results = evaluate(third, hyper(), jnp.int32(1))
    assert np.all(raw(results["greedy"]["return"]) == 1.0), "an absolute round plays the best policy"
    assert_same_bits(fourth, third)
    assert not any(raw(x).any() for x in jax.tree.leaves(results["sampled"]))


def test_absolute_rounds_of_a_run_that_was_never_evaluated_play_the_first_policy(policy_probe):
    state, evaluate = policy_probe
    state = bent(state, 1)
    state = state.replace(best=dataclasses.replace(state.best, learner=state.learner))
    _, results = evaluate(bent(state, 0), hyper(), jnp.int32(1))
    assert np.all(raw(results["greedy"]["return"]) == 1.0)


def test_no_key_of_evaluation_is_a_members_own():
    seed, rounds = 0, 12
    member = jax.random.key_data(jax.random.split(jax.random.key(seed), rounds))
    root = jax.random.fold_in(jax.random.key(seed), _EVALUATION)
    own = jax.random.key_data(jax.vmap(lambda number: jax.random.fold_in(root, number))(jnp.arange(rounds)))
    assert not {tuple(key) for key in np.asarray(member)} & {tuple(key) for key in np.asarray(own)}

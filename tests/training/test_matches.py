"""Groups played by policies of their own: whose rows act, hidden states, and one program for every pairing."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.rollout.unroll import make_acting
from agentgym_jax.tasks.base import fixed
from agentgym_jax.training.baseline import random_algorithm
from agentgym_jax.training.evaluate import play
from agentgym_jax.training.matches import frozen, make_match, scripted, trained
from agentgym_jax.types import Sizes
from envs_jax.groups import part_of
from envs_jax.wrappers import Opponent
from tests.duel import LENGTH, Duel

from .support import quick

ENV, KEY, CAP, EPISODES = Duel(), jax.random.key(5), jnp.int32(LENGTH), 6
HIDERS, SEEKER = part_of(ENV.spec, ["hiders"]), part_of(ENV.spec, ["seeker"])


@functools.cache
def learner(env=ENV, name="ippo", **network):
    """A recurrent algorithm of an environment, and two learners with their numbers, leaves [2, ...]."""
    entry = get_algorithm(name)
    config = entry.config(**entry.defaults)
    models = entry.networks(NetworkConfig(**({"torso": "gru", "hidden": (8,), "recurrent": 8} | network)), env.spec, config)
    algorithm = entry.make(env.spec, config, models, Sizes(4, 8))
    hyper = as_hyper(entry.hyper())
    both = quick(jax.vmap(lambda key: (algorithm.init(key, hyper), hyper)))(jax.random.split(jax.random.key(1)))
    return algorithm, both


def seats(**who):
    """Seats of one pairing, leaves [1]: (which of the group's choices, which member)."""
    return {group: tuple(jnp.full(1, x, jnp.int32) for x in seat) for group, seat in who.items()}


def scripts(group, *names):
    part = part_of(ENV.spec, [group])
    return [scripted(ENV.scripts[group][name], part) for name in names]


def program(algorithms, choices, episodes=EPISODES):
    """numbers, pairings -> results on the host, by the mode."""
    compiled = quick(make_match(ENV, algorithms, choices, episodes, explore=False))
    return lambda numbers, pairing: jax.device_get(compiled(ENV.default_params, tuple(numbers), pairing, KEY, CAP))


def matched(algorithms, choices, numbers, pairing):
    return program(algorithms, choices)(numbers, pairing)


STRONG = (jnp.ones(1), ())


@pytest.mark.parametrize("name", ["mappo", "iql"])
def test_a_run_against_itself_is_its_evaluation(name):
    """Through the same episodes: hidden states, masks and deaths are those of an evaluation."""
    algorithm, both = learner(name=name)
    results = matched([trained(algorithm, ENV)], {"hiders": [0], "seeker": [0]}, [both], seats(hiders=(0, 1), seeker=(0, 1)))
    acting = make_acting(ENV, fixed(ENV.default_params), algorithm, Sizes(EPISODES, 1), "fresh")
    own, numbers = jax.tree.map(lambda x: x[1], both)
    plain = jax.device_get(quick(lambda: play(acting, own, numbers, KEY, CAP, False))())
    assert set(plain) == set(results) and {"group_return.hiders", "group_return.seeker"} <= set(plain)
    for field, values in plain.items():
        np.testing.assert_allclose(results[field][0], values, rtol=1e-6, err_msg=field)
    np.testing.assert_allclose(plain["return"], plain["group_return.hiders"] + plain["group_return.seeker"], rtol=1e-5)


def test_one_program_plays_every_pairing_and_repeats_itself_to_the_bit():
    """Scripts against scripts are what they are by hand; the number of a member selects its learner."""
    algorithm, both = learner()
    algorithms = [trained(algorithm, ENV), *scripts("hiders", "still", "alternate"), *scripts("seeker", "copy")]
    choices = {"hiders": [0, 1, 2], "seeker": [0, 3]}
    order = [((1, 0), (1, 0)), ((2, 0), (1, 0)), ((1, 0), (0, 0)), ((1, 0), (0, 1))]
    pairing = {
        group: tuple(jnp.asarray([pair[i][j] for pair in order], jnp.int32) for j in range(2))
        for i, group in enumerate(choices)
    }
    numbers = [both, STRONG, STRONG, STRONG]
    compiled = program(algorithms, choices)
    results, again = compiled(numbers, pairing), compiled(numbers, pairing)
    for name, values in results.items():
        assert np.array_equal(values, again[name]), name
        assert values.shape == (4, EPISODES)
    # hiders that stay at 0 are found by a copier at every step (hider 0 leaves after two), those that alternate only at first
    assert results["group_return.seeker"][0].tolist() == [6.0] * EPISODES
    assert results["group_return.seeker"][1].tolist() == [2.0] * EPISODES
    marks = results["group_return.hiders"] + results["group_return.seeker"]
    np.testing.assert_allclose(marks, np.broadcast_to(marks[:1], marks.shape), rtol=1e-5, err_msg="all play the same starts")
    other = compiled(numbers, jax.tree.map(lambda x: x[::-1], pairing))
    np.testing.assert_array_equal(other["group_return.seeker"][::-1], results["group_return.seeker"])
    assert not np.array_equal(results["group_return.seeker"][2], results["group_return.seeker"][3]), "members differ"
    assert not results["cut"].any() and (results["length"] == LENGTH).all()


def test_strength_and_random_play():
    algorithms = [*scripts("hiders", "still"), random_algorithm(ENV.spec), *scripts("seeker", "copy")]
    choices = {"hiders": [0, 1], "seeker": [2]}

    compiled = program(algorithms, choices, episodes=400)

    def found(strength, which):
        numbers = [(jnp.full(1, strength, jnp.float32), ()), ((), ()), STRONG]
        return np.mean(compiled(numbers, seats(hiders=(which, 0), seeker=(0, 0)))["group_return.seeker"])

    assert found(1.0, 0) == 6.0
    weak, uniform = found(0.0, 0), found(1.0, 1)
    assert abs(weak - 3.0) < 0.35 and abs(uniform - 3.0) < 0.35, "half of the six meetings"
    assert 3.4 < found(0.5, 0) < 4.5  # copied by chance as well: 2 · 3/4 at first, then (3/4)² + (1/4)² of four


def test_who_learned_against_an_opponent_plays_its_own_group():
    """It acts in the whole game as in its own, where the same script plays the others."""
    own = Opponent(ENV, "hiders", "still")
    algorithm, both = learner(own)
    algorithms = [*scripts("hiders", "still"), trained(algorithm, own, SEEKER)]
    results = matched(algorithms, {"hiders": [0], "seeker": [1]}, [STRONG, both], seats(hiders=(0, 0), seeker=(0, 1)))
    acting = make_acting(own, fixed(own.default_params), algorithm, Sizes(EPISODES, 1), "fresh")
    learnt, numbers = jax.tree.map(lambda x: x[1], both)
    plain = jax.device_get(quick(lambda: play(acting, learnt, numbers, KEY, CAP, False))())
    np.testing.assert_allclose(results["group_return.seeker"][0], plain["return"], rtol=1e-6)


def test_a_frozen_policy_is_the_one_that_acts_in_a_match():
    """As an opponent it sees all agents' rows and keeps its hidden state: returns are those of the match."""
    algorithm, both = learner()
    whole = trained(algorithm, ENV)
    one = jax.tree.map(lambda x: x[1], both)
    against = Opponent(ENV, "seeker", frozen(whole, *one, SEEKER, explore=False))
    results = matched([whole], {"hiders": [0], "seeker": [0]}, [both], seats(hiders=(0, 0), seeker=(0, 1)))
    others, other_numbers = learner_of_hiders(both)
    acting = make_acting(against, fixed(against.default_params), others, Sizes(EPISODES, 1), "fresh")
    plain = jax.device_get(quick(lambda: play(acting, *other_numbers, KEY, CAP, False))())
    np.testing.assert_allclose(results["group_return.hiders"][0], plain["return"], rtol=1e-6)


def learner_of_hiders(both):
    """Member 0 on hiders' rows alone: its shared network sees an unpadded row padded again."""
    algorithm, _ = learner()
    zero = jax.tree.map(lambda x: x[0], both)

    def act(learnt, hyper, carry, timestep, world, reset, key, clock, explore):
        def padded(x, fill):
            return jnp.concatenate([x, jnp.full((x.shape[0], 1, *x.shape[2:]), fill, x.dtype)], axis=1)

        wide = jnp.pad(timestep.observation, ((0, 0), (0, 0), (0, 2)))
        mask = jnp.pad(timestep.action_mask, ((0, 0), (0, 0), (0, 1)))
        rows = {"alive": padded(timestep.alive, True), "discount": padded(timestep.discount, 1)}
        rows |= {"reward": padded(timestep.reward, 0), "observation": padded(wide, 0), "action_mask": padded(mask, True)}
        whole = timestep.replace(**rows)
        carry, action, extras = algorithm.act(learnt, hyper, carry, whole, (), padded(reset, False), key, clock, explore)
        return carry, action[:, :2], extras

    return algorithm._replace(act=act, record=frozenset()), zero

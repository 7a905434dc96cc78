from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.probes import make
from envs_jax.vectorise import random_policy, rollout, vector
from envs_jax.wrappers import TimeLimit

from .stubs import Counter, Deaths


def ones(key, timestep):
    return jnp.ones(timestep.last.shape, jnp.int32)


@pytest.fixture(scope="module")
def played():
    return jax.tree.map(np.asarray, jax.jit(lambda key: rollout(Counter(length=3), ones, key, 7, 2))(jax.random.key(0)))


def test_outcome_and_timestep_lie_apart(played):
    time = np.floor(played.timestep.observation[..., 0])
    assert (time == np.asarray([0, 1, 2, 0, 1, 2, 0])[:, None]).all()
    assert (np.floor(played.outcome.observation[..., 0]) == np.asarray([1, 2, 3, 1, 2, 3, 1])[:, None]).all()
    assert (played.outcome.last == np.asarray([0, 0, 1, 0, 0, 1, 0], bool)[:, None]).all()
    assert not played.timestep.last.any()
    assert (played.outcome.reward == 1).all()
    assert (played.outcome.discount == 1 - played.outcome.last).all()
    assert (played.timestep.reward[[0, 3, 6]] == 0).all()


def test_every_episode_of_every_copy_starts_differently(played):
    starts = played.timestep.observation[[0, 3, 6], :, 0].ravel()
    assert len(np.unique(starts)) == 6
    same_episode = played.timestep.observation[:3, :, 0] % 1
    np.testing.assert_allclose(same_episode, same_episode[:1].repeat(3, 0), atol=1e-6)


def test_direct_use_with_one_key_gives_distinct_starts():
    envs = vector(Counter(), 8)
    _, timestep = envs.reset(jax.random.PRNGKey(0), envs.env.default_params)
    assert len(np.unique(timestep.observation)) == 8


def test_numbers_are_arguments():
    env, key = Counter(), jax.random.key(0)
    played = jax.jit(lambda bonus: rollout(env, ones, key, 2, 1, {"bonus": bonus}).outcome.reward)
    np.testing.assert_allclose(played(jnp.float32(0.5)), 1.5)
    np.testing.assert_allclose(played(jnp.float32(2.0)), 3.0)
    assert played._cache_size() == 1


def test_copies_of_different_length():
    """An episode that ends resets its own copy and no other."""
    env = Deaths(ends=(1, 4))
    envs = vector(TimeLimit(env, 3), 2)
    step = jax.jit(envs.step)
    state, _ = envs.reset(jax.random.key(0), ())
    state = state.replace(time=jnp.asarray([0, 2], jnp.int32))
    action = jnp.zeros((2, 2), jnp.int32)
    state, timestep, outcome = step(jax.random.key(1), state, action, ())
    assert outcome.last.tolist() == [False, True] and outcome.discount.tolist() == [[0, 1], [0, 1]]
    assert state.time.tolist() == [1, 0] and state.inner.tolist() == [1, 0]
    assert timestep.alive.tolist() == [[False, True], [True, True]]


def test_random_policy_obeys_the_mask():
    env = make("masked")
    played = jax.jit(lambda key: rollout(env, random_policy(env.spec), key, 20, 4))(jax.random.key(0))
    assert set(np.unique(played.outcome.reward)) == {0, 1}


def test_no_copies_are_refused():
    with pytest.raises(ValueError, match="n of at least 1, got 0"):
        vector(Counter(), 0)

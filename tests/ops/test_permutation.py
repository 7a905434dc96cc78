"""Shuffles hold every row once, anywhere, for any size."""

from __future__ import annotations

import math

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.ops.permutation import affine_permutation, exact_permutation, strides

SHUFFLES = {"affine": affine_permutation, "exact": exact_permutation}


@hypothesis.settings(max_examples=150)
@hypothesis.given(n=st.integers(1, 5000) | st.integers(5000, 2**22), pick=st.integers(0, 2**20), shift=st.integers(0, 2**22))
def test_every_stride_permutes_inside_int32(n, pick, shift):
    choices = strides(n)
    assert choices.dtype == np.int32 and 1 <= len(choices) <= 4096
    assert np.all((choices >= 1) & (choices <= max(n - 1, 1)))
    stride = int(choices[pick % len(choices)])
    assert math.gcd(stride, n) == 1
    assert max(int(choices.max()) * (n - 1) + n, 2 * n) < 2**31
    if n <= 5000:
        order = (np.arange(n) * stride % n + shift % n) % n
        np.testing.assert_array_equal(np.sort(order), np.arange(n))


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 12, 100, 127, 512, 30030])
def test_a_shuffle_holds_everything_once(shuffle, n):
    order = SHUFFLES[shuffle](jax.random.key(n), n)
    assert order.dtype == jnp.int32 and order.shape == (n,)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


@pytest.mark.parametrize("n", [1_000_003, 2**20])
def test_large_shuffles_do_not_overflow(n):
    shuffle = jax.jit(affine_permutation, static_argnums=1)
    for seed in range(2):
        order = np.asarray(shuffle(jax.random.key(seed), n))
        assert order.min() == 0 and order.max() == n - 1
        assert np.all(np.bincount(order, minlength=n) == 1)


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("n", [16, 60, 127])
def test_every_row_is_about_equally_likely_at_every_place(shuffle, n):
    draws = 20_000
    keys = jax.random.split(jax.random.key(0), draws)
    orders = np.asarray(jax.jit(jax.vmap(lambda key: SHUFFLES[shuffle](key, n)))(keys))
    for place in (0, n // 2, n - 1):
        counts = np.bincount(orders[:, place], minlength=n)
        spread = math.sqrt(draws / n)
        assert np.max(np.abs(counts - draws / n)) < 5 * spread
    assert len({tuple(order) for order in orders}) >= 100


def test_neighbours_do_not_stay_together():
    """Consecutive rows of a window land in all minibatches: their distance in the shuffle varies with the key."""
    n = 512
    orders = np.asarray(jax.vmap(lambda key: affine_permutation(key, n))(jax.random.split(jax.random.key(1), 200)))
    places = np.argsort(orders, axis=-1)
    quarters = places // (n // 4)
    together = np.mean(quarters[:, 1:] == quarters[:, :-1])
    assert abs(together - 0.25) < 0.05


def test_where_only_short_strides_are_left_the_shuffle_is_exact():
    """A stride shorter than the number of minibatches would make each of them a slice of the rollout."""
    n, minibatches = 2**21, 32
    first = np.asarray(affine_permutation(jax.random.key(0), n))[: n // minibatches]
    counts = np.histogram(first, bins=minibatches, range=(0, n))[0]
    np.testing.assert_allclose(counts, n / minibatches**2, rtol=0.2)

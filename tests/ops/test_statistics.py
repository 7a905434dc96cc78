"""Running moments equal numpy over all rows that were ever seen."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.ops.statistics import no_moments, standard_deviation, update_moments
from tests.support import simulated_devices

close = np.testing.assert_allclose
update = jax.jit(update_moments)


def weighted(x, weight):
    """Count, mean and population variance over rows, float64."""
    x, weight = x.reshape(-1, x.shape[-1]).astype(np.float64), weight.reshape(-1).astype(np.float64)
    mean = np.average(x, axis=0, weights=weight)
    return weight.sum(), mean, np.average(np.square(x - mean), axis=0, weights=weight)


def check(moments, x, weight):
    count, mean, variance = weighted(x, weight)
    close(moments.count, np.full(moments.mean.shape, count), rtol=1e-5)
    close(moments.mean, mean, rtol=1e-4, atol=1e-4)
    close(moments.variance, variance, rtol=1e-3, atol=1e-5)


@hypothesis.settings(max_examples=20)
@hypothesis.given(batches=st.integers(1, 6), seed=st.integers(0, 1000), living=st.floats(0.1, 1.0))
def test_many_batches_equal_numpy_over_all_of_them(batches, seed, living):
    draw = np.random.default_rng(seed)
    x = draw.normal(draw.normal(size=3) * 5, [0.1, 1.0, 20.0], size=(batches, 5, 4, 3)).astype(np.float32)
    weight = (draw.random((batches, 5, 4)) < living).astype(np.float32)
    weight[0, 0, 0] = 1.0
    moments = no_moments((3,))
    for part, w in zip(x, weight, strict=True):
        moments = update(moments, part, w)
    check(moments, x, weight)


def test_normal_5_2_gives_mean_5_and_deviation_2():
    moments = no_moments((4,))
    draw = np.random.default_rng(0)
    for _ in range(50):
        moments = update(moments, draw.normal(5.0, 2.0, size=(16, 16, 4)).astype(np.float32), np.ones((16, 16), np.float32))
    assert moments.mean.shape == (4,)
    close(moments.mean, np.full(4, 5.0), atol=0.1)
    close(standard_deviation(moments), np.full(4, 2.0), atol=0.1)


def test_moments_of_scalars_and_of_images_have_the_shape_of_one():
    draw = np.random.default_rng(0)
    rewards = draw.normal(size=(5, 4, 2)).astype(np.float32)
    moments = update_moments(no_moments(()), rewards, jnp.ones((5, 4, 2)))
    close([moments.mean, moments.variance], [rewards.mean(), rewards.var()], rtol=1e-4, atol=1e-6)
    image = draw.integers(0, 256, size=(5, 4, 2, 3, 3, 1)).astype(np.uint8)
    moments = update_moments(no_moments((3, 3, 1)), image, jnp.ones((5, 4, 2)))
    close(moments.mean, image.reshape(-1, 3, 3, 1).astype(np.float64).mean(0), rtol=1e-5)
    close(moments.variance, image.reshape(-1, 3, 3, 1).astype(np.float64).var(0), rtol=1e-4)


def test_a_batch_without_weight_changes_nothing_even_at_the_start():
    empty = no_moments((3,))
    x = np.full((5, 3), 7.0, np.float32)
    for before in (empty, update_moments(empty, x + np.eye(5, 3, dtype=np.float32), jnp.ones(5))):
        after = update_moments(before, x, jnp.zeros(5))
        for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
            np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(standard_deviation(empty), 1.0)


@pytest.mark.parametrize("garbage", [1e9, np.inf, np.nan])
def test_rows_that_do_not_weigh_may_hold_anything(garbage):
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    weight = np.float32([1, 0, 1, 1, 0, 1])
    spoilt = np.where(weight[:, None] > 0, x, garbage).astype(np.float32)
    clean, moments = (update_moments(no_moments((3,)), rows, weight) for rows in (x, spoilt))
    close(moments.mean, clean.mean, rtol=1e-6)
    close(moments.variance, clean.variance, rtol=1e-6)


def test_devices_merge_into_the_moments_of_one_batch():
    """Three devices with other means and other numbers of living rows; each ends with the same moments."""
    draw = np.random.default_rng(3)
    across = simulated_devices(3)
    x = (draw.normal(size=(2, 3, 5, 4, 2)) + np.arange(3).reshape(1, 3, 1, 1, 1) * 10.0).astype(np.float32)
    weight = (draw.random((2, 3, 5, 4)) < np.float32([0.9, 0.5, 0.1]).reshape(1, 3, 1, 1)).astype(np.float32)

    def device(x, weight):
        moments = no_moments((2,))
        for part, w in zip(x, weight, strict=True):
            moments = update_moments(moments, part, w, across)
        return moments

    moments = jax.vmap(device, in_axes=(1, 1), axis_name="device")(x, weight)
    for own in range(3):
        check(jax.tree.map(lambda leaf, own=own: leaf[own], moments), x, weight)


def test_large_means_keep_their_small_spread():
    """The spread is taken around the batch's mean, so nothing cancels."""
    x = (1e4 + np.random.default_rng(0).normal(size=(1000, 1))).astype(np.float32)
    moments = no_moments((1,))
    for part in x.reshape(10, 100, 1):
        moments = update(moments, part, np.ones(100, np.float32))
    close(standard_deviation(moments), x.astype(np.float64).std(axis=0), rtol=0.01)

"""Losses against closed forms; rows that do not weigh change nothing, whatever they hold."""

from __future__ import annotations

import functools

import hypothesis
import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.ops.losses import clipped_surrogate, clipped_value_loss, explained_variance, standardise, weighted_mean
from agentgym_jax.types import Across
from tests.support import simulated_devices

close = np.testing.assert_allclose
X = np.random.default_rng(0).normal(2.0, 3.0, size=(6, 4)).astype(np.float32)
WEIGHT = (np.random.default_rng(1).random((6, 4)) < 0.6).astype(np.float32)
ALIVE = WEIGHT > 0


def all_three(across, x, weight):
    """Mean, standardised rows and explained variance of one device's rows."""
    explained = explained_variance(x, 2.0 * x + jnp.square(x), weight, across)
    return weighted_mean(x, weight, across), standardise(x, weight, across), explained


on_two_devices = jax.jit(jax.vmap(functools.partial(all_three, simulated_devices(2)), axis_name="device"))
on_one_device = jax.jit(functools.partial(all_three, Across()))


def test_the_mean_is_that_of_the_rows_that_weigh():
    close(weighted_mean(X, WEIGHT), X[ALIVE].mean(), rtol=1e-6)
    weight = np.random.default_rng(2).random((6, 4)).astype(np.float32)
    close(weighted_mean(X, weight), np.average(X, weights=weight), rtol=1e-5)


def test_no_rows_give_zero_and_a_zero_gradient():
    nothing = jnp.zeros((6, 4))
    assert weighted_mean(X, nothing) == 0.0
    np.testing.assert_array_equal(jax.grad(weighted_mean)(X, nothing), 0.0)
    assert np.all(np.isfinite(standardise(X, nothing)))


@pytest.mark.parametrize("garbage", [1e30, np.inf, -np.inf, np.nan])
def test_garbage_in_rows_that_do_not_weigh_changes_no_value_and_no_gradient(garbage):
    spoilt = np.where(ALIVE, X, garbage).astype(np.float32)
    functions = {
        "mean": lambda x: weighted_mean(x, WEIGHT),
        "standardised": lambda x: weighted_mean(jnp.sin(standardise(x, WEIGHT)), WEIGHT),
        "explained": lambda x: explained_variance(x, jnp.asarray(X) * 0.5 + 1.0, WEIGHT),
        "explained of": lambda x: explained_variance(jnp.asarray(X) * 0.5 + 1.0, x, WEIGHT),
    }
    for name, function in functions.items():
        value, gradient = jax.value_and_grad(function)(jnp.asarray(X))
        spoilt_value, spoilt_gradient = jax.value_and_grad(function)(jnp.asarray(spoilt))
        assert spoilt_value == value, name
        np.testing.assert_array_equal(np.asarray(spoilt_gradient)[ALIVE], np.asarray(gradient)[ALIVE], err_msg=name)
        if name == "mean":
            np.testing.assert_array_equal(np.asarray(spoilt_gradient)[~ALIVE], 0.0)


def test_standardised_rows_have_mean_0_and_deviation_1():
    x = np.asarray(standardise(X, WEIGHT))[ALIVE]
    close(x.mean(), 0.0, atol=1e-6)
    close(x.std(), 1.0, rtol=1e-5)
    close(x, (X[ALIVE] - X[ALIVE].mean()) / X[ALIVE].std(), rtol=1e-4, atol=1e-5)


def test_one_row_or_equal_rows_give_finite_advantages_and_gradients():
    """A minibatch of one row has no deviation; its advantage is 0 and nothing is NaN."""
    for x in (jnp.full((1, 1), 3.0), jnp.full((1, 5), -2.0)):
        value, gradient = jax.jit(jax.value_and_grad(lambda x: jnp.sum(standardise(x, jnp.ones_like(x)))))(x)
        close(value, 0.0, atol=1e-4)
        assert np.all(np.isfinite(gradient))


def test_surrogate_closed_forms():
    """Inside the clip range the gradient is −A ρ ∇log ρ; outside it is 0 on the side that would gain, else as unclipped."""
    cases = [  # ratio, advantage, loss, slope by the ratio
        (1.0, 2.0, -2.0, -2.0),
        (1.1, 2.0, -2.2, -2.0),
        (1.5, 2.0, -2.4, 0.0),
        (0.5, 2.0, -1.0, -2.0),
        (0.5, -2.0, 1.6, 0.0),
        (1.5, -2.0, 3.0, 2.0),
        (0.9, -2.0, 1.8, 2.0),
    ]
    for ratio, advantage, loss, slope in cases:
        value, gradient = jax.value_and_grad(lambda log_ratio, a=advantage: clipped_surrogate(log_ratio, a, 0.2))(np.log(ratio))
        close(value, loss, rtol=1e-5)
        close(gradient, slope * ratio, rtol=1e-5, atol=1e-7)


def test_value_loss_closed_forms():
    """½ max of both squared errors; no slope where the clipped error is the larger and the value has left the range."""
    cases = [  # value, old value, target, loss, slope
        (1.0, 1.0, 3.0, 2.0, -2.0),
        (1.1, 1.0, 3.0, 0.5 * 1.9**2, -1.9),
        (2.0, 1.0, 3.0, 0.5 * 1.8**2, 0.0),
        (0.0, 1.0, 3.0, 4.5, -3.0),
        (2.0, 1.0, 0.0, 2.0, 2.0),
    ]
    for value, old, target, loss, slope in cases:
        got, gradient = jax.value_and_grad(lambda v, o=old, g=target: clipped_value_loss(v, o, g, 0.2))(value)
        close(got, loss, rtol=1e-5)
        close(gradient, slope, rtol=1e-5, atol=1e-7)
    close(clipped_value_loss(jnp.float32(2.0), jnp.float32(1.0), jnp.float32(3.0), jnp.inf), 0.5)


def test_explained_variance():
    target = X
    assert explained_variance(target, target, WEIGHT) == 1.0
    close(explained_variance(target + 5.0, target, WEIGHT), 1.0, rtol=1e-5)
    close(explained_variance(jnp.zeros_like(target), target, WEIGHT), 0.0, atol=1e-6)
    assert explained_variance(-target, target, WEIGHT) < -2.0
    assert explained_variance(target, jnp.ones_like(target), WEIGHT) == 0.0
    noise = np.random.default_rng(5).normal(size=X.shape).astype(np.float32)
    expected = 1.0 - np.var(noise[ALIVE]) / np.var(X[ALIVE])
    close(explained_variance(target + noise, target, WEIGHT), expected, rtol=1e-4)


@hypothesis.settings(max_examples=20)
@hypothesis.given(weight=arrays.arrays(np.float32, (6, 4), elements=st.sampled_from([0.0, 0.0, 0.5, 1.0])))
def test_rows_split_over_devices_count_as_one_batch(weight):
    """Devices hold different numbers of living rows, so the mean over devices of means would be wrong."""
    mean, standard, explained = on_two_devices(X.reshape(2, 3, 4), weight.reshape(2, 3, 4))
    one_mean, one_standard, one_explained = on_one_device(X, weight)
    close(mean, np.full(2, one_mean), rtol=1e-4, atol=1e-5)
    close(standard.reshape(6, 4), one_standard, rtol=1e-3, atol=1e-3)
    close(explained, np.full(2, one_explained), rtol=1e-3, atol=1e-3)

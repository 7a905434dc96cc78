"""A whole run as one pure function: it equals the host-driven run, and composes with vmap and grad."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from agentgym_jax.training.train import make_train

from .support import (
    QUICK,
    Drift,
    assert_same_bits,
    assert_same_run,
    clock,
    drift_loop,
    drift_run,
    drift_train,
    hyper,
    member,
    members,
    quick,
    result_fields,
    small_loop,
)

DERIVATIVES = ("learning_rate", "gamma", "gae_lambda", "entropy", "value")


def test_a_run_has_the_promised_shapes_and_repeats_to_the_bit():
    keys, hypers = members(3)
    first, second = (drift_train()(member(hypers, 0), keys[0]) for _ in range(2))
    assert_same_bits(first, second)
    assert {x.shape for x in first.curves.values()} == {(2,)}
    assert {x.shape for x in jax.tree.leaves(first.evaluation)} == {(2, 4)}
    assert {x.shape for x in first.absolute.values()} == {(8,)}
    assert set(first.absolute) == set(first.evaluation["greedy"]) == set(first.evaluation["sampled"])
    episode = {f"episode_{name}" for name in ("return", "agent_return", "length", "distance")}
    assert episode | {"episodes", "diverged"} <= set(first.curves)


def test_a_run_is_what_the_host_drives():
    keys, hypers = members(3)
    driven = drift_run(3, "map", 1)
    for index in range(3):
        result = drift_train()(member(hypers, index), keys[index])
        assert_same_run(member(driven, index), result_fields(result), f"host-driven, member {index}")


def test_vmap_over_points_and_keys_gives_every_member_its_own_run():
    keys, hypers = members(2)
    over_keys = jax.vmap(make_train(drift_loop()), in_axes=(None, 0))
    results = jax.jit(jax.vmap(over_keys, in_axes=(0, None)))(hypers, keys)
    for point in range(2):
        for seed in range(2):
            alone = drift_train()(member(hypers, point), keys[seed])
            together = member(member(results, point), seed)
            assert_same_run(result_fields(together), result_fields(alone), f"vmap, point {point}, seed {seed}")


def random_functional(params):
    """A scalar of all parameters, the same fixed random weights every time."""
    flat, _ = ravel_pytree(params)
    return jnp.sum(flat * jax.random.normal(jax.random.key(9), flat.shape))


def test_a_whole_run_has_finite_derivatives_by_its_numbers():
    loop = small_loop("probe/individual", "ippo", iterations=3, points=1, calls=1, absolute=1)
    train = make_train(loop)

    def scalar(numbers):
        return random_functional(train(numbers, jax.random.key(0)).learner.params)

    gradient = quick(jax.grad(scalar))(hyper(learning_rate=1e-2))
    derivatives = {field.name: float(getattr(gradient, field.name)) for field in dataclasses.fields(gradient)}
    print("derivatives:", derivatives)
    assert all(np.isfinite(value) for value in derivatives.values())
    assert all(derivatives[name] != 0.0 for name in DERIVATIVES)


@pytest.mark.parametrize("name", ["learning_rate"])
def test_the_derivative_after_one_iteration_is_the_central_difference(name):
    loop = small_loop(Drift(), config={"epochs": 4, "minibatches": 2}, iterations=1, points=1)

    def scalar(number):
        numbers = hyper().replace(**{name: number})
        state, _ = loop.advance(loop.init(jax.random.key(0), numbers), numbers, clock(0, 1))
        return random_functional(state.learner.params)

    at, step = jnp.float32(1e-3), 1e-4
    value_and_grad = quick(jax.value_and_grad(scalar))
    below, above = (float(value_and_grad(jnp.float32(at + sign * step))[0]) for sign in (-1, 1))
    derivative, difference = float(value_and_grad(at)[1]), (above - below) / (2 * step)
    print(f"derivative {derivative}, central difference {difference}")
    assert abs(derivative) > 1e-3
    np.testing.assert_allclose(derivative, difference, rtol=1e-2)


def test_memory_grows_by_no_more_than_the_curves():
    """A run keeps nothing of its past but scalars: temporaries grow by at most twice the bytes of the curves."""

    def compiled(iterations):
        loop = small_loop(Drift(), config={"epochs": 1, "minibatches": 1}, iterations=iterations, calls=2, absolute=0)
        lowered = jax.jit(make_train(loop)).lower(hyper(), jax.random.key(0))
        curves = lowered.out_info.curves
        return lowered.compile(QUICK).memory_analysis(), sum(x.size * x.dtype.itemsize for x in curves.values())

    (short, few), (long, many) = compiled(8), compiled(8192)
    growth = long.temp_size_in_bytes - short.temp_size_in_bytes
    print(f"temporary bytes {short.temp_size_in_bytes} -> {long.temp_size_in_bytes}, curves {few} -> {many}")
    assert short.temp_size_in_bytes > 0
    assert many > 1000 * few / 2
    assert growth <= 2 * (many - few)

"""Schedules: their ends, their middles, and one program for all their numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms.optim import learning_rate
from agentgym_jax.ops.schedules import KINDS, Schedule, as_hyper, is_schedule, resolve, value_at
from agentgym_jax.types import Clock

close = np.testing.assert_allclose
PROGRESS = jnp.linspace(0.0, 1.5, 301)


def curve(schedule):
    return np.asarray(jax.vmap(schedule.at)(PROGRESS))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warmup", [0.0, 0.1])
@pytest.mark.parametrize("over", [1.0, 0.5])
def test_a_schedule_stays_between_its_ends_and_at_its_end(kind, warmup, over):
    schedule = Schedule(3e-4, 0.0, over=over, warmup=warmup, kind=kind)
    values = curve(schedule)
    assert values.min() >= 0.0 and values.max() <= 3e-4 * (1 + 1e-6)
    end = 3e-4 if kind == "constant" else 0.0
    close(values[np.asarray(PROGRESS) >= over], end, atol=1e-10)
    assert np.all(np.diff(values[np.asarray(PROGRESS) > warmup]) <= 1e-10)


@pytest.mark.parametrize("kind", ["linear", "cosine"])
def test_midpoints(kind):
    close(Schedule(1.0, 0.2, kind=kind).at(jnp.float32(0.5)), 0.6, rtol=1e-6)
    close(Schedule(1.0, 0.2, over=0.5, kind=kind).at(jnp.float32(0.25)), 0.6, rtol=1e-6)
    close(Schedule(0.1, 0.9, over=0.6, warmup=0.2, kind=kind).at(jnp.float32(0.4)), 0.5, rtol=1e-5)
    close(Schedule(1.0, 0.0, kind=kind).at(jnp.float32(0.0)), 1.0)


def test_linear_and_cosine_follow_their_formulas():
    x = np.asarray(PROGRESS).clip(0, 1)
    close(curve(Schedule(2.0, 0.5)), 2.0 - 1.5 * x, rtol=1e-5)
    close(curve(Schedule(2.0, 0.5, kind="cosine")), 0.5 + 1.5 * 0.5 * (1 + np.cos(np.pi * x)), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_up_rises_from_zero_to_the_start(kind):
    schedule = Schedule(2.0, 0.5, warmup=0.2, kind=kind)
    assert schedule.at(jnp.float32(0.0)) == 0.0
    close([schedule.at(jnp.float32(x)) for x in (0.05, 0.1, 0.2)], [0.5, 1.0, 2.0], rtol=1e-5)


@pytest.mark.parametrize("field, value", [("kind", "lineal"), ("per", "update")])
def test_wrong_kinds_and_units_are_refused(field, value):
    with pytest.raises(ValueError, match=f"`{field}` must be one of .*{value}"):
        Schedule(1.0, **{field: value})


def rates(rate, total, per_iteration):
    clock = Clock(jnp.int32(0), jnp.int32(total))
    counts = jnp.arange(total * per_iteration)
    return np.asarray(jax.vmap(lambda count: jnp.asarray(learning_rate(rate, count, clock, per_iteration)))(counts))


def test_per_iteration_is_the_staircase_of_purejaxrl():
    """PureJaxRL: frac = 1 − (count // (minibatches · epochs)) / updates."""
    got = rates(Schedule(2.5e-4, 0.0, per="iteration"), total=8, per_iteration=8)
    expected = [2.5e-4 * (1.0 - (count // 8) / 8) for count in range(64)]
    close(got, expected, rtol=1e-5)
    close(got[-1], 2.5e-4 * 0.125, rtol=1e-5)


def test_per_step_ends_at_the_end_on_the_last_gradient_step():
    got = rates(Schedule(1.0, 0.0), total=8, per_iteration=8)
    close(got, 1.0 - np.arange(1, 65) / 64, atol=1e-6)
    assert got[-1] == 0.0
    close(got[-2], 1 / 64, rtol=1e-4)


def test_a_number_is_a_rate_that_never_changes():
    close(rates(jnp.float32(3e-4), total=2, per_iteration=3), np.full(6, 3e-4), rtol=1e-6)


def test_resolve_replaces_schedules_and_leaves_numbers():
    hyper = as_hyper({"a": Schedule(1.0, 0.0), "b": 0.3})
    now = resolve(hyper, jnp.float32(0.25))
    close([now["a"], now["b"]], [0.75, 0.3], rtol=1e-6)
    assert is_schedule(hyper["a"]) and value_at(hyper["b"], jnp.float32(0.25)) == jnp.float32(0.3)
    for leaf in jax.tree.leaves((hyper, now)):
        assert leaf.dtype == jnp.float32 and not leaf.weak_type


def test_other_numbers_compile_nothing_anew():
    traces = []

    @jax.jit
    def value(hyper, progress):
        traces.append(1)
        return resolve(hyper, progress)["rate"]

    numbers = [1.0, np.float64(0.5), np.float32(2.0), jnp.float32(3.0), 4]
    got = [value(as_hyper({"rate": Schedule(x, 0.0, over=x, warmup=0.0)}), jnp.float32(0.0)) for x in numbers]
    close(got, [1.0, 0.5, 2.0, 3.0, 4.0])
    swept = jax.vmap(lambda start: value(as_hyper({"rate": Schedule(start, 0.0)}), jnp.float32(0.5)))(jnp.float32([1.0, 2.0]))
    close(swept, [0.5, 1.0])
    assert len(traces) <= 2  # one for single numbers, one for the mapped ones


@pytest.mark.parametrize("total, iteration, expected", [(10, -2, 0.0), (10, 0, 0.0), (10, 5, 0.5), (1000, 500, 0.5)])
def test_progress_is_the_part_of_the_run_that_is_done(total, iteration, expected):
    progress = Clock(jnp.int32(iteration), jnp.int32(total)).progress
    assert progress.dtype == jnp.float32
    close(progress, expected)

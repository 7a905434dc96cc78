"""Members of a population against the same members alone, and what one member's failure does to the others."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from agentgym_jax.training.population import over_members, resolve_mode

from .support import (
    assert_same_bits,
    assert_same_run,
    drift_population,
    drift_run,
    member,
    members,
    point,
    root_keys,
    run_population,
    same_bits,
    stacked,
)


def test_two_runs_and_their_evaluations_are_equal_to_the_bit():
    again = run_population(drift_population(3, "map", 1), *members(3))
    assert_same_bits(drift_run(3, "map", 1), again)


@pytest.mark.parametrize("mode", ["map", "vmap"])
def test_a_member_is_what_it_is_alone(mode):
    keys, hypers = members(3)
    together = drift_run(3, mode, 1)
    for index in range(3):
        alone = run_population(drift_population(1, "map", 1), keys[index : index + 1], member(hypers, slice(index, index + 1)))
        assert_same_run(member(together, index), member(alone, 0), f"{mode}, member {index}")
    assert not same_bits(member(together, 0)["learner"], member(together, 1)["learner"])


@pytest.mark.parametrize("broken", [{"rate": 1e30}, {"rate": np.nan}, {"gamma": np.nan}])
def test_a_member_that_diverges_is_flagged_and_harms_nobody(broken):
    population = drift_population(3, "map", 1)
    keys = root_keys(0, 1, 2)
    healthy = run_population(population, keys, stacked([point()] * 3))
    harmed = run_population(population, keys, stacked([point(), point(**broken), point()]))
    assert not healthy["curves"]["diverged"].any()
    assert harmed["curves"]["diverged"][1, -1] == 1.0
    for index in (0, 2):
        assert not harmed["curves"]["diverged"][index].any()
        assert_same_bits(member(harmed, index), member(healthy, index))


def test_modes():
    assert [resolve_mode("auto", platform) for platform in ("cpu", "gpu", "tpu")] == ["map", "vmap", "vmap"]
    assert [resolve_mode(mode, "cpu") for mode in ("map", "vmap")] == ["map", "vmap"]


@pytest.mark.parametrize("mode", ["map", "vmap"])
@pytest.mark.parametrize("count", [1, 3])
def test_members_get_their_own_inputs_and_share_the_clock(mode, count):
    states = {"x": np.arange(count * 2, dtype=np.float32).reshape(count, 2), "key": root_keys(*range(count))}
    inputs = np.arange(count, dtype=np.float32)

    def function(state, number, shared):
        new = state | {"x": state["x"] * 10 + number + shared}
        return new, {"seen": number, "noise": jax.random.uniform(state["key"])}

    after, outputs = jax.jit(over_members(function, mode))(states, inputs, np.float32(100))
    np.testing.assert_array_equal(after["x"], states["x"] * 10 + inputs[:, None] + 100)
    np.testing.assert_array_equal(outputs["seen"], inputs)
    assert len(np.unique(outputs["noise"])) == count
    only = jax.jit(over_members(lambda number, shared: number + shared, mode, has_state=False))(inputs, np.float32(1))
    np.testing.assert_array_equal(only, inputs + 1)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import trim_mean

from agentgym_jax.statistics.aggregates import iqm, mean, median, optimality_gap

AGGREGATES = (iqm, mean, median, optimality_gap)
numbers = st.floats(-1e3, 1e3)
scores = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=numbers)


def test_closed_forms():
    table = np.array([[0.0, 0.5], [0.2, 1.5], [0.4, 0.7], [0.6, 0.9]])
    assert iqm(table) == pytest.approx(np.mean([0.4, 0.5, 0.6, 0.7]))  # eight scores, two cut at each end
    assert mean(table) == pytest.approx(0.6)
    assert median(table) == pytest.approx((0.3 + 0.9) / 2)  # over the two tasks' means
    assert optimality_gap(table) == pytest.approx(1 - np.mean([0, 0.2, 0.4, 0.6, 0.5, 1, 0.7, 0.9]))
    assert optimality_gap(table, threshold=0.5) == pytest.approx(0.5 - np.mean([0, 0.2, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5]))


def test_of_one_task_the_median_is_over_runs():
    runs = np.array([0.0, 1.0, 50.0])
    assert median(runs) == median(runs[:, None]) == 1
    assert iqm(runs) == mean(runs) == 17  # three scores: nothing is cut


@given(scores)
def test_the_iqm_is_scipys_trimmed_mean_of_the_pool(table):
    assert iqm(table) == pytest.approx(trim_mean(table.ravel(), 0.25), abs=1e-9)


@given(scores, st.floats(-5, 5), st.floats(0.1, 10), st.randoms())
def test_shifted_scaled_and_reordered_scores(table, shift, scale, random):
    order = random.sample(range(len(table)), len(table))
    for aggregate in (iqm, mean, median):
        value = aggregate(table)
        assert aggregate(table[order]) == pytest.approx(value, abs=1e-9)
        assert aggregate(scale * table + shift) == pytest.approx(scale * value + shift, abs=1e-6)
        assert table.min() - 1e-9 <= value <= table.max() + 1e-9
    assert optimality_gap(np.minimum(table, 1)) == pytest.approx(1 - mean(np.minimum(table, 1)), abs=1e-9)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_axes_in_front_are_kept(aggregate):
    table = np.random.default_rng(0).normal(size=(2, 3, 5, 4))
    expected = [[aggregate(inner) for inner in outer] for outer in table]
    assert np.allclose(aggregate(table), expected)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_runs_without_a_number_are_refused_and_named(aggregate):
    table = np.ones((5, 2))
    table[1, 0], table[4, 1] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"2 of 5 runs .* not finite \(runs 1, 4\)"):
        aggregate(table)
    with pytest.raises(ValueError, match="at least one of each"):
        aggregate(np.zeros((0, 3)))

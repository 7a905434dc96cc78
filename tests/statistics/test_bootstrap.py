import time

import numpy as np
import pytest
from scipy.stats import trim_mean

from agentgym_jax.statistics import bootstrap
from agentgym_jax.statistics.aggregates import iqm, mean, median
from agentgym_jax.statistics.bootstrap import difference_interval, interval, percentiles, redrawn, replicate

TABLE = np.random.default_rng(1).normal(size=(10, 3)) + np.array([0.0, 5.0, -3.0])


def loop(statistic, table, replicates, seed):
    """The same draws, one number at a time."""
    runs, tasks = table.shape
    drawn = np.random.default_rng(seed).integers(runs, size=(replicates, runs, tasks))
    values = []
    for rows in drawn:
        again = np.array([[table[rows[run, task], task] for task in range(tasks)] for run in range(runs)])
        values.append(statistic(again))
    return np.array(values)


def test_replicates_are_those_of_a_plain_loop_with_the_same_draws():
    ours = replicate(iqm, (TABLE,), 40, seed=3)
    assert np.allclose(ours, loop(lambda x: trim_mean(x.ravel(), 0.25), TABLE, 40, seed=3))
    low, high = interval(iqm, TABLE, 40, seed=3, level=0.9)
    assert (low, high) == pytest.approx(tuple(np.percentile(ours, [5, 95])))


def test_runs_are_drawn_within_their_task():
    marks = np.arange(12.0).reshape(4, 3)
    drawn = redrawn(marks, 200, np.random.default_rng(0))
    for task in range(3):
        assert set(drawn[..., task].ravel()) == set(marks[:, task])
    assert len({tuple(row) for row in drawn.reshape(-1, 3)}) > 60  # of 64: each task has draws of its own


def test_how_many_are_made_at_once_changes_the_draws_but_not_their_distribution(monkeypatch):
    whole = replicate(mean, (TABLE,), 20_000)
    monkeypatch.setattr(bootstrap, "_NUMBERS_AT_ONCE", 300)
    parts = replicate(mean, (TABLE,), 20_000)
    assert len(parts) == len(whole)
    assert np.mean(parts) == pytest.approx(np.mean(whole), abs=0.01)
    assert np.std(parts) == pytest.approx(np.std(whole), rel=0.05)


def test_the_spread_of_the_replicates_is_the_standard_error():
    """The variance of a redrawn mean is Σ (x − x̄)² / R² in each task, and tasks are independent."""
    expected = np.sqrt(np.sum(TABLE.var(axis=0) / 10)) / 3
    assert np.std(replicate(mean, (TABLE,), 50_000)) == pytest.approx(expected, rel=0.02)
    low, high = interval(mean, TABLE)
    assert (low, high) == pytest.approx((mean(TABLE) - 1.96 * expected, mean(TABLE) + 1.96 * expected), abs=0.02)


def test_the_same_seed_gives_the_same_interval():
    assert interval(median, TABLE, 500) == interval(median, TABLE, 500)
    assert interval(median, TABLE, 500) != interval(median, TABLE, 500, seed=1)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    """90 % intervals of the mean of 30 normal numbers: the percentile bootstrap is a little too narrow, not much."""
    random = np.random.default_rng(2)
    held = 0
    for _ in range(200):
        low, high = interval(mean, random.normal(size=30), replicates=300, level=0.9)
        held += low <= 0 <= high
    assert 165 <= held <= 192


def test_fifty_thousand_replicates_of_ten_runs_on_three_tasks_take_less_than_two_seconds():
    begun = time.process_time()
    interval(iqm, TABLE)
    assert time.process_time() - begun < 2


def test_one_run_has_no_interval_and_constant_runs_an_empty_one():
    assert np.all(np.isnan(interval(iqm, np.ones((1, 3)), 100)))
    assert interval(mean, np.full(4, 2.0), 100) == (2, 2)


def test_differences_are_of_independent_samples():
    x, y = TABLE, TABLE[:6] - 10
    low, high = difference_interval(mean, x, y, 20_000)
    assert low < mean(x) - mean(y) < high
    variance = sum(np.sum(each.var(axis=0) / len(each)) / 9 for each in (x, y))
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.05)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="1 of 2 runs"):
        interval(mean, [1.0, np.nan])
    with pytest.raises(ValueError, match="axis in front"):
        interval(lambda x: np.mean(x), TABLE, 100)
    with pytest.raises(ValueError, match="level"):
        percentiles(np.ones(3), 95)
    with pytest.raises(ValueError, match="replicates"):
        interval(mean, TABLE, replicates=0)

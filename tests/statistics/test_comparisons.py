import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from agentgym_jax.statistics.comparisons import enough_runs, excludes_half, improvement_interval, probability_of_improvement

few = st.lists(st.integers(0, 5), min_size=1, max_size=7)


def test_closed_forms_and_ties():
    assert probability_of_improvement([3.0, 4.0], [1.0, 2.0]) == 1
    assert probability_of_improvement([1.0, 2.0], [1.0, 2.0]) == 0.5
    assert probability_of_improvement([2.0], [1.0, 2.0, 3.0]) == 0.5
    x, y = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[2.0, 0.0]])
    assert probability_of_improvement(x, y) == 0.75  # ½ on the first task, 1 on the second


@given(few, few)
def test_it_is_mann_whitneys_u_as_a_share(x, y):
    u = mannwhitneyu(x, y, method="asymptotic").statistic if len({*x, *y}) > 1 else len(x) * len(y) / 2
    assert probability_of_improvement(x, y) == pytest.approx(u / (len(x) * len(y)))
    assert probability_of_improvement(x, y) + probability_of_improvement(y, x) == pytest.approx(1)


def test_a_run_without_a_number_loses_to_all():
    assert probability_of_improvement([-np.inf, 9.0], [1.0, 2.0]) == 0.5
    with pytest.raises(ValueError, match="1 of 2 runs hold a number that is NaN"):
        probability_of_improvement([np.nan, 9.0], [1.0, 2.0])


def test_the_interval_is_around_the_probability_and_leaves_out_a_half_where_it_should():
    random = np.random.default_rng(1)
    x, y = random.normal(size=(10, 3)), random.normal(size=(12, 3))
    low, high = improvement_interval(x, y)
    assert low < probability_of_improvement(x, y) < high
    assert not excludes_half(low, high)
    assert excludes_half(*improvement_interval(x + 2, y))
    assert excludes_half(*improvement_interval(x - 2, y))
    assert improvement_interval(x, y) == (low, high)
    assert np.all(np.isnan(improvement_interval(x[:1], y)))


def test_an_interval_that_ends_at_a_half_does_not_exclude_it():
    assert not excludes_half(0.5, 0.8)
    assert not excludes_half(np.nextafter(0.5, 1), 0.8)
    assert not excludes_half(0.2, 0.5)
    assert not excludes_half(np.nan, np.nan)


def test_few_runs_prove_nothing():
    assert improvement_interval([2.0, 3.0], [0.0, 1.0]) == (1, 1)
    assert not enough_runs(2, 2)
    assert not enough_runs(3, 3)
    assert enough_runs(4, 4)
    worst, best = np.arange(4), np.arange(4, 8)
    assert mannwhitneyu(worst, best, method="exact").pvalue == pytest.approx(2 / 70)


def test_other_tasks_are_refused():
    with pytest.raises(ValueError, match="2 tasks cannot be compared with 3"):
        probability_of_improvement(np.ones((4, 2)), np.ones((4, 3)))

import numpy as np
import pytest

from agentgym_jax.statistics.aggregates import optimality_gap
from agentgym_jax.statistics.profiles import performance_profile, profile_band

TAUS = np.linspace(0, 1, 101)


def test_the_share_above_each_tau():
    table = np.array([[0.0, 0.5], [1.0, 2.0]])
    assert performance_profile(table, [-1, 0, 0.25, 0.5, 1.5, 2]).tolist() == [1, 0.75, 0.75, 0.5, 0.25, 0]
    assert performance_profile([1.0, 3.0], [2.0]) == 0.5
    assert performance_profile(np.stack([table, table + 1]), [0.5]).tolist() == [[0.5], [1]]


def test_the_area_under_it_is_one_minus_the_optimality_gap():
    table = np.random.default_rng(0).uniform(size=(10, 3))
    fine = np.linspace(0, 1, 20_001)
    area = np.trapezoid(performance_profile(table, fine), fine)
    assert area == pytest.approx(1 - optimality_gap(table), abs=1e-3)


def test_the_band_is_that_of_a_binomial_share():
    table = np.random.default_rng(1).uniform(size=(50, 1))
    low, high = profile_band(table, TAUS)
    share = performance_profile(table, TAUS)
    assert np.all(low <= share)
    assert np.all(share <= high)
    assert np.all(np.diff(low) <= 0)
    middle = 50
    width = 2 * 1.96 * np.sqrt(share[middle] * (1 - share[middle]) / 50)
    assert high[middle] - low[middle] == pytest.approx(width, abs=0.03)

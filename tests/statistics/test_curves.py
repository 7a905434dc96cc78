import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import trim_mean

from agentgym_jax.statistics import curves as c

STEPS = np.array([100, 200, 300, 400])
curve = arrays(np.float64, st.integers(1, 9), elements=st.floats(-100, 100))


def test_sample_efficiency_is_the_iqm_at_each_point_and_its_band_holds_it():
    runs = np.random.default_rng(0).normal(size=(10, 2, 5)) + np.arange(5.0)
    middle = c.sample_efficiency(runs)
    assert np.allclose(middle, [trim_mean(runs[..., x].ravel(), 0.25) for x in range(5)])
    low, high = c.sample_efficiency_band(runs, replicates=500)
    assert low.shape == high.shape == (5,)
    assert np.all((low < middle) & (middle < high))


def test_steps_to_threshold_is_the_first_point_that_reaches_it():
    dips = np.array([0.0, 5.0, 3.0, 6.0])
    assert c.steps_to_threshold(dips, STEPS, 5) == 200
    assert c.steps_to_threshold(dips, STEPS, 5, stays=True) == 400
    assert c.steps_to_threshold(dips, STEPS, 7) == math.inf
    assert c.steps_to_threshold(dips, STEPS, 7, stays=True) == math.inf
    assert c.steps_to_threshold([np.nan, 9, np.nan, 9], STEPS, 5) == 200
    assert c.steps_to_threshold([np.nan, 9, np.nan, 9], STEPS, 5, stays=True) == 400
    assert c.steps_to_threshold(np.stack([dips, dips + 5]), STEPS, 5).tolist() == [200, 100]
    assert c.seconds_to_threshold(dips, STEPS / 50, 5) == 4


def test_the_area_is_the_mean_height_over_the_budget():
    assert c.area_under_curve([2.0, 2, 2, 2], STEPS) == 2
    assert c.area_under_curve([0.0, 4.0], [100, 200]) == pytest.approx((0 + 200) / 200)
    assert c.area_under_curve([0.0, 4.0], [100, 200], budget=400) == pytest.approx((200 + 800) / 400)
    assert c.area_under_curve([7.0], [10]) == 7
    both = np.array([[0.0, 1, 2, 3], [3.0, 2, 1, 0]])
    assert np.allclose(c.area_under_curve(both, STEPS), [1.125, 1.875])


def test_smoothness_drawdown_and_gap_in_closed_form():
    assert c.smoothness([0.0, 1, 3, 9]) == 1
    assert c.smoothness([0.0, 4, 2]) == pytest.approx(2 / 6)
    assert c.smoothness([5.0, 5]) == 1
    assert c.drawdown([0.0, 8, 3, 9, 7]) == 5
    assert c.final_gap([0.0, 8, 3, 9, 7]) == 2
    assert c.final_gap([[1.0, 2], [2.0, 1]]).tolist() == [0, 1]


@given(curve)
def test_a_curve_falls_at_least_as_far_as_it_ends_below_its_best(values):
    assert c.drawdown(values) >= c.final_gap(values) >= 0
    assert c.drawdown(np.sort(values)) == 0
    assert 0 <= c.smoothness(values) <= 1 + 1e-9
    assert values.min() - 1e-9 <= c.area_under_curve(values, 1 + np.arange(len(values))) <= values.max() + 1e-9


def test_seeds():
    assert c.worst_seed([3.0, 1.0, 2.0]) == (1, 1)
    place, score = c.worst_seed([3.0, 1.0, np.nan])
    assert place == 2
    assert math.isnan(score)
    assert c.solved_share([3.0, 1.0, np.nan, 5.0], 3) == 0.5


def test_cvar_is_the_mean_of_the_worst_episodes():
    episodes = np.arange(10.0)
    assert c.cvar(episodes, 0.2) == 0.5
    assert c.cvar(episodes, 0.25) == pytest.approx((0 + 1 + 0.5 * 2) / 2.5)
    assert c.cvar(episodes, 1) == 4.5
    assert c.cvar(np.stack([episodes, episodes + 1]), 0.1).tolist() == [0, 1]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="steps: must rise"):
        c.steps_to_threshold([1.0, 2.0], [2, 2], 1)
    with pytest.raises(ValueError, match=r"got \[3\] for \[2\]"):
        c.area_under_curve([1.0, 2.0], [1, 2, 3])
    with pytest.raises(ValueError, match="budget"):
        c.area_under_curve([1.0, 2.0], [1, 2], budget=1)
    with pytest.raises(ValueError, match="share"):
        c.cvar([1.0], 0)

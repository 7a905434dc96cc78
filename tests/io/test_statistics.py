import numpy as np
import pytest

from agentgym_jax.io.running.statistics import episodes_over_members, intervals, iqm, iqm_band, nan_mean, over_members


def test_iqm_is_the_mean_of_the_middle_half():
    assert iqm(np.array([0.0, 10, 20, 1000])) == 15
    assert iqm(np.arange(8.0)) == np.mean([2, 3, 4, 5])
    assert iqm(np.array([3.0])) == 3
    assert np.isnan(iqm(np.array([])))


def test_statistics_are_over_members_not_episodes():
    results = episodes_over_members({"return": np.float32([[0, 2], [4, 6]])})
    block = results["return"]
    assert block == {"mean": 3.0, "std": 2.0, "iqm": 3.0, "per_seed": [1.0, 5.0], "interval": block["interval"], "missing": 0}
    assert block["interval"] == {"mean": [1.0, 5.0], "iqm": [1.0, 5.0]}  # both drawn twice is no rare event among two


def test_a_member_without_a_finite_number_shows_in_per_seed_alone():
    result = over_members(np.array([1.0, np.nan, 3.0]))
    assert result["mean"] == result["iqm"] == 2.0
    assert result["missing"] == 1
    assert np.isnan(result["per_seed"][1])


def test_intervals_are_of_the_members_and_need_two():
    values = np.random.default_rng(0).normal(size=100)
    low, high = intervals(values, 2000)["mean"]
    assert (low, high) == pytest.approx((values.mean() - 0.196, values.mean() + 0.196), abs=0.03)
    assert intervals(values, 2000)["iqm"] != [low, high]
    assert over_members([3.0])["interval"] == over_members([3.0, np.nan])["interval"] == {"mean": None, "iqm": None}


def test_band_holds_the_iqm_and_has_the_width_of_its_error():
    random = np.random.default_rng(1)
    few, many = (random.normal(size=(n, 3)) for n in (8, 512))
    for curves in (few, many):
        middle, low, high = iqm_band(curves)
        assert np.all(low <= middle)
        assert np.all(middle <= high)
    _, low, high = iqm_band(many)
    # The IQM of n normal numbers has a standard deviation of about 1.09 / √n.
    assert np.mean(high - low) == pytest.approx(2 * 1.96 * 1.09 / np.sqrt(512), rel=0.2)


def test_missing_numbers_are_left_out():
    middle, low, high = iqm_band(np.array([[np.nan, 1.0, np.nan], [np.nan, 3.0, 5.0]]))
    assert np.isnan(middle[0])
    assert (middle[1], middle[2], low[2], high[2]) == (2, 5, 5, 5)
    assert nan_mean(np.array([[np.nan, 2.0], [np.nan, np.nan]]), axis=1)[0] == 2

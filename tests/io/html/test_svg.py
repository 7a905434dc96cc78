import math

import pytest

from agentgym_jax.io.html import svg
from agentgym_jax.io.html.measures import Estimate


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-90, 480, [0, 200, 400]),
        (0.62, 0.632, [0.62, 0.6225, 0.625, 0.6275, 0.63]),
        (3, 3, [3]),
    ],
)
def test_ticks_are_round_numbers_inside_the_axis(low, high, expected):
    assert svg.ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "text"), [(250_000, "250k"), (1.5e6, "1.5M"), (-200, "−200"), (0.25, "0.25"), (5000, "5000"), (2e9, "2G")]
)
def test_numbers_of_an_axis_are_short(value, text):
    assert svg.short(value) == text


def test_an_estimate_without_an_interval_has_no_bar():
    assert svg.bar(math.nan, math.nan, float, 3) == ""
    assert svg.told(Estimate(0.5)) == "0.5"
    assert svg.told(Estimate(0.5, 0.25, 0.75)) == "0.5 [0.25, 0.75]"
    low, high = svg.span([Estimate(0.5), Estimate(0.6, 0.4, 0.8)])
    assert low < 0.4
    assert high > 0.8


def test_no_two_of_forty_algorithms_look_alike():
    looks = {(svg.class_of(style), svg.dash_of(style), svg.mark(style, 0, 0)) for style in range(40)}
    assert len(looks) == 40

import math

import numpy as np
import pytest

from agentgym_jax.io.config.seeds import count_members
from agentgym_jax.io.sweeps import ranges


def test_ranges_have_both_ends_and_are_even():
    assert ranges.values("x", {"range": [0.1, 0.9], "steps": 5}) == (0.1, 0.3, 0.5, 0.7, 0.9)
    assert ranges.values("x", {"log_range": [1e-4, 1e-2], "steps": 5}) == (1e-4, 3.16228e-4, 1e-3, 3.16228e-3, 1e-2)
    assert ranges.values("x", [3, 1, "a"]) == (3, 1, "a")


def test_draws_lie_inside_spread_evenly_and_follow_the_seed():
    drawn = np.array(ranges.values("x", {"log_uniform": [1e-4, 1e-2], "draws": 400, "seed": 3}))
    assert drawn.min() >= 1e-4
    assert drawn.max() <= 1e-2
    assert abs(np.mean(np.log10(drawn)) + 3) < 3 * 2 / math.sqrt(12 * 400)  # three standard errors of a uniform mean
    plain = ranges.values("x", {"uniform": [0, 1], "draws": 8})
    assert plain == ranges.values("x", {"uniform": [0, 1], "draws": 8, "seed": 0})
    assert plain != ranges.values("x", {"uniform": [0, 1], "draws": 8, "seed": 1})
    other = ranges.values("y", {"uniform": [0, 1], "draws": 400})
    same_seed = ranges.values("x", {"uniform": [0, 1], "draws": 400})
    assert abs(np.corrcoef(same_seed, other)[0, 1]) < 0.2  # two keys under one seed are not the same numbers


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "a must be a list of values"),
        ([], "a must be a list of values"),
        ({"rnge": [1, 2], "steps": 3}, "a: unknown kind rnge; must be a list"),
        ({"range": [1, 2]}, "a: range needs `steps`"),
        ({"range": [1, 2], "steps": 1}, "a.steps: must be a whole number of at least 2, got 1"),
        ({"range": [1, 2], "steps": 10**6}, "a.steps: must be at most 65,536"),
        ({"range": [1, 2], "step": 3}, "did you mean steps?"),
        ({"range": [2, 1], "steps": 3}, r"a.range: low must be below high, got \[2, 1\]"),
        ({"range": [1, 2, 3], "steps": 3}, r"a.range: must be \[low, high\]"),
        ({"range": ["x", 2], "steps": 3}, "a.range: must be a finite number, got 'x'"),
        ({"log_range": [0, 2], "steps": 3}, "a.log_range: both ends must be above 0"),
        ({"uniform": [0, 1], "steps": 3}, "unknown key a.steps"),
        ({"uniform": [0, 1], "draws": 0}, "a.draws: must be a whole number of at least 1, got 0"),
        ({"uniform": [0, 1], "draws": 2, "seed": -1}, "a.seed: must be a whole number of at least 0"),
        ({"uniform": [0, 1], "log_uniform": [1, 2], "draws": 2}, "a must be a list of values"),
    ],
)
def test_what_is_no_list_of_values_is_refused_in_one_line(given, message):
    with pytest.raises(ValueError, match=message) as caught:
        ranges.values("a", given)
    assert "\n" not in str(caught.value)


def test_members_of_every_notation_are_counted_before_jax_starts():
    sweep = {"algorithm.gamma": {"range": [0.9, 1], "steps": 3}, "algorithm": {"clip": {"uniform": [0, 1], "draws": 4}}}
    assert count_members({"seeds": 2, "sweep": sweep}) == 24
    hand_in_hand = {"zip": {"algorithm.gamma": [0.9, 0.8], "network.hidden": [[8], [16]]}, "algorithm.clip": [0.1, 0.2, 0.3]}
    assert count_members({"seeds": [3, 7], "sweep": hand_in_hand}) == 12
    assert count_members({"sweep": {"algorithm.gamma": {"range": [1, 2], "steps": "many"}, "zip": 3}}) == 1

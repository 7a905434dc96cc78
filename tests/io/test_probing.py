from types import SimpleNamespace

import numpy as np
import pytest

from agentgym_jax.io.running.probing import CHECKS, GAMMA, judge
from envs_jax.probes import PROBES


def outcome(greedy, value=None, diverged=0.0):
    curves = {"diverged": np.full((1, 20), diverged)}
    if value is not None:
        curves["value_mean"] = np.full((1, 20), value)
    return SimpleNamespace(curves=curves, last_evaluation={"greedy": {"return": np.full((1, 4), greedy)}})


def check(name):
    return next(each for each in CHECKS if each.probe == name)


def test_every_check_is_a_probe():
    assert {each.probe for each in CHECKS} <= set(PROBES)


@pytest.mark.parametrize(
    ("probe", "greedy", "value", "state"),
    [
        ("constant", 1.0, 1.0, "right"),
        ("constant", 1.0, 0.5, "wrong"),
        ("truncation", 10.0, 1 / (1 - GAMMA), "right"),
        ("truncation", 10.0, 3.2, "wrong"),
        ("discounted", 1.0, 1.0, "wrong"),
        ("policy", -1.0, 1.0, "wrong"),
        ("policy", 1.0, None, "right"),
        ("individual", 5.0, (3 + 2 * GAMMA + 2) / 3, "right"),
    ],
)
def test_values_and_returns_are_judged_in_words(probe, greedy, value, state):
    verdict = judge(check(probe), outcome(greedy, value))
    assert verdict.state == state
    assert (check(probe).meaning in verdict.text) == (state == "wrong")


def test_what_was_not_compared_is_not_called_right():
    run = outcome(1.0, 1.0)
    del run.curves["value_mean"]
    verdict = judge(check("constant"), run)
    assert verdict.state == "unjudged" and "value_mean" in verdict.text


def test_numbers_that_are_not_finite_are_said_so():
    assert "finite" in judge(check("policy"), outcome(1.0, 1.0, diverged=1.0)).text

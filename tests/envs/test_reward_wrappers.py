"""Rewards in another unit, and rewards of one's own."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from envs_jax.probes import make
from envs_jax.wrappers import RewardHook, ScaleReward, TeamReward, TimeLimit, apply_wrappers

from .contract import check
from .stubs import Counter, Deaths, play, steps_left

KEY = jax.random.key(0)
ACTIONS = jnp.asarray([0, 1, 2, 3])


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"factor": 0.5}, [0, 0.5, 1, 1.5]),
        ({"factor": -1}, [0, -1, -2, -3]),
        ({"low": -1, "high": 1}, [0, 1, 1, 1]),
        ({"factor": -2.0, "low": -3}, [0, -2, -3, -3]),
    ],
)
def test_scaled_rewards(arguments, wanted):
    steps = play(TimeLimit(ScaleReward(Counter(length=9), **arguments), 4), 4, ACTIONS)
    assert steps.reward[1:].tolist() == wanted and steps.reward.dtype == "float32"
    assert steps.last[4] and steps.discount[4] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"factor": float("nan")}, r"scale_reward\.factor must be a finite number, got nan"),
        ({"factor": None}, r"scale_reward\.factor"),
        ({"low": "none"}, r"scale_reward\.low"),
        ({"low": 0.5, "high": 1}, "low ≤ 0 ≤ high"),
        ({"high": -1}, "low ≤ 0 ≤ high"),
    ],
)
def test_scaled_rewards_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        ScaleReward(Counter(), **arguments)


def test_a_hook_sees_state_action_and_next_state():
    def bonus(state, action, next_state):
        return 100 * state["time"] + 10 * action + next_state["time"]

    wanted = [1, 112, 223, 334]
    for mode, own in (("add", [0, 1, 2, 3]), ("replace", [0] * 4)):
        steps = play(RewardHook(Counter(length=9), bonus, mode), 4, ACTIONS)
        assert steps.reward[1:].tolist() == [a + b for a, b in zip(wanted, own, strict=True)]


def test_a_hook_by_name_pays_nobody_who_can_earn_nothing_more():
    entry = {"name": "hook_reward", "function": f"{steps_left.__module__}:steps_left", "mode": "replace"}
    env = apply_wrappers(Deaths(ends=(2, 3, 4)), [entry])
    assert play(env, 5).reward.tolist() == [[0, 0, 0], [9, 9, 9], [8, 8, 8], [0, 7, 7], [0, 0, 6], [0, 0, 0]]
    check(env)


def test_a_hook_of_each_agents_own():
    env = RewardHook(Deaths(), lambda state, action, after: action.astype(jnp.float32), "replace")
    actions = jnp.asarray([[1, 0, 1]] * 6)
    assert play(env, 6, actions).reward[1:, 0].tolist() == [1, 1, 0, 0, 0, 0]
    assert play(env, 6, actions).reward[1:, 2].tolist() == [1] * 6


def test_a_team_stays_one():
    """A number goes to everybody, dead or not, until the episode ends; rewards of each agent's own are refused."""
    team = TeamReward(Deaths(ends=(2, 5)))
    env = RewardHook(ScaleReward(team, 0.5, high=1), lambda state, action, after: 10.0)
    assert play(env, 6).reward.tolist() == [[0, 0]] + [[11, 11]] * 5 + [[0, 0]]
    check(env)
    check(ScaleReward(make("team"), 3))
    hook = RewardHook(team, lambda state, action, after: action)
    with pytest.raises(ValueError, match=r"hook_reward: the function must return shape \[\] here, got \[2\]"):
        hook.transition(KEY, jnp.int32(0), jnp.zeros(2, jnp.int32), ())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": "nowhere:f"}, "cannot load 'nowhere:f': No module named"),
        ({"function": "math:f"}, "cannot load 'math:f'"),
        ({"function": "f"}, "must be a function or a string `module:function`, got 'f'"),
        ({"function": 3}, "must be a function"),
        ({"function": "math:hypot", "mode": "ad"}, "unknown mode of wrapper hook_reward 'ad': did you mean add"),
    ],
)
def test_hooks_refuse(arguments, message):
    with pytest.raises(ValueError, match=message):
        RewardHook(Counter(), **arguments)


def test_a_hook_with_a_wrong_shape_is_refused():
    hook = RewardHook(Deaths(), lambda state, action, after: jnp.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"shape \[\] or \[3\] here, got \[3, 1\]"):
        hook.transition(KEY, jnp.int32(0), jnp.zeros(3, jnp.int32), ())

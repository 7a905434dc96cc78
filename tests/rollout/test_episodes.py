"""Episode statistics against a count by hand over the recorded steps."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.rollout.episodes import means, no_totals
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.types import Clock, Sizes
from envs_jax.core import Group
from tests.support import Story, compiled, watcher

SIZES = Sizes(num_envs=4, rollout_length=7)
CLOCK = Clock(jnp.int32(0), jnp.int32(1))
RECORD = {"reward", "last", "next_observation"}
close = np.testing.assert_allclose


def roll(env, rollouts=3):
    """Totals and recorded steps of several rollouts; episodes run on from one into the next."""
    acting = make_acting(env, fixed(()), watcher(env.spec, RECORD), SIZES, "fresh")
    one = compiled(lambda actor, key: unroll(acting, {}, {}, actor, (), key, CLOCK, False))
    actor = compiled(functools.partial(start, acting))((), jax.random.key(0))
    out = []
    for key in jax.random.split(jax.random.key(1), rollouts):
        actor, trajectory, totals = one(actor, key)
        out.append((totals, jax.tree.map(np.asarray, trajectory.steps)))
    return out


def story(reward, groups):
    """Three agents, alike or as a leader and two others."""
    env = Story(reward=reward, agents=3)
    spaces = env.spec.observation_space, env.spec.action_space
    apart = (Group("lead", 1, *spaces), Group("rest", 2, *spaces)) if groups else ()
    env.spec = dataclasses.replace(env.spec, groups=apart)
    return env


@pytest.mark.parametrize(("reward", "groups"), [("team", False), ("team", True), ("individual", False), ("individual", True)])
def test_sums_equal_a_count_by_hand(reward, groups):
    """A team reward counts once, individual ones are summed over agents, and over those of each group; metrics are the last,
    the sum and the mean."""
    running = [[] for _ in range(SIZES.num_envs)]
    ended = 0
    env = story(reward, groups)
    for totals, steps in roll(env):
        expected = dict.fromkeys(no_totals(env.spec), 0.0)
        for t in range(SIZES.rollout_length):
            for n in range(SIZES.num_envs):
                running[n].append((steps.reward[t, n], steps.next_observation[t, n, 0, 0]))
                if not steps.last[t, n]:
                    continue
                rewards, times = (np.array(x) for x in zip(*running[n], strict=True))
                running[n] = []
                assert np.array_equal(times, np.arange(1, len(times) + 1))
                collected = rewards[:, 0].sum() if reward == "team" else rewards.sum()
                own = {
                    "episodes": 1,
                    "return": collected,
                    "agent_return": collected if reward == "team" else rewards.sum(0).mean(),
                    "length": len(times),
                    "newest": times[-1],
                    "total": times.sum(),
                    "average": times.mean(),
                }
                if groups and reward == "individual":
                    own |= {"group_return.lead": rewards[:, 0].sum(), "group_return.rest": rewards[:, 1:].sum()}
                assert set(own) == set(expected)
                expected = {name: expected[name] + own[name] for name in expected}
        assert set(totals) == set(expected)
        for name, value in expected.items():
            close(totals[name], value, rtol=1e-5, err_msg=name)
        curves = means(totals)
        assert curves["episodes"] == expected["episodes"]
        close(curves["episode_return"], expected["return"] / expected["episodes"], rtol=1e-5)
        ended += expected["episodes"]
    assert ended > 10


def test_no_ended_episode_is_nan_and_never_zero():
    curves = means(no_totals(Story().spec))
    assert curves.pop("episodes") == 0
    assert set(curves) == {f"episode_{name}" for name in ("return", "agent_return", "length", "newest", "total", "average")}
    assert all(np.isnan(x) for x in curves.values())

"""Rewards in another unit, or changed by a function of one's own."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from envs_jax.core import Env
from envs_jax.names import unknown
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.checks import number


class ScaleReward(Wrapper):
    """Pays `factor` times the reward, clipped to [`low`, `high`] where these are given.

    `{name: scale_reward, low: -1, high: 1}` clips alone, as DQN did on Atari (Mnih et al. 2015). Returns are logged in the new
    unit; metrics are untouched. Raises ValueError for what is no finite number, and when 0 lies outside the bounds, for who can
    earn nothing more has to be paid 0.
    """

    def __init__(self, env: Env, factor: float = 1.0, low: float | None = None, high: float | None = None):
        self._factor = number("scale_reward.factor", factor)
        self._low, self._high = (
            bound if bound is None else number(f"scale_reward.{name}", bound) for name, bound in (("low", low), ("high", high))
        )
        if (self._low or 0) > 0 or (self._high or 0) < 0:
            raise ValueError(f"scale_reward needs low ≤ 0 ≤ high, so that no reward stays none; got {low!r} and {high!r}")
        super().__init__(env)

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        state, reward = self.env.advance(key, state, action, params)
        return state, jnp.clip(self._factor * reward, self._low, self._high)


class RewardHook(Wrapper):
    """Adds `function(state, action, next_state)` to the reward, or pays it instead: `mode` `add` or `replace`.

    The states are those of `env`, which this is put around; the function has to be traceable by jax, and gives a number, which
    every agent is paid, or one for each agent [A]. An agent that can earn nothing more is paid 0. Where the reward is a team's
    it must be one number. `function` may be "module:function", so that an experiment file can name it. Metrics are untouched.
    Raises ValueError when the function or the mode is none, and, once it is traced, for what it returns.
    """

    def __init__(self, env: Env, function: Callable[..., Any] | str, mode: str = "add"):
        if mode not in ("add", "replace"):
            raise unknown("mode of wrapper hook_reward", mode, ("add", "replace"))
        super().__init__(env)
        self._function, self._mode = _load(function), mode
        self._axis = () if env.spec.num_agents is None else (env.spec.num_agents,)

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        before = self.env.observe(state, params)
        after, reward = self.env.advance(key, state, action, params)
        own = jnp.asarray(self._function(state, action, after), jnp.float32)
        allowed = [()] if self.spec.reward == "team" else [(), self._axis]
        if own.shape not in allowed:
            shapes = " or ".join(str(list(shape)) for shape in dict.fromkeys(allowed))
            raise ValueError(f"hook_reward: the function must return shape {shapes} here, got {list(own.shape)}")
        earning = before.alive | (before.discount > 0)
        own = jnp.where(earning, jnp.broadcast_to(own, self._axis), 0.0)
        return after, reward + own if self._mode == "add" else own


def _load(function: Any) -> Callable[..., Any]:
    """A callable, or the one that "module:function" names."""
    loaded = function
    if isinstance(function, str) and re.fullmatch(r"[\w.]+:\w+", function):
        module, _, name = function.partition(":")
        try:
            loaded = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"hook_reward.function: cannot load {function!r}: {error}") from error
    if not callable(loaded):
        raise ValueError(f"hook_reward.function must be a function or a string `module:function`, got {function!r}")
    return loaded

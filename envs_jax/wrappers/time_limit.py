"""Episodes of bounded length."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, TimeStep
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.checks import whole


@struct.dataclass
class TimeLimitState:
    inner: Any
    time: jax.Array  # int32 []: steps taken in this episode, counted here alone


class TimeLimit(Wrapper):
    """Cuts an episode off after exactly `limit` steps.

    A cut is no true end: `last` is set and `discount` is left alone, so that the state keeps its value. Raises ValueError
    for a limit below 1.
    """

    def __init__(self, env: Env, limit: int):
        limit, own = whole("time_limit.limit", limit), env.spec.episode_limit
        super().__init__(env, dataclasses.replace(env.spec, episode_limit=limit if own is None else min(limit, own)))
        self.limit = limit

    def inner(self, state: TimeLimitState) -> Any:
        return state.inner

    def initial(self, key: jax.Array, params: Any) -> TimeLimitState:
        return TimeLimitState(self.env.initial(key, params), jnp.int32(0))

    def advance(self, key: jax.Array, state: TimeLimitState, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        inner, reward = self.env.advance(key, state.inner, action, params)
        return TimeLimitState(inner, state.time + 1), reward

    def observe(self, state: TimeLimitState, params: Any) -> TimeStep:
        timestep = self.env.observe(state.inner, params)
        return timestep.replace(last=timestep.last | (state.time >= self.limit))

"""Observations and actions of one size for environments, or agents, of different sizes."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from envs_jax.core import Env, TimeStep
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.checks import whole
from envs_jax.wrappers.columns import joined

_OWN = ", the environment's own"


class Pad(Wrapper):
    """Observations with zeros behind their last axis up to `observation`, and `actions` in all, the surplus never legal.

    What an index meant before it means afterwards, so one network can act in environments of different sizes. A surplus
    action is masked at every step; one that is taken nevertheless counts as action 0. Groups of agents keep their own, unpadded
    spaces. Raises ValueError when neither size is given, a size is below the environment's own, the observation is no array, or
    `actions` is given where actions are not Discrete.
    """

    def __init__(self, env: Env, observation: int | None = None, actions: int | None = None):
        spec = env.spec
        if observation is None and actions is None:
            raise ValueError("pad needs the argument `observation` or `actions`, the size to pad to")
        if observation is not None:
            own = spec.observation_space
            if not isinstance(own, Box) or not own.shape:
                raise ValueError(f"pad.observation needs observations that are one array, got {own}; apply `flatten` before it")
            surplus = whole("pad.observation", observation, own.shape[-1], _OWN) - own.shape[-1]
            zeros = Box(0, 0, (*own.shape[:-1], surplus), own.dtype)
            spec = dataclasses.replace(spec, observation_space=joined([own, zeros]))
        if actions is not None:
            if not isinstance(spec.action_space, Discrete):
                raise ValueError(f"pad.actions needs Discrete actions, got {spec.action_space}")
            space = Discrete(whole("pad.actions", actions, spec.action_space.n, _OWN))
            spec = dataclasses.replace(spec, action_space=space)
        super().__init__(env, spec)
        self._width, self._actions = observation, actions

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        if self._actions is not None:
            action = jnp.where(action < self.env.spec.action_space.n, action, 0)
        return self.env.advance(key, state, action, params)

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        if self._width is not None:
            timestep = timestep.replace(observation=_padded(timestep.observation, self._width))
        if self._actions is None:
            return timestep
        mask = timestep.action_mask
        if isinstance(mask, tuple):
            mask = jnp.ones((*timestep.alive.shape, self.env.spec.action_space.n), bool)
        return timestep.replace(action_mask=_padded(mask, self._actions))


def _padded(x: jax.Array, width: int) -> jax.Array:
    """Zeros (False) behind the last axis up to `width`."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])])

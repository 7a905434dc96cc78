"""The last observations as one."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs_jax.core import Env, TimeStep
from envs_jax.spaces import Box, Space
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.checks import whole
from envs_jax.wrappers.columns import box, joined, packing


@struct.dataclass
class FrameStackState:
    inner: Any
    frames: jax.Array  # the stacked observation itself, oldest first


class FrameStack(Wrapper):
    """Lays the last `size` observations side by side on the last axis, oldest first.

    [F] becomes [size · F] and an image [H, W, C] becomes [H, W, size · C]. An episode starts with zeros in place of the
    frames that it does not have yet: nothing is seen of the episode before. With groups each row still starts with its own
    columns and ends with its padding. Raises ValueError for `size` below 1 and for observations that are not one array.
    """

    def __init__(self, env: Env, size: int):
        spec = env.spec
        whole("frame_stack.size", size)
        if not isinstance(spec.observation_space, Box) or not spec.observation_space.shape:
            raise ValueError(
                f"frame_stack needs observations that are one array, got {spec.observation_space}; apply `flatten`"
            )
        self._order = packing(spec, repeats=size)
        self._frame = spec.observation_space.shape[-1]
        groups = tuple(
            dataclasses.replace(group, observation_space=_stacked(group.observation_space, size)) for group in spec.groups
        )
        space = _stacked(spec.observation_space, size)
        if groups:
            space = Box(np.min(space.low), np.max(space.high), space.shape, space.dtype)
        super().__init__(env, dataclasses.replace(spec, observation_space=space, groups=groups))

    def inner(self, state: FrameStackState) -> Any:
        return state.inner

    def initial(self, key: jax.Array, params: Any) -> FrameStackState:
        inner = self.env.initial(key, params)
        observation = self.env.observe(inner, params).observation
        width = self.spec.observation_space.shape[-1]
        return self._push(inner, jnp.zeros((*observation.shape[:-1], width), observation.dtype), observation)

    def advance(self, key: jax.Array, state: FrameStackState, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        inner, reward = self.env.advance(key, state.inner, action, params)
        return self._push(inner, state.frames, self.env.observe(inner, params).observation), reward

    def observe(self, state: FrameStackState, params: Any) -> TimeStep:
        frames = state.frames
        if self._order is not None:
            frames = jnp.take_along_axis(frames, jnp.asarray(self._order), axis=-1)
        return self.env.observe(state.inner, params).replace(observation=frames)

    def _push(self, inner: Any, frames: jax.Array, observation: jax.Array) -> FrameStackState:
        return FrameStackState(inner, jnp.concatenate([frames[..., self._frame :], observation], axis=-1))


def _stacked(space: Space, size: int) -> Box:
    """`size` frames side by side, widened to hold the zeros of an episode's start."""
    low, high = box(space).bounds()
    return joined([Box(np.minimum(low, 0), np.maximum(high, 0), space.shape, space.dtype)] * size)

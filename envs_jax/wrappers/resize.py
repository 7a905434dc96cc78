"""Images of another size."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, TimeStep
from envs_jax.names import unknown
from envs_jax.spaces import Box, Space
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.checks import whole

_METHODS = ("nearest", "linear", "cubic", "lanczos3", "lanczos5")


class Resize(Wrapper):
    """Images [H, W, C] as [height, width, C], by `jax.image.resize` with this `method`.

    `nearest` repeats or leaves out pixels; the others interpolate, and average where the image shrinks. Values stay in the
    range of the image and in its dtype: whole numbers such as bytes are rounded. Raises ValueError for observations that are
    no image, sizes below 1 and an unknown method.
    """

    def __init__(self, env: Env, height: int, width: int, method: str = "linear"):
        spec = env.spec
        if method not in _METHODS:
            raise unknown("method of wrapper resize", method, _METHODS)
        self._size, self._method = (whole("resize.height", height), whole("resize.width", width)), method
        if len({getattr(x.observation_space, "shape", ())[:-1] for x in (spec, *spec.groups)}) > 1:
            raise ValueError(f"resize needs images of one size where agents form groups, got {spec.groups}")
        groups = tuple(
            dataclasses.replace(group, observation_space=self._space(group.observation_space)) for group in spec.groups
        )
        space = self._space(spec.observation_space)
        super().__init__(env, dataclasses.replace(spec, observation_space=space, groups=groups))

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        image, space = timestep.observation, self.spec.observation_space
        if image.shape[-3:] == space.shape:
            return timestep
        shape = (*image.shape[:-3], *space.shape)
        if not np.issubdtype(space.dtype, np.floating):
            image = image.astype(jnp.float32)
        image = jax.image.resize(image, shape, self._method)
        image = image if np.issubdtype(space.dtype, np.floating) else jnp.round(image)
        low, high = (jnp.broadcast_to(bound.astype(np.float32), shape) for bound in space.bounds())
        return timestep.replace(observation=jnp.clip(image, low, high).astype(space.dtype))

    def _space(self, space: Space) -> Box:
        """The Box of the resized images: in each channel the range of all its pixels."""
        if not isinstance(space, Box) or len(space.shape) != 3:
            raise ValueError(f"resize needs observations that are images [height, width, channels], got {space}")
        low, high = space.bounds()
        shape = (*self._size, space.shape[-1])
        low, high = (np.broadcast_to(bound, shape) for bound in (low.min(axis=(0, 1)), high.max(axis=(0, 1))))
        return Box(low, high, shape, space.dtype)

"""Any observation as one vector."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, TimeStep
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.columns import joined


class Flatten(Wrapper):
    """One vector in place of arrays of any shape or a tree of them: arrays row by row, whole numbers as one-hot vectors.

    The parts follow the order of the tree's leaves; they take their common dtype, so bytes stay bytes when all are. Raises
    ValueError when groups of agents observe something else than vectors, for padding would end up inside the rows.
    """

    def __init__(self, env: Env):
        spec = env.spec
        self._spaces = jax.tree.leaves(spec.observation_space)
        boxes = [_flat(space) for space in self._spaces]
        dtype = np.result_type(*(box.dtype for box in boxes))
        space = dataclasses.replace(joined(boxes), dtype=dtype)
        if spec.groups and len(getattr(spec.observation_space, "shape", ())) != 1:
            raise ValueError(f"flatten needs vectors where agents form groups, got {spec.observation_space}")
        super().__init__(env, dataclasses.replace(spec, observation_space=space))

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        leading = () if self.spec.num_agents is None else (self.spec.num_agents,)
        parts = []
        for space, x in zip(self._spaces, jax.tree.leaves(timestep.observation), strict=True):
            for head, n in enumerate(_sizes(space)):
                parts.append(jax.nn.one_hot(x if isinstance(space, Discrete) else x[..., head], n, dtype=jnp.float32))
            if isinstance(space, Box):
                parts.append(x.reshape(*leading, -1))
        dtype = self.spec.observation_space.dtype
        return timestep.replace(observation=jnp.concatenate([part.astype(dtype) for part in parts], axis=-1))


def _sizes(space: Any) -> tuple[int, ...]:
    """The lengths of the one-hot vectors of a space; none for a Box."""
    if isinstance(space, Discrete):
        return (space.n,)
    return space.nvec if isinstance(space, MultiDiscrete) else ()


def _flat(space: Any) -> Box:
    if isinstance(space, Box):
        low, high = space.bounds()
        return Box(low.ravel(), high.ravel(), (low.size,), space.dtype)
    if isinstance(space, Discrete | MultiDiscrete):
        return Box(0, 1, (sum(_sizes(space)),), np.float32)
    raise ValueError(f"flatten knows Box, Discrete and MultiDiscrete, got {space!r} in the observation space")

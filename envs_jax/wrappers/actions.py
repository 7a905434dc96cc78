"""Wrappers of continuous actions."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, EnvSpec
from envs_jax.spaces import Box, Space
from envs_jax.wrappers.base import Wrapper


class ScaleActions(Wrapper):
    """Actions in [−1, 1] for every dimension, mapped affinely to the bounds of the environment's Box.

    −1 and 1 arrive as exactly `low` and `high`; actions outside are clipped first. Raises ValueError, with the space in the
    message, when it is no floating-point Box or has an infinite bound.
    """

    def __init__(self, env: Env):
        spec = env.spec
        groups = tuple(dataclasses.replace(group, action_space=_unit_box(group.action_space)) for group in spec.groups)
        super().__init__(env, dataclasses.replace(spec, action_space=_unit_box(spec.action_space), groups=groups))
        low, high = _bounds(spec)
        self._low, self._high = low.astype(np.float32), high.astype(np.float32)
        self._unit = bool(np.all(low == -1.0) and np.all(high == 1.0))

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        action = jnp.clip(action, -1.0, 1.0)
        if not self._unit:  # exact at both ends, unlike centre + half-range · action
            low, high = (jnp.broadcast_to(bound, action.shape) for bound in (self._low, self._high))
            action = low * (0.5 - 0.5 * action) + high * (0.5 + 0.5 * action)
        return self.env.advance(key, state, action, params)


def _finite(space: Space) -> Box:
    """The space itself, which must be a floating-point Box with finite bounds."""
    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"scale_actions needs a floating-point Box, got {space}")
    if not space.bounded:
        raise ValueError(f"scale_actions cannot map [-1, 1] to an infinite range: {space}; give the environment finite bounds")
    return space


def _unit_box(space: Space) -> Box:
    return Box(-1, 1, _finite(space).shape, space.dtype)


def _bounds(spec: EnvSpec) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds: of the action space, or [A, width] with groups, where surplus dimensions keep [−1, 1]."""
    if not spec.groups:
        return _finite(spec.action_space).bounds()
    high = np.ones((sum(group.size for group in spec.groups), *spec.action_space.shape))
    low, row = -high, 0
    for group in spec.groups:
        rows = (slice(row, row + group.size), *(slice(0, n) for n in group.action_space.shape))
        low[rows], high[rows] = _finite(group.action_space).bounds()
        row += group.size
    return low, high

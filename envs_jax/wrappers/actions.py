"""Continuous actions in one range for every environment."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env
from envs_jax.spaces import Box, Space
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.bounds import action_bounds, finite

_NAME = "scale_actions"


class ScaleActions(Wrapper):
    """Actions in [−1, 1] for every dimension, mapped affinely to the bounds of the environment's Box.

    −1 and 1 arrive as exactly `low` and `high`; actions outside are clipped first. Raises ValueError, with the space in the
    message, when it is no floating-point Box or has an infinite bound.
    """

    def __init__(self, env: Env):
        spec = env.spec
        groups = tuple(dataclasses.replace(group, action_space=_unit_box(group.action_space)) for group in spec.groups)
        super().__init__(env, dataclasses.replace(spec, action_space=_unit_box(spec.action_space), groups=groups))
        low, high = action_bounds(_NAME, spec)
        self._low, self._high = low.astype(np.float32), high.astype(np.float32)
        self._unit = bool(np.all(low == -1.0) and np.all(high == 1.0))

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        return self.env.advance(key, state, self.own_units(action), params)

    def own_units(self, action: jax.Array) -> jax.Array:
        """An action [..., d] in [−1, 1] in the environment's own units."""
        action = jnp.clip(action, -1.0, 1.0)
        if self._unit:
            return action
        low, high = (jnp.broadcast_to(bound, action.shape) for bound in (self._low, self._high))
        # Exact at both ends, unlike centre + half-range · action.
        return low * (0.5 - 0.5 * action) + high * (0.5 + 0.5 * action)


def _unit_box(space: Space) -> Box:
    return Box(-1, 1, finite(_NAME, space).shape, space.dtype)

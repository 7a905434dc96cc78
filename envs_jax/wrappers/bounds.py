"""The bounds of continuous actions, for wrappers that map something onto them."""

from __future__ import annotations

import numpy as np

from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Space


def finite(wrapper: str, space: Space) -> Box:
    """The space itself, which must be a floating-point Box with finite bounds; else ValueError, naming wrapper and space."""
    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"{wrapper} needs actions of a floating-point Box, got {space}")
    if not space.bounded:
        raise ValueError(f"{wrapper} needs a finite range of actions, got {space}; give the environment finite bounds")
    return space


def action_bounds(wrapper: str, spec: EnvSpec) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds: of the action space, or [A, ...] with groups, where surplus dimensions have [−1, 1]."""
    if not spec.groups:
        return finite(wrapper, spec.action_space).bounds()
    high = np.ones((sum(group.size for group in spec.groups), *spec.action_space.shape))
    low, row = -high, 0
    for group in spec.groups:
        rows = (slice(row, row + group.size), *(slice(0, n) for n in group.action_space.shape))
        low[rows], high[rows] = finite(wrapper, group.action_space).bounds()
        row += group.size
    return low, high

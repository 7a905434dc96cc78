"""The last axis of observations: joining columns, and keeping every group's own columns in front of its padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Space


def box(space: Space) -> Box:
    """The space itself, which must be a Box."""
    if not isinstance(space, Box):
        raise ValueError(f"only Boxes can be laid side by side, got {space}; apply `flatten` first")
    return space


def joined(spaces: Sequence[Space]) -> Box:
    """The Box of observations laid side by side on the last axis, in the dtype of the first."""
    low, high = (np.concatenate(bounds, axis=-1) for bounds in zip(*(box(space).bounds() for space in spaces), strict=True))
    return Box(low, high, low.shape, spaces[0].dtype)


def packing(spec: EnvSpec, appended: int = 0, repeats: int = 1) -> np.ndarray | None:
    """Where the columns of padded observations go after a wrapper has repeated them and appended others.

    Observations of groups are padded with zeros behind their own columns. `repeats` copies of such a row, followed by
    `appended` columns, have padding in the middle. Returns int [A, width], the order of columns that moves it to the end
    (for `take_along_axis`), or None without groups.
    """
    if not spec.groups:
        return None
    width = spec.observation_space.shape[-1]
    own = [np.arange(width) < group.observation_space.shape[-1] for group in spec.groups for _ in range(group.size)]
    rows = [np.concatenate([*[row] * repeats, np.ones(appended, bool)]) for row in own]
    return np.argsort(~np.stack(rows), axis=-1, kind="stable")

"""Sokoban: push four boxes onto four targets; a box cannot be pulled, so a careless push may be the last.

The library downloads its levels, those of Boxoban (Guez et al. 2018, https://github.com/google-deepmind/boxoban-levels). Here
the default is a set made on the spot (`sokoban_levels`).
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jumanji.environments import Sokoban as Library
from jumanji.environments.routing.sokoban.constants import AGENT, BOX, GRID_SIZE, N_BOXES, TARGET, WALL
from jumanji.environments.routing.sokoban.generator import HuggingFaceDeepMindGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.adapters.jumanji.sokoban_levels import generate
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class StoredLevels(HuggingFaceDeepMindGenerator):
    """Draws each start from `levels`, uint8 [n, 10, 10, 2]: walls and targets, then the agent and the boxes."""

    def __init__(self, levels: np.ndarray):
        self._fixed_grids, self._variable_grids = jnp.asarray(levels[..., 0]), jnp.asarray(levels[..., 1])


class Sokoban(JumanjiEnv):
    """`Sokoban-v0`, single-agent. Actions: up, right, down, left; one that cannot be done changes nothing, so all are legal.

    The observation is [10, 10, 4] of 0 and 1: walls, targets, agent, boxes. The reward is 1 for a box put on a target, -1
    for one taken off, 10 for the last, and -0.1 a step. It truly ends when all boxes are on targets. Metrics: `in_place`,
    the share of the boxes on targets, and `success`.

    Args:
        time_limit: steps until an episode is cut.
        levels: `generated`: `num_levels` rooms made by playing backwards for 100 steps, always the same;
            `boxoban`: jumanji's own, the unfiltered training set, which is downloaded when it is not in the cache of
            huggingface_hub; else the path of an array in jumanji's form, a .npy file [n, 10, 10, 2].
        num_levels: how many are generated.

    Raises ValueError for levels that cannot be had.
    """

    def __init__(self, time_limit: int = 120, levels: str = "generated", num_levels: int = 1000):
        limit = check_time_limit("Sokoban", time_limit)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (GRID_SIZE, GRID_SIZE, 4)),
            action_space=Discrete(4),
            metrics={"in_place": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(_levels(levels, num_levels), time_limit=limit + 1), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        fixed, variable = state.library.fixed_grid, state.library.variable_grid
        planes = (fixed == WALL, fixed == TARGET, variable == AGENT, variable == BOX)
        return jnp.stack(planes, axis=-1).astype(jnp.float32)

    def metrics(self, state: State) -> dict[str, jax.Array]:
        in_place = (state.library.fixed_grid == TARGET) & (state.library.variable_grid == BOX)
        return {
            "in_place": jnp.sum(in_place).astype(jnp.float32) / N_BOXES,
            "success": state.ended.astype(jnp.float32),
        }


def _levels(levels: str, num_levels: int) -> Any:
    if levels == "generated":
        check_whole("Sokoban", 1, num_levels=num_levels)
        return StoredLevels(_generated(num_levels))
    if levels == "boxoban":
        try:
            return HuggingFaceDeepMindGenerator("unfiltered-train")
        except Exception as error:  # whatever a download may raise: no network, no space, no such file
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            remedy = "take `generated` or the path of a .npy file"
            raise ValueError(f"Sokoban: levels `boxoban` cannot be downloaded ({reason}); {remedy}") from error
    return StoredLevels(_read(levels))


@functools.cache
def _generated(num_levels: int) -> np.ndarray:
    levels = generate(num_levels)
    return np.stack([levels.fixed, levels.variable], axis=-1)


def _read(path: str) -> np.ndarray:
    if not Path(path).is_file():
        raise ValueError(f"Sokoban: levels must be `generated`, `boxoban` or the path of a .npy file, got {path!r}")
    levels = np.load(path)
    shape = (GRID_SIZE, GRID_SIZE, 2)
    if levels.ndim != 4 or levels.shape[1:] != shape or not len(levels):
        raise ValueError(f"Sokoban: levels in {path} must have the shape (n, {', '.join(map(str, shape))}), got {levels.shape}")
    counts = {"targets": levels[..., 0] == TARGET, "boxes": levels[..., 1] == BOX, "agents": levels[..., 1] == AGENT}
    for name, cells in counts.items():
        expected = 1 if name == "agents" else N_BOXES
        if wrong := np.flatnonzero(cells.sum((1, 2)) != expected).tolist():
            raise ValueError(f"Sokoban: level {wrong[0]} in {path} must have {expected} {name}, got {cells[wrong[0]].sum()}")
    return levels.astype(np.uint8)

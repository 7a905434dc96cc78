"""Minesweeper: uncover every cell without a mine; a number tells how many of the eight neighbours have one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Minesweeper as Library
from jumanji.environments.logic.minesweeper.constants import UNEXPLORED_ID
from jumanji.environments.logic.minesweeper.generator import UniformSamplingGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_COUNTS = 9  # 0 ... 8 mines around a cell


class Minesweeper(JumanjiEnv):
    """`Minesweeper-v0`, single-agent. Action: the cell to uncover, row * num_cols + column; an uncovered one is illegal.

    The observation is [num_rows, num_cols, 10] of 0 and 1: covered, then the counts 0 ... 8; the number of mines is the
    same in every episode. The reward is 1 for each cell without a mine. It truly ends at a mine, at an illegal action and
    when no other cell is left. Metrics: `explored`, the share of the cells without a mine, and `success`, whether all.

    Args:
        time_limit: steps until an episode is cut; the library has none. None: the cells without a mine, which no episode
            outlasts.
        num_rows, num_cols: the board, at least 2 x 2.
        num_mines: how many cells have a mine, 1 ... num_rows num_cols - 1.

    Raises ValueError when these do not fit together.
    """

    def __init__(self, time_limit: int | None = None, num_rows: int = 10, num_cols: int = 10, num_mines: int = 10):
        check_whole("Minesweeper", 2, num_rows=num_rows, num_cols=num_cols)
        check_whole("Minesweeper", 1, num_mines=num_mines)
        if num_mines >= num_rows * num_cols:
            raise ValueError(f"Minesweeper: num_mines must leave a cell free, got {num_mines} on {num_rows} x {num_cols} cells")
        self._safe = num_rows * num_cols - num_mines
        limit = check_time_limit("Minesweeper", self._safe if time_limit is None else time_limit)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (num_rows, num_cols, 1 + _COUNTS)),
            action_space=Discrete(num_rows * num_cols),
            metrics={"explored": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(UniformSamplingGenerator(num_rows, num_cols, num_mines)), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        return jax.nn.one_hot(state.library.board - UNEXPLORED_ID, 1 + _COUNTS, dtype=jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.board.ravel() == UNEXPLORED_ID

    def library_action(self, action: jax.Array) -> jax.Array:
        return jnp.stack(jnp.divmod(action, self.library.num_cols))

    def metrics(self, state: State) -> dict[str, jax.Array]:
        open_cells = state.library.board.ravel() != UNEXPLORED_ID
        safe = jnp.sum(open_cells) - jnp.sum(open_cells[state.library.flat_mine_locations])
        explored = safe.astype(jnp.float32) / self._safe
        return {"explored": explored, "success": (safe == self._safe).astype(jnp.float32)}

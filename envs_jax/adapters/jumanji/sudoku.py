"""Sudoku: fill the board so that no row, column or box holds a digit twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jumanji.environments import Sudoku as Library
from jumanji.environments.logic.sudoku import data
from jumanji.environments.logic.sudoku.constants import BOARD_WIDTH
from jumanji.environments.logic.sudoku.generator import DatabaseGenerator
from jumanji.environments.logic.sudoku.utils import is_puzzle_solved

from envs_jax.adapters.common import check_time_limit, choose
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class Sudoku(JumanjiEnv):
    """`Sudoku-v0`, and `Sudoku-very-easy-v0` with at least 46 digits given; single-agent.

    Action: (row * 9 + column) * 9 + digit - 1, one number since what is legal depends on all three: the cell is empty and
    the digit in none of its row, column and box. The observation is [9, 9, 10] of 0 and 1: empty, then the digits 1 ... 9.
    The reward is 1 for a solved board. It truly ends at an illegal action and when none is legal, solved or stuck.
    Metrics: `filled`, the share of the cells that hold a digit, and `success`.

    Args:
        time_limit: steps until an episode is cut; the library has none. The default is one that no episode outlasts.
        puzzles: which of the library's sets the starts are drawn from, `mixed` (10000) or `very-easy` (1000).

    Raises ValueError for another set.
    """

    def __init__(self, time_limit: int = BOARD_WIDTH**2, puzzles: str = "mixed"):
        limit = check_time_limit("Sudoku", time_limit)
        boards = np.load(Path(data.__file__).parent / choose("Sudoku", "puzzles", puzzles, data.DATABASES))
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (BOARD_WIDTH, BOARD_WIDTH, 1 + BOARD_WIDTH)),
            action_space=Discrete(BOARD_WIDTH**3),
            metrics={"filled": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(DatabaseGenerator(boards)), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        return jax.nn.one_hot(state.library.board + 1, 1 + BOARD_WIDTH, dtype=jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask.ravel()

    def library_action(self, action: jax.Array) -> jax.Array:
        return jnp.stack(jnp.unravel_index(action, (BOARD_WIDTH,) * 3))

    def metrics(self, state: State) -> dict[str, jax.Array]:
        board = state.library.board
        return {
            "filled": jnp.mean(board >= 0, dtype=jnp.float32),
            "success": jnp.asarray(is_puzzle_solved(board), jnp.float32),
        }

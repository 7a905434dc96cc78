"""FlatPack: fill a grid with all blocks of a jigsaw, turned and placed one at a time."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import FlatPack as Library
from jumanji.environments.packing.flat_pack.generator import RandomFlatPackGenerator
from jumanji.environments.packing.flat_pack.reward import BlockDenseReward, CellDenseReward

from envs_jax.adapters.common import check_whole, choose
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

REWARDS = {"cell_dense": CellDenseReward, "block_dense": BlockDenseReward}
_SIDE, _TURNS = 3, 4  # of a block


class _QuickMask(Library):
    """The library, which draws each block at each place on a grid of its own to find out what fits, with a quicker way."""

    def _make_action_mask(self, grid: jax.Array, blocks: jax.Array, placed_blocks: jax.Array) -> jax.Array:
        turned = jnp.stack([jnp.rot90(blocks, -turns, axes=(1, 2)) for turns in range(_TURNS)], axis=1)
        rows, cols = self.num_rows - _SIDE + 1, self.num_cols - _SIDE + 1
        free = jnp.broadcast_to(~placed_blocks[:, None, None, None], (self.num_blocks, _TURNS, rows, cols))
        for row in range(_SIDE):
            for col in range(_SIDE):
                taken = grid[row : row + rows, col : col + cols] != 0
                free &= ~(taken[None, None] & (turned[:, :, row, col] != 0)[:, :, None, None])
        return free


class FlatPack(JumanjiEnv):
    """`FlatPack-v0`, single-agent. Action: ((block * 4 + turns) * (rows - 2) + row) * (cols - 2) + col, the 3 x 3 square of a
    block, turned clockwise by 90 degrees `turns` times, with its upper left corner at (row, col).

    The grid has 2 num_row_blocks + 1 rows and 2 num_col_blocks + 1 columns, which the blocks together just fill. Legal is a
    block that is not placed yet and covers nothing that is filled; an illegal action places nothing and is a move lost. The
    observation is [rows cols + 10 num_blocks + 1] in 0 ... 1: which cells are filled; for each block its 9 cells as it lies
    at no turn, and whether it is placed; the share of moves left. (By which block a cell is filled, which jumanji paints,
    matters to no later move.) It truly ends after num_blocks moves, which is the time limit, even if nothing fits before;
    the mask is then all False. Metrics: `coverage`, the share of cells filled, `placed`, that of blocks, and `success`,
    whether all cells are.

    Args:
        num_row_blocks, num_col_blocks: how many blocks there are along each side.
        reward: `cell_dense` pays the share of the grid that a block fills; `block_dense` 1 / num_blocks for each.

    Raises ValueError when an argument is none of these.
    """

    def __init__(self, num_row_blocks: int = 5, num_col_blocks: int = 5, reward: str = "cell_dense"):
        check_whole("FlatPack", 1, num_row_blocks=num_row_blocks, num_col_blocks=num_col_blocks)
        reward_fn = choose("FlatPack", "reward", reward, REWARDS)()
        library = _QuickMask(RandomFlatPackGenerator(num_row_blocks, num_col_blocks), reward_fn)
        rows, cols, blocks = library.num_rows, library.num_cols, library.num_blocks
        self._choices = (blocks, _TURNS, rows - _SIDE + 1, cols - _SIDE + 1)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (rows * cols + blocks * (_SIDE**2 + 1) + 1,)),
            action_space=Discrete(blocks * _TURNS * (rows - _SIDE + 1) * (cols - _SIDE + 1)),
            metrics={"coverage": "last", "placed": "last", "success": "last"},
            episode_limit=blocks,
        )
        super().__init__(library, spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        puzzle, blocks = state.library, self.library.num_blocks
        parts = (
            (puzzle.grid != 0).ravel(),
            jnp.column_stack(((puzzle.blocks != 0).reshape(blocks, -1), puzzle.placed_blocks)).ravel(),
            1.0 - puzzle.step_count[None] / blocks,
        )
        return jnp.concatenate(parts, dtype=jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask.ravel()

    def library_action(self, action: jax.Array) -> jax.Array:
        return jnp.stack(jnp.unravel_index(action, self._choices))

    def metrics(self, state: State) -> dict[str, jax.Array]:
        filled = state.library.grid != 0
        return {
            "coverage": jnp.mean(filled, dtype=jnp.float32),
            "placed": jnp.mean(state.library.placed_blocks, dtype=jnp.float32),
            "success": jnp.all(filled).astype(jnp.float32),
        }

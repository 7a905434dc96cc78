"""Sliding tile puzzle: move the empty cell about until the tiles are in order."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import SlidingTilePuzzle as Library
from jumanji.environments.logic.sliding_tile_puzzle.generator import RandomWalkGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class SlidingTilePuzzle(JumanjiEnv):
    """`SlidingTilePuzzle-v0`, single-agent. Actions move the empty cell up, right, down, left; off the board is illegal.

    The observation is [grid_size, grid_size, grid_size^2] of 0 and 1: for each cell the number of its tile, 0 for the
    empty one. The reward is the change in the number of cells that are right. It truly ends when all are. Metrics:
    `correct`, the share of the cells that are right, and `success`.

    Args:
        time_limit: steps until an episode is cut.
        grid_size: rows and columns, at least 2.
        num_random_moves: how far the start is shuffled from the solution.

    Raises ValueError for sizes out of range.
    """

    def __init__(self, time_limit: int = 500, grid_size: int = 5, num_random_moves: int = 200):
        limit = check_time_limit("SlidingTilePuzzle", time_limit)
        check_whole("SlidingTilePuzzle", 2, grid_size=grid_size)
        check_whole("SlidingTilePuzzle", 1, num_random_moves=num_random_moves)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (grid_size, grid_size, grid_size**2)),
            action_space=Discrete(4),
            metrics={"correct": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(RandomWalkGenerator(grid_size, num_random_moves), time_limit=limit + 1), spec)

    def emitted(self, observation: Any) -> jax.Array:
        return observation.action_mask

    def view(self, state: State) -> jax.Array:
        puzzle = state.library.puzzle
        return jax.nn.one_hot(puzzle, puzzle.size, dtype=jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.emitted

    def metrics(self, state: State) -> dict[str, jax.Array]:
        correct = jnp.mean(state.library.puzzle == self.library.solved_puzzle, dtype=jnp.float32)
        return {"correct": correct, "success": state.ended.astype(jnp.float32)}

"""2048: slide all tiles one way; equal ones that meet merge, and a new tile appears."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Game2048 as Library

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class Game2048(JumanjiEnv):
    """`Game2048-v1`, single-agent. Actions: up, right, down, left; one that moves nothing is illegal and changes nothing.

    The observation is [board_size, board_size, board_size^2 + 2] of 0 and 1: for each cell its exponent, 0 for an empty
    cell, k for the tile 2^k. The reward is the sum of the new tiles that the merges of a step make. It truly ends when no
    action is legal. Metrics: `score`, the rewards so far, and `highest_tile`.

    Args:
        time_limit: steps until an episode is cut; the library has none. The tile 2048 takes about 1000 steps.
        board_size: rows and columns, at least 2.

    Raises ValueError for a smaller board.
    """

    def __init__(self, time_limit: int = 4000, board_size: int = 4):
        limit = check_time_limit("Game2048", time_limit)
        check_whole("Game2048", 2, board_size=board_size)
        self._exponents = board_size**2 + 2  # the highest tile that fits: 4, doubled once for every other cell
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (board_size, board_size, self._exponents)),
            action_space=Discrete(4),
            metrics={"score": "last", "highest_tile": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(board_size), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        return jax.nn.one_hot(state.library.board, self._exponents, dtype=jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        highest = jnp.left_shift(jnp.int32(1), jnp.max(state.library.board))
        return {"score": state.library.score.astype(jnp.float32), "highest_tile": highest.astype(jnp.float32)}

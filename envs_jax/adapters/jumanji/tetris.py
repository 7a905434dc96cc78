"""Tetris: choose rotation and column of each tetromino as it comes; full lines vanish."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Tetris as Library
from jumanji.environments.packing.tetris.constants import NUM_ROTATIONS, TETROMINOES_LIST

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_KINDS = len(TETROMINOES_LIST)


class Tetris(JumanjiEnv):
    """`Tetris-v0`, single-agent. Action: quarter turns * num_cols + the tetromino's leftmost column, one number since which
    columns are legal depends on the turns.

    The observation is [num_rows, num_cols, 8] of 0 and 1: filled cells, then a plane for each kind of tetromino, all 1 for
    the one to place. The reward is a convex function of the lines that a step clears. It truly ends at an illegal action,
    which earns nothing, and when no action is legal. Metric: `score`, the rewards so far.

    Args:
        time_limit: steps until an episode is cut.
        num_rows, num_cols: the board, at least 4 x 4.

    Raises ValueError for a smaller board.
    """

    def __init__(self, time_limit: int = 400, num_rows: int = 10, num_cols: int = 10):
        limit = check_time_limit("Tetris", time_limit)
        check_whole("Tetris", 4, num_rows=num_rows, num_cols=num_cols)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (num_rows, num_cols, 1 + _KINDS)),
            action_space=Discrete(NUM_ROTATIONS * num_cols),
            metrics={"score": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(num_rows, num_cols, time_limit=limit + 1), spec)

    def emitted(self, observation: Any) -> jax.Array:
        return observation.grid

    def view(self, state: State) -> jax.Array:
        filled = state.emitted[..., None].astype(jnp.float32)
        kind = jax.nn.one_hot(state.library.tetromino_index, _KINDS, dtype=jnp.float32)
        return jnp.concatenate([filled, jnp.broadcast_to(kind, (*filled.shape[:2], _KINDS))], axis=-1)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask.ravel()

    def library_action(self, action: jax.Array) -> jax.Array:
        return jnp.stack(jnp.divmod(action, self.library.num_cols))

    def metrics(self, state: State) -> dict[str, jax.Array]:
        return {"score": state.library.score.astype(jnp.float32)}

"""Snake: eat the fruit, grow, and run into neither the wall nor yourself."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Snake as Library

from envs_jax.adapters.common import check_time_limit
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class Snake(JumanjiEnv):
    """`Snake-v1`, single-agent. Actions: up, right, down, left; an illegal one is deadly. A full board is a true end too.

    The observation is [num_rows, num_cols, 5] in 0 ... 1: body, head, tail, fruit, and the body's order from tail to head
    (1). The reward is 1 for a fruit. A snake that is shut in has no legal action: its mask is all False, and any action
    ends the episode. Metric: `score`, fruits eaten.

    Args:
        time_limit: steps until an episode is cut.
        num_rows, num_cols: the board, at least two cells.

    Raises ValueError when these do not fit together.
    """

    def __init__(self, time_limit: int = 4000, num_rows: int = 12, num_cols: int = 12):
        limit = check_time_limit("Snake", time_limit)
        if min(num_rows, num_cols) < 1 or num_rows * num_cols < 2:
            raise ValueError(f"Snake: num_rows and num_cols must make at least two cells, got {num_rows} and {num_cols}")
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (num_rows, num_cols, 5)),
            action_space=Discrete(4),
            metrics={"score": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(num_rows, num_cols, time_limit=limit + 1), spec)

    def emitted(self, observation: Any) -> jax.Array:
        return observation.grid

    def view(self, state: State) -> jax.Array:
        return state.emitted

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        return {"score": (state.library.length - 1).astype(jnp.float32)}

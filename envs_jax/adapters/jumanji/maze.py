"""Maze: find the way from a random cell to another, in a maze that is new in every episode."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Maze as Library
from jumanji.environments.routing.maze.generator import RandomGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete


class Maze(JumanjiEnv):
    """`Maze-v0`, single-agent. Actions: up, right, down, left; one into a wall is illegal and changes nothing.

    The observation is [num_rows, num_cols, 3] of 0 and 1: walls, agent, target. The reward is 1 for reaching the target,
    which is the true end. Metric: `success`.

    Args:
        time_limit: steps until an episode is cut; None: as many as there are cells.
        num_rows, num_cols: the maze, at least 2 x 2.

    Raises ValueError for a smaller maze.
    """

    def __init__(self, time_limit: int | None = None, num_rows: int = 10, num_cols: int = 10):
        check_whole("Maze", 2, num_rows=num_rows, num_cols=num_cols)
        limit = check_time_limit("Maze", num_rows * num_cols if time_limit is None else time_limit)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (num_rows, num_cols, 3)),
            action_space=Discrete(4),
            metrics={"success": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(RandomGenerator(num_rows, num_cols), time_limit=limit + 1), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        maze = state.library
        view = jnp.zeros((*maze.walls.shape, 3), jnp.float32).at[..., 0].set(maze.walls.astype(jnp.float32))
        view = view.at[maze.agent_position.row, maze.agent_position.col, 1].set(1.0)
        return view.at[maze.target_position.row, maze.target_position.col, 2].set(1.0)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        return {"success": (state.library.agent_position == state.library.target_position).astype(jnp.float32)}

"""Rubik's cube: turn scrambled faces until each has one colour."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import RubiksCube as Library
from jumanji.environments.logic.rubiks_cube.generator import ScramblingGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_FACES, _TURNS = 6, 3


class RubiksCube(JumanjiEnv):
    """`RubiksCube-v0`, and `RubiksCube-partly-scrambled-v0` with 7 scrambles and 20 steps; single-agent.

    Action: (face * (cube_size // 2) + depth) * 3 + turn, with the faces up, front, right, back, left, down, the depth of
    the layer, and the turns clockwise, anti-clockwise, half. The observation is [36 cube_size^2] of 0 and 1: for face, row
    and column the colour. The reward is 1 for solving the cube, which is the true end. Metric: `success`.

    Args:
        time_limit: steps until an episode is cut.
        cube_size: stickers along an edge, at least 2.
        num_scrambles: random turns of a solved cube at the start. They may cancel out: a start can be solved already.

    Raises ValueError for sizes out of range.
    """

    def __init__(self, time_limit: int = 200, cube_size: int = 3, num_scrambles: int = 100):
        limit = check_time_limit("RubiksCube", time_limit)
        check_whole("RubiksCube", 2, cube_size=cube_size)
        check_whole("RubiksCube", 1, num_scrambles=num_scrambles)
        self._depths = cube_size // 2
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (_FACES * cube_size**2 * _FACES,)),
            action_space=Discrete(_FACES * self._depths * _TURNS),
            metrics={"success": "last"},
            episode_limit=limit,
        )
        super().__init__(Library(ScramblingGenerator(cube_size, num_scrambles), time_limit=limit + 1), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        return jax.nn.one_hot(state.library.cube, _FACES, dtype=jnp.float32).ravel()

    def library_action(self, action: jax.Array) -> jax.Array:
        return jnp.stack(jnp.unravel_index(action, (_FACES, self._depths, _TURNS)))

    def metrics(self, state: State) -> dict[str, jax.Array]:
        return {"success": state.ended.astype(jnp.float32)}

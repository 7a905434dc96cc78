"""PacMan: eat all pellets of a maze and keep away from four ghosts, which a power pellet makes edible for a while."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import PacMan as Library

from envs_jax.adapters.common import check_time_limit
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_GHOSTS, _POWER_PELLETS = 4, 4
_SCARED = 30  # steps after a power pellet
_PLANES = 6 + _GHOSTS


class PacMan(JumanjiEnv):
    """`PacMan-v1`, single-agent. Actions: up, left, down, right, and stay, which is never legal (jumanji's own description
    swaps left and right). One into a wall is illegal and changes nothing.

    The observation is [31, 28, 10] in 0 ... 1: corridors, pellets, power pellets, player, one plane for each ghost, then
    two planes of one number: how long the ghosts stay scared, in 30 steps, and the score as a share of the highest
    possible. The reward is 10 for a pellet, 50 for a power pellet, 200 for the first catch of each ghost. It truly ends
    when a ghost catches the player or no pellet is left. Metrics: `score`, the rewards so far, `eaten`, the share of the
    pellets, and `success`, whether all.

    Args:
        time_limit: steps until an episode is cut.
    """

    def __init__(self, time_limit: int = 1000):
        limit = check_time_limit("PacMan", time_limit)
        library = Library(time_limit=limit + 1)
        self._pellets = len(library.pellet_spaces)
        self._highest_score = 10 * self._pellets + 50 * _POWER_PELLETS + 200 * _GHOSTS
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (*library.generator.numpy_maze.shape, _PLANES)),
            action_space=Discrete(5),
            metrics={"score": "last", "eaten": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(library, spec)

    def emitted(self, observation: Any) -> jax.Array:
        return observation.action_mask

    def view(self, state: State) -> jax.Array:
        game = state.library
        size = game.grid.shape
        numbers = (jnp.clip(game.frightened_state_time, 0, _SCARED) / _SCARED, game.score / self._highest_score)
        player = jnp.zeros(size, jnp.float32).at[game.player_locations.x, game.player_locations.y].set(1.0)
        planes = (
            game.grid.astype(jnp.float32),
            self._mark(game.pellet_locations),
            self._mark(game.power_up_locations),
            player,
            *(self._mark(place[None]) for place in game.ghost_locations),
            *(jnp.full(size, number, jnp.float32) for number in numbers),
        )
        return jnp.stack(planes, axis=-1)

    def _mark(self, places: jax.Array) -> jax.Array:
        """float32 [rows, columns]: 1 at `places` [n, 2], each a column and a row; what is eaten lies at (0, 0), a wall."""
        size = self.spec.observation_space.shape[:2]
        return jnp.zeros(size, jnp.float32).at[places[:, 1], places[:, 0]].set(1.0).at[0, 0].set(0.0)

    def action_mask(self, state: State) -> jax.Array:
        return state.emitted

    def metrics(self, state: State) -> dict[str, jax.Array]:
        left = state.library.pellets
        return {
            "score": state.library.score.astype(jnp.float32),
            "eaten": 1.0 - left.astype(jnp.float32) / self._pellets,
            "success": (left == 0).astype(jnp.float32),
        }

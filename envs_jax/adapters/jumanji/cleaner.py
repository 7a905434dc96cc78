"""Cleaner: several agents walk a maze together until every tile has been visited."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Cleaner as Library
from jumanji.environments.routing.cleaner.constants import CLEAN, DIRTY, WALL
from jumanji.environments.routing.cleaner.generator import RandomGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.pictures import GROUND, TILE, palette, pieces, tiles
from envs_jax.spaces import Box, Discrete

_LOOKS = ((112, 84, 58), (206, 210, 216), GROUND)  # in a picture, of DIRTY, CLEAN and WALL


class Cleaner(JumanjiEnv):
    """`Cleaner-v0`. Actions: up, right, down, left. It truly ends when all is clean, and at anybody's step into a wall.

    jumanji emits one picture for all. Here each agent has its own view, [grid_size, grid_size, 6] in 0 ... 1: dirty, clean,
    wall, its own place, the places of the others, and everywhere its number from 0 (the first agent) to 1 (the last), since
    all start in the same corner and a shared network would walk them as one for ever. The reward is the team's: 1 for each
    tile cleaned, less `penalty_per_timestep`. Metrics: `cleaned`, the share of the floor, and `success`, whether it is all.

    Args:
        time_limit: steps until an episode is cut; None: grid_size^2.
        grid_size: rows and columns, at least 2. Mazes are square, since jumanji compares columns with the number of rows.
        num_agents: how many clean.
        penalty_per_timestep: taken from the team at each step.

    Raises ValueError when these are out of range.
    """

    def __init__(
        self,
        time_limit: int | None = None,
        grid_size: int = 10,
        num_agents: int = 3,
        penalty_per_timestep: float = 0.5,
    ):
        check_whole("Cleaner", 2, grid_size=grid_size)
        check_whole("Cleaner", 1, num_agents=num_agents)
        limit = check_time_limit("Cleaner", grid_size**2 if time_limit is None else time_limit)
        library = Library(
            RandomGenerator(grid_size, grid_size, num_agents),
            time_limit=limit + 1,
            penalty_per_timestep=penalty_per_timestep,
        )
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (grid_size, grid_size, 6)),
            action_space=Discrete(4),
            num_agents=num_agents,
            world_space=Box(0.0, 1.0, (2 * grid_size**2 + 2 * num_agents,)),
            reward="team",
            metrics={"cleaned": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(library, spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        grid, places = state.library.grid, state.library.agents_locations
        agents, side = len(places), len(grid)
        tiles = jnp.stack([grid == kind for kind in (DIRTY, CLEAN, WALL)], axis=-1)
        at = jnp.zeros((agents, side, side), bool).at[jnp.arange(agents), places[:, 0], places[:, 1]].set(True)
        standing = jnp.zeros((side, side), jnp.int32).at[places[:, 0], places[:, 1]].add(1)
        others = standing[None] > at
        number = jnp.broadcast_to(jnp.linspace(0.0, 1.0, agents)[:, None, None], at.shape)
        own = jnp.stack([at, others, number], axis=-1)
        return jnp.concatenate([jnp.broadcast_to(tiles[None], own.shape), own], axis=-1).astype(jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        grid = state.library.grid
        cleaned = jnp.sum(grid == CLEAN) / jnp.sum(grid != WALL)
        return {"cleaned": cleaned.astype(jnp.float32), "success": jnp.all(grid != DIRTY).astype(jnp.float32)}

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [2 grid_size^2 + 2 A] in 0 ... 1: dirty tiles, walls, and the place of every agent."""
        grid, places = state.library.grid, state.library.agents_locations
        parts = (grid == DIRTY, grid == WALL, places / (len(grid) - 1))
        return jnp.concatenate([part.astype(jnp.float32).ravel() for part in parts])

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [24 grid_size, 24 grid_size, 3]: walls dark, dirty tiles brown, clean ones light, and agents as
        discs in colours of their own, later ones smaller and on top."""
        picture, places = tiles(state.library.grid, _LOOKS, TILE), state.library.agents_locations
        for number, colour in enumerate(palette(len(places))):
            picture = pieces(picture, TILE, places[number : number + 1], 0.42 - 0.3 * number / len(places), [colour])
        return picture

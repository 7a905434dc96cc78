"""Connector: every agent draws a path from its start to its target, and no two paths may cross (routing of wires)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Connector as Library
from jumanji.environments.routing.connector.constants import EMPTY, PATH, POSITION, TARGET
from jumanji.environments.routing.connector.generator import RandomWalkGenerator

from envs_jax.adapters.common import check_time_limit
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.pictures import GROUND, board, palette, spots
from envs_jax.spaces import Box, Discrete

_KINDS = (POSITION, TARGET, PATH)
_RADII = (0.0, 0.2, 0.44, 0.4)  # in a picture, of EMPTY, PATH, POSITION and TARGET


class Connector(JumanjiEnv):
    """`Connector-v3`. Actions: stay, up, right, down, left. It truly ends when every agent is connected or walled in.

    jumanji emits one picture for all. Here each agent has its own view, [grid_size, grid_size, 6] of 0 and 1: its own head,
    target and path, then the heads, targets and paths of the others. Rewards are individual: 1 for connecting, and -0.03 a
    step until then. A connected agent earns nothing more, so it is not `alive` and its discount is 0. One that is walled
    in can only stay, yet pays on until the episode ends; unlike jumanji, which sets its discount to 0 and thereby makes
    getting stuck look free, it keeps its discount. Metrics: `ratio_connections`, and `success` when it is 1.

    Args:
        time_limit: steps until an episode is cut.
        grid_size: rows and columns.
        num_agents: how many paths, at most half as many as there are cells.

    Raises ValueError when these do not fit together.
    """

    def __init__(self, time_limit: int = 50, grid_size: int = 10, num_agents: int = 10):
        limit = check_time_limit("Connector", time_limit)
        if num_agents < 1 or 2 * num_agents > grid_size**2:
            raise ValueError(f"Connector: num_agents must be 1 ... grid_size^2 / 2, got {num_agents}, grid_size {grid_size}")
        library = Library(RandomWalkGenerator(grid_size, num_agents), time_limit=limit + 1)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (grid_size, grid_size, 2 * len(_KINDS))),
            action_space=Discrete(5),
            num_agents=num_agents,
            world_space=Box(0.0, 1.0, (grid_size**2 + 5 * num_agents,)),
            metrics={"ratio_connections": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(library, spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        grid = state.library.grid
        kind = (grid - 1) % len(_KINDS) + 1
        kinds = jnp.stack([(kind == code) & (grid != EMPTY) for code in _KINDS], axis=-1)
        owner = (grid - 1) // len(_KINDS)
        own = owner[None, :, :, None] == state.library.agents.id[:, None, None, None]
        return jnp.concatenate([kinds[None] & own, kinds[None] & ~own], axis=-1).astype(jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        connected = state.library.agents.connected
        return {
            "ratio_connections": jnp.mean(connected, dtype=jnp.float32),
            "success": jnp.all(connected).astype(jnp.float32),
        }

    def alive(self, state: State) -> jax.Array:
        return ~state.library.agents.connected

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [grid_size^2 + 5 A] in 0 ... 1: which cells are built on, every head and target, who is connected."""
        grid, agents = state.library.grid, state.library.agents
        built = (grid != EMPTY) & ((grid - TARGET) % len(_KINDS) != 0)
        side = max(self.library.grid_size - 1, 1)
        parts = (built, agents.position / side, agents.target / side, agents.connected)
        return jnp.concatenate([part.astype(jnp.float32).ravel() for part in parts])

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [24 grid_size, 24 grid_size, 3]: paths as small discs, heads as large ones, targets as rings,
        in a colour for each agent."""
        grid, side = state.library.grid, self.library.grid_size
        owner = jnp.where(grid == EMPTY, 0, (grid - 1) // len(_KINDS))
        colours = jnp.asarray(palette(self.spec.agents), jnp.uint8)[owner]
        kind = jnp.where(grid == EMPTY, EMPTY, (grid - 1) % len(_KINDS) + 1)
        picture = spots(board(side, side), jnp.asarray(_RADII)[kind], colours)
        ground = jnp.broadcast_to(jnp.asarray(GROUND, jnp.uint8), colours.shape)
        return spots(picture, jnp.where(kind == TARGET, 0.24, 0.0), ground)

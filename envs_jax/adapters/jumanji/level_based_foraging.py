"""Level-Based Foraging: agents with levels gather food, which takes agents of that level, together, to lift.

Papoudakis et al. 2021, "Benchmarking Multi-Agent Deep Reinforcement Learning Algorithms in Cooperative Tasks",
arXiv:2006.07869. The published task 2s-8x8-2p-2f-coop is `make("LevelBasedForaging-v0", fov=2)`: sight 2, a grid of
8 x 8, two players, two foods, force_coop; without `fov` it is 8x8-2p-2f-coop, the default here as in jumanji.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import LevelBasedForaging as Library
from jumanji.environments.routing.lbf.generator import RandomGenerator

from envs_jax.adapters.common import check_time_limit
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.pictures import TILE, board, palette, pieces
from envs_jax.spaces import Box, Discrete

FOOD, LOADING = (228, 178, 66), (250, 250, 250)


class LevelBasedForaging(JumanjiEnv):
    """`LevelBasedForaging-v0`. Actions: stay, up, down, left, right, load. It truly ends when all food is eaten.

    An agent sees [3 (num_food + num_agents)]: row, column and level of each food, of itself, of the others, relative to its
    field of view, (-1, -1, 0) for what is out of it. Rewards are individual; normalised, they sum to 1 over agents and
    episode when all food is eaten. Metrics: `eaten`, the share of the food, and `success`, whether it was all.

    Args:
        time_limit: steps until an episode is cut.
        grid_size: rows and columns, at least 5.
        fov: how many cells an agent sees in each direction, 1 ... grid_size; None: the whole grid.
        num_agents, num_food: how many there are; the food needs (grid_size - 2)^2 - num_agents > 5 num_food.
        max_agent_level: levels are drawn from 1 ... max_agent_level, at least 2.
        force_coop: each food has the summed level of the (at most three) weakest agents; else it is drawn from 1 up to it.
        normalize_reward: divides by the summed level of all food and of those who lift.
        penalty: taken from everybody for an attempt to lift that is too weak.

    Raises ValueError when these do not fit together.
    """

    def __init__(
        self,
        time_limit: int = 100,
        grid_size: int = 8,
        fov: int | None = None,
        num_agents: int = 2,
        num_food: int = 2,
        max_agent_level: int = 2,
        force_coop: bool = True,
        normalize_reward: bool = True,
        penalty: float = 0.0,
    ):
        limit = check_time_limit("LevelBasedForaging", time_limit)
        settings = {
            "grid_size": grid_size,
            "num_agents": num_agents,
            "num_food": num_food,
            "fov": grid_size if fov is None else fov,
            "max_agent_level": max_agent_level,
            "force_coop": force_coop,
        }
        try:
            generator = RandomGenerator(**settings)
        except AssertionError as error:
            raise ValueError(f"LevelBasedForaging with {settings}: {error}") from error
        library = Library(generator, time_limit=limit + 1, normalize_reward=normalize_reward, penalty=penalty)
        seen = library.observation_spec.agents_view
        spec = EnvSpec(
            observation_space=Box(seen.minimum, seen.maximum, seen.shape[1:]),
            action_space=Discrete(6),
            num_agents=num_agents,
            world_space=Box(0.0, 1.0, (3 * num_agents + 4 * num_food,)),
            metrics={"eaten": "last", "success": "last"},
            episode_limit=limit,
        )
        super().__init__(library, spec)
        self._highest_agent, self._highest_food = max_agent_level, min(3, num_agents) * max_agent_level

    def emitted(self, observation: Any) -> tuple[jax.Array, jax.Array]:
        return observation.agents_view, observation.action_mask

    def view(self, state: State) -> jax.Array:
        return state.emitted[0].astype(jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.emitted[1]

    def metrics(self, state: State) -> dict[str, jax.Array]:
        eaten = state.library.food_items.eaten
        return {"eaten": jnp.mean(eaten, dtype=jnp.float32), "success": jnp.all(eaten).astype(jnp.float32)}

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [3 A + 4 num_food] in 0 ... 1: place and level of every agent; place, level, eaten of every food."""
        agents, food = state.library.agents, state.library.food_items
        side = self.library.grid_size - 1
        parts = (
            agents.position / side,
            agents.level / self._highest_agent,
            food.position / side,
            food.level / self._highest_food,
            food.eaten,
        )
        return jnp.concatenate([part.astype(jnp.float32).ravel() for part in parts])

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [24 grid_size, 24 grid_size, 3]: food golden, agents in colours of their own with a white spot
        when they load; the larger a disc, the higher its level."""
        agents, food = state.library.agents, state.library.food_items
        side, count = self.library.grid_size, len(agents.level)
        most = max(self._highest_agent, self._highest_food)
        size = jnp.where(food.eaten, 0.0, 0.15 + 0.3 * food.level / most)
        picture = pieces(board(side, side), TILE, food.position, size, [FOOD] * len(size))
        picture = pieces(picture, TILE, agents.position, 0.15 + 0.3 * agents.level / most, palette(count))
        return pieces(picture, TILE, agents.position, jnp.where(agents.loading, 0.1, 0.0), [LOADING] * count)

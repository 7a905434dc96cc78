"""Robot warehouse: robots fetch the requested shelves to the goal, and put them back.

Papoudakis et al. 2021, "Benchmarking Multi-Agent Deep Reinforcement Learning Algorithms in Cooperative Tasks",
arXiv:2006.07869. The published task tiny-4ag is `make("RobotWarehouse-v0", shelf_rows=1, request_queue_size=4)`, tiny-2ag
the same with two agents and a queue of 2, small-4ag `request_queue_size=4`; there, agents that bump stay where they are.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jumanji.environments import RobotWarehouse as Library
from jumanji.environments.routing.robot_warehouse.generator import RandomGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_DIRECTIONS = 4


class RobotWarehouse(JumanjiEnv):
    """`RobotWarehouse-v0`. Actions: stay, forward, turn left, turn right, load or unload. A collision is a true end.

    An agent sees [8 + 7 (2 sensor_range + 1)^2 - 5]: its row, column, load, direction (one-hot) and whether shelves may not
    stand here; then whether there is another agent, and its direction, in each cell around it; then whether there is a
    shelf, and whether it is requested, in each cell around it and its own. The reward is the team's: 1 for a requested
    shelf at a goal. Metrics: `deliveries`, and `collision`, whether that ended the episode.

    Args:
        time_limit: steps until an episode is cut.
        column_height: rows of a block of shelves, which is two columns wide.
        shelf_rows, shelf_columns: blocks; the columns are odd in number, and the one above the goals lacks its last block.
        num_agents: how many robots.
        sensor_range: how many cells a robot sees in each direction.
        request_queue_size: how many shelves are requested at any time, fewer than there are.

    Raises ValueError when these do not fit together.
    """

    def __init__(
        self,
        time_limit: int = 500,
        column_height: int = 8,
        shelf_rows: int = 2,
        shelf_columns: int = 3,
        num_agents: int = 4,
        sensor_range: int = 1,
        request_queue_size: int = 8,
    ):
        limit = check_time_limit("RobotWarehouse", time_limit)
        settings = {
            "shelf_rows": shelf_rows,
            "shelf_columns": shelf_columns,
            "column_height": column_height,
            "num_agents": num_agents,
            "sensor_range": sensor_range,
            "request_queue_size": request_queue_size,
        }
        check_whole("RobotWarehouse", 1, **settings)
        if shelf_columns % 2 == 0:
            raise ValueError(f"RobotWarehouse: shelf_columns must be odd, got {shelf_columns}")
        generator = RandomGenerator(**settings)
        rows, columns = map(int, np.asarray(generator.grid_size))
        shelves = int(np.size(generator.shelf_ids))
        if num_agents > rows * columns or request_queue_size >= shelves:
            raise ValueError(
                f"RobotWarehouse: {rows} x {columns} cells and {shelves} shelves are too few for num_agents {num_agents} and "
                f"request_queue_size {request_queue_size}; shelves must outnumber requests"
            )
        library = Library(generator, time_limit=limit + 1)
        features = int(library.num_obs_features)
        spec = EnvSpec(
            observation_space=Box(0.0, (rows - 1, columns - 1, *[1] * (features - 2)), (features,)),
            action_space=Discrete(5),
            num_agents=num_agents,
            world_space=Box(0.0, 1.0, ((3 + _DIRECTIONS) * num_agents + 3 * shelves,)),
            reward="team",
            metrics={"deliveries": "last", "collision": "last"},
            episode_limit=limit,
        )
        super().__init__(library, spec)
        self._extent = np.array([rows - 1, columns - 1], np.float32)

    def emitted(self, observation: Any) -> tuple[jax.Array, jax.Array]:
        """What the agents see, and how many shelves have been delivered, to be counted on by `advance`."""
        return observation.agents_view, jnp.float32(0)

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        after, reward = super().advance(key, state, action, params)
        return after.replace(emitted=(after.emitted[0], state.emitted[1] + reward[0])), reward

    def view(self, state: State) -> jax.Array:
        return state.emitted[0].astype(jnp.float32)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        return {"deliveries": state.emitted[1], "collision": state.ended.astype(jnp.float32)}

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [7 A + 3 shelves] in 0 ... 1: place, load and direction of every agent; place and request of every shelf."""
        agents, shelves = state.library.agents, state.library.shelves
        parts = (
            jnp.stack(agents.position, axis=-1) / self._extent[None],
            agents.is_carrying,
            jax.nn.one_hot(agents.direction, _DIRECTIONS),
            jnp.stack(shelves.position, axis=-1) / self._extent[None],
            shelves.is_requested,
        )
        return jnp.concatenate([part.astype(jnp.float32).ravel() for part in parts])

"""CVRP: a vehicle of limited capacity serves all customers and refills at the depot (capacitated vehicle routing).

Toth and Vigo 2014, "Vehicle Routing: Problems, Methods, and Applications".
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import CVRP as Library
from jumanji.environments.routing.cvrp.generator import UniformGenerator
from jumanji.environments.routing.cvrp.reward import DenseReward, SparseReward

from envs_jax.adapters.common import check_whole, choose
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.adapters.jumanji.tours import last_visits, tour_length
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

REWARDS = {"dense": DenseReward, "sparse": SparseReward}
COLUMNS = 6


class CVRP(JumanjiEnv):
    """`CVRP-v1`, single-agent. Actions: the node to visit next; 0 is the depot, where the vehicle starts and refills.

    Nodes lie uniformly in the unit square. The observation is [6 (num_nodes + 1) + 1] in 0 ... 1: six numbers a node, the
    depot first (x, y, its demand as a share of the capacity, whether it was visited, is where the vehicle is, and when it was
    last visited, 1: as the last possible stop, 0: never), then the share of the capacity that is left. Legal are customers
    not yet visited whose demand is left, and the depot from anywhere else. It truly ends at the depot after all customers,
    after at most 2 num_nodes steps, which is the time limit, or at an illegal action, which pays -2 num_nodes sqrt(2).
    Metrics: `tour_length`, the way travelled so far, and `success`, whether all were served and the vehicle is back.

    Args:
        num_nodes: how many customers.
        max_capacity: the vehicle's capacity, at least max_demand.
        max_demand: demands are drawn from 1 ... max_demand - 1 (jumanji's generator excludes the bound); at least 2.
        reward: `dense` pays minus the length of each leg; `sparse` all of it at the end.

    Raises ValueError when these do not fit together.
    """

    def __init__(self, num_nodes: int = 20, max_capacity: int = 30, max_demand: int = 10, reward: str = "dense"):
        check_whole("CVRP", 1, num_nodes=num_nodes)
        check_whole("CVRP", 2, max_demand=max_demand)
        check_whole("CVRP", max_demand, max_capacity=max_capacity)
        reward_fn = choose("CVRP", "reward", reward, REWARDS)()
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (COLUMNS * (num_nodes + 1) + 1,)),
            action_space=Discrete(num_nodes + 1),
            metrics={"tour_length": "last", "success": "last"},
            episode_limit=2 * num_nodes,
        )
        super().__init__(Library(UniformGenerator(num_nodes, max_capacity, max_demand), reward_fn), spec)

    def emitted(self, observation: Any) -> jax.Array:
        return observation.action_mask

    def view(self, state: State) -> jax.Array:
        tour, full = state.library, self.library.max_capacity
        nodes = jnp.arange(self.library.num_nodes + 1)
        columns = (
            tour.coordinates,
            tour.demands / full,
            tour.visited_mask,
            nodes == tour.position,
            last_visits(tour.trajectory, tour.num_total_visits, len(nodes)),
        )
        return jnp.append(jnp.column_stack(columns).ravel(), tour.capacity / full)

    def action_mask(self, state: State) -> jax.Array:
        return state.emitted

    def metrics(self, state: State) -> dict[str, jax.Array]:
        tour = state.library
        length = tour_length(tour.coordinates, tour.trajectory, tour.num_total_visits, closed=False)
        return {"tour_length": length, "success": jnp.all(tour.visited_mask).astype(jnp.float32)}

"""MultiCVRP: vehicles with limited capacity serve customers within soft time windows.

Zhang et al. 2020, "Multi-Vehicle Routing Problems with Soft Time Windows: A Multi-Agent Reinforcement Learning Approach",
arXiv:2002.05513.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jumanji.environments import MultiCVRP as Library
from jumanji.environments.routing.multi_cvrp.generator import UniformRandomGenerator
from jumanji.environments.routing.multi_cvrp.utils import DEPOT_IDX

from envs_jax.adapters.common import check_time_limit
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_VEHICLES = {6: (2, 3), 20: (2, 3), 50: (2, 3, 4, 5), 100: (2, 3, 4, 5), 150: (5,)}  # jumanji's settings, by customers
_VEHICLE_FEATURES, _NODE_FEATURES = 4, 7


class MultiCVRP(JumanjiEnv):
    """`MultiCVRP-v0`. Actions: the node to go to, of which 0 is the depot, where a vehicle is emptied.

    It truly ends when all customers are served and all vehicles are back, and after 2 num_customers steps, since jumanji
    then pays what it would cost to serve the rest by single trips. jumanji emits one picture for all. Here each agent has
    its own view, [4 A + 7 (num_customers + 1) + 1]: for itself and then for each of the others, in turn from itself, place
    (2), time on the road, free capacity; for each node its place (2), demand, start and end of its time window, and the
    costs of coming early and late; the share of steps used. Places are divided by the side of the map, loads by the
    capacity, times by the latest end of a window. The reward is the team's: less the distance driven and the penalties for
    time. Metrics: `served`, the share of customers without open demand, `distance` driven by all, and `success`, whether
    all are served and all vehicles back.

    Args:
        time_limit: steps until an episode is cut; None: that never happens.
        num_customers: 6, 20, 50, 100 or 150, with the settings of the paper (but for 6).
        num_agents: how many vehicles: 2 or 3 for 6 and 20 customers, 2 ... 5 for 50 and 100, 5 for 150.

    Raises ValueError when these do not fit together.
    """

    def __init__(self, time_limit: int | None = None, num_customers: int = 20, num_agents: int = 2):
        if num_customers not in _VEHICLES:
            raise ValueError(f"MultiCVRP: num_customers must be one of {', '.join(map(str, _VEHICLES))}, got {num_customers}")
        if num_agents not in _VEHICLES[num_customers]:
            known = " or ".join(map(str, _VEHICLES[num_customers]))
            raise ValueError(f"MultiCVRP: num_agents must be {known} for num_customers {num_customers}, got {num_agents}")
        own_end = 2 * num_customers
        limit = check_time_limit("MultiCVRP", own_end if time_limit is None else time_limit)
        library = Library(UniformRandomGenerator(num_customers, num_agents))
        longest = float(library._max_local_time) / library._max_end_window
        nodes = num_customers + 1
        highs = [1.0, 1.0, longest, 1.0] * num_agents + [1.0] * (_NODE_FEATURES * nodes + 1)
        space = Box(0.0, highs, (_VEHICLE_FEATURES * num_agents + _NODE_FEATURES * nodes + 1,))
        spec = EnvSpec(
            observation_space=space,
            action_space=Discrete(nodes),
            num_agents=num_agents,
            world_space=space,
            reward="team",
            metrics={"served": "last", "distance": "last", "success": "last"},
            episode_limit=min(limit, own_end),
        )
        super().__init__(library, spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        vehicles, rest = self._features(state)
        agents = np.arange(len(vehicles))
        turn = (agents[:, None] + agents[None]) % len(agents)  # [A, A]: oneself, then the others
        own = vehicles[turn].reshape(len(agents), -1)
        return jnp.concatenate([own, jnp.broadcast_to(rest[None], (len(agents), len(rest)))], axis=-1)

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        served = state.library.nodes.demands == 0
        back = state.library.vehicles.positions == DEPOT_IDX
        return {
            "served": jnp.mean(served[1:], dtype=jnp.float32),  # node 0 is the depot
            "distance": jnp.sum(state.library.vehicles.distances),
            "success": (jnp.all(served) & jnp.all(back) & (state.steps > 0)).astype(jnp.float32),
        }

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [4 A + 7 (num_customers + 1) + 1]: what the first agent sees, which is all there is."""
        vehicles, rest = self._features(state)
        return jnp.concatenate([vehicles.ravel(), rest])

    def _features(self, state: State) -> tuple[jax.Array, jax.Array]:
        """float32 [A, 4] of the vehicles; [7 (num_customers + 1) + 1] of nodes and time."""
        library, problem = state.library, self.library
        side, capacity, end = problem._map_max, problem._max_capacity, problem._max_end_window
        nodes, vehicles = library.nodes, library.vehicles
        places = nodes.coordinates / side
        of_vehicles = (vehicles.local_times / end, vehicles.capacities / capacity)
        of_nodes = (
            nodes.demands / capacity,
            library.windows.start / end,
            library.windows.end / end,
            library.coeffs.early,
            library.coeffs.late,
        )
        rows = jnp.concatenate([places, jnp.stack(of_nodes, axis=-1)], axis=-1).astype(jnp.float32)
        time = jnp.asarray([state.steps / (2 * problem._num_customers)], jnp.float32)
        own = jnp.concatenate([places[vehicles.positions], jnp.stack(of_vehicles, axis=-1)], axis=-1).astype(jnp.float32)
        return own, jnp.concatenate([rows.ravel(), time])

"""TSP: the shortest round trip through all cities (the travelling salesman problem)."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jumanji import specs
from jumanji.environments import TSP as Library
from jumanji.environments.routing.tsp.generator import UniformGenerator
from jumanji.environments.routing.tsp.reward import DenseReward, SparseReward

from envs_jax.adapters.common import check_whole, choose
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.adapters.jumanji.tours import last_visits, tour_length
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

REWARDS = {"dense": DenseReward, "sparse": SparseReward}
COLUMNS = 6


class _Start(Library):
    """The library, whose spec leaves out where an agent is that has not started: -1."""

    @functools.cached_property
    def observation_spec(self) -> Any:
        position = specs.BoundedArray((), jnp.int32, -1, self.num_cities - 1, "position")
        return super().observation_spec.replace(position=position)


class TSP(JumanjiEnv):
    """`TSP-v1`, single-agent. Actions: the city to visit next; the first choice is where the tour starts.

    Cities lie uniformly in the unit square. The observation is [6 num_cities] in 0 ... 1, six numbers a city: x, y, whether
    it was visited, is where the agent is, is where the tour started, and its place in the order of visits (1: the last, 0:
    not visited). It truly ends after num_cities steps, when all were visited, which is therefore the time limit, or at a city
    that was visited before, which is illegal and pays -num_cities sqrt(2). Metrics: `tour_length`, the way travelled so far,
    with the return once the tour is complete, and `success`, whether it is.

    Args:
        num_cities: how many cities, at least 2.
        reward: `dense` pays minus the length of each leg, with the return at the last; `sparse` all of it at the end.

    Raises ValueError when an argument is none of these.
    """

    def __init__(self, num_cities: int = 20, reward: str = "dense"):
        check_whole("TSP", 2, num_cities=num_cities)
        reward_fn = choose("TSP", "reward", reward, REWARDS)()
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (COLUMNS * num_cities,)),
            action_space=Discrete(num_cities),
            metrics={"tour_length": "last", "success": "last"},
            episode_limit=num_cities,
        )
        super().__init__(_Start(UniformGenerator(num_cities), reward_fn), spec)

    def emitted(self, observation: Any) -> tuple[()]:
        return ()

    def view(self, state: State) -> jax.Array:
        tour = state.library
        cities = jnp.arange(self.library.num_cities)
        columns = (
            tour.coordinates,
            tour.visited_mask,
            cities == tour.position,
            cities == tour.trajectory[0],
            last_visits(tour.trajectory, tour.num_visited, len(cities)),
        )
        return jnp.column_stack(columns).ravel()

    def action_mask(self, state: State) -> jax.Array:
        return ~state.library.visited_mask

    def metrics(self, state: State) -> dict[str, jax.Array]:
        tour = state.library
        complete = jnp.all(tour.visited_mask)
        length = tour_length(tour.coordinates, tour.trajectory, tour.num_visited, complete)
        return {"tour_length": length, "success": complete.astype(jnp.float32)}

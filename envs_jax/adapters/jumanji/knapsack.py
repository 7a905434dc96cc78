"""Knapsack: the most valuable items whose weights fit into a budget."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import Knapsack as Library
from jumanji.environments.packing.knapsack.generator import RandomGenerator
from jumanji.environments.packing.knapsack.reward import DenseReward, SparseReward

from envs_jax.adapters.common import check_whole, choose
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

REWARDS = {"dense": DenseReward, "sparse": SparseReward}


class Knapsack(JumanjiEnv):
    """`Knapsack-v1`, single-agent. Actions: the item to pack next; legal is one that fits and was not packed.

    Weights and values are uniform in 0 ... 1. The observation is [3 num_items + 1] in 0 ... 1: weight, value and whether it
    is packed of each item, then the share of the budget that is left, which jumanji leaves to the network to add up. It
    truly ends when nothing more fits, after at most num_items steps, which is the time limit, or at an illegal action, which
    pays 0. With a budget below 1 perhaps nothing fits from the start; the first step then ends it. Metrics: `value` of what
    is packed, and `budget_used`, the share of the budget.

    Args:
        num_items: how many items.
        total_budget: the weight that may be packed, above 0.
        reward: `dense` pays each item's value; `sparse` pays the sum at the end, and nothing when that is illegal.

    Raises ValueError when an argument is none of these.
    """

    def __init__(self, num_items: int = 50, total_budget: float = 12.5, reward: str = "dense"):
        check_whole("Knapsack", 1, num_items=num_items)
        if not isinstance(total_budget, int | float) or not 0 < total_budget < math.inf:
            raise ValueError(f"Knapsack: total_budget must be a number above 0, got {total_budget!r}")
        reward_fn = choose("Knapsack", "reward", reward, REWARDS)()
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (3 * num_items + 1,)),
            action_space=Discrete(num_items),
            metrics={"value": "last", "budget_used": "last"},
            episode_limit=num_items,
        )
        super().__init__(Library(RandomGenerator(num_items, total_budget), reward_fn), spec)

    def emitted(self, observation: Any) -> jax.Array:
        return observation.action_mask

    def view(self, state: State) -> jax.Array:
        items = state.library
        columns = (items.weights, items.values, items.packed_items)
        return jnp.append(jnp.column_stack(columns).ravel(), items.remaining_budget / self.library.total_budget)

    def action_mask(self, state: State) -> jax.Array:
        return state.emitted

    def metrics(self, state: State) -> dict[str, jax.Array]:
        items = state.library
        value = jnp.sum(jnp.where(items.packed_items, items.values, 0.0))
        return {"value": value, "budget_used": 1.0 - items.remaining_budget / self.library.total_budget}

"""FACMAC's pursuits, Peng et al. 2021, arXiv:2003.06709: the library moves the prey."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from envs_jax.adapters.jaxmarl.base import State
from envs_jax.adapters.jaxmarl.mpe import MPE


class Facmac(MPE):
    """`MPE_simple_facmac_...`: only the adversaries are agents.

    The library makes a prey's 100 points anew for each prey, though all share one key, and XLA does not always see that they
    are the same. Here the prey move together, from points that are made once: a tenth more steps a second with two prey, and
    a quarter more with three.
    """

    def __init__(self, name: str, /, time_limit: int = 25, **kwargs: Any):
        super().__init__(name, time_limit, **kwargs)
        self._prey_policy = self.library._prey_policy
        first, prey = self.library.num_adversaries - 1, self.library.num_good_agents
        self._entities = first + 2 * jnp.arange(prey)  # for which the library asks its policy, prey by prey
        self.library._prey_policy = lambda key, state, entity: state.goal[(entity - first) // 2]

    def controlled(self, library: Any) -> tuple[str, ...]:
        return tuple(library.adversaries)

    def play(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        before = state.library
        moves = jax.vmap(lambda entity: self._prey_policy(key, before, entity))(self._entities)
        played = state.replace(library=before.replace(goal=moves))  # a field that these tasks leave empty
        after, reward = super().play(key, played, action, params)
        return after.replace(library=after.library.replace(goal=before.goal)), reward

"""The uniformly random policy, measured like any other: what a learner has to beat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.memory.latest import latest
from agentgym_jax.rollout.unroll import make_acting
from agentgym_jax.tasks.base import Tasks
from agentgym_jax.training.evaluate import play
from agentgym_jax.types import Sizes
from envs_jax.core import Env, EnvSpec


def acting_only(carry: Callable[..., Any], act: Callable[..., tuple[Any, Any, Any]]) -> Algorithm:
    """An algorithm that acts and learns nothing."""
    return Algorithm(
        init=lambda key, hyper: (),
        carry=carry,
        act=act,
        learn=lambda learner, hyper, batch, key, clock: (learner, {}, ()),
        memory=latest(),
        record=frozenset(),
    )


def random_algorithm(spec: EnvSpec) -> Algorithm:
    """Uniformly random legal actions; learns nothing."""

    def act(learner, hyper, carry, timestep, world, reset, key, clock, explore):
        return carry, spec.sample_actions(key, timestep), ()

    return acting_only(lambda batch_shape: (), act)


def play_randomly(env: Env, tasks: Tasks, key: jax.Array, episodes: int, cap: int) -> dict[str, Any]:
    """One episode in each of `episodes` environments (with an agent axis): {name: float32 [episodes]}, see `play`."""
    acting = make_acting(env, tasks, random_algorithm(env.spec), Sizes(episodes, 1), "fresh")
    return play(acting, (), (), key, jnp.int32(cap), jnp.bool_(True))

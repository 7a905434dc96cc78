"""Many copies of one environment side by side, resetting by themselves, for scripts and notebooks.

>>> envs = vector(env, 8)
>>> state, timestep = envs.reset(key, env.default_params)
>>> state, timestep, outcome = envs.step(key, state, action, env.default_params)

`outcome` is what the action caused, with the final observation of an episode; `timestep` is what to act on next, which after
an end belongs to the next episode. Everything is pure and may be jitted, scanned and vmapped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs_jax.core import Env, EnvSpec, TimeStep

Policy = Callable[[jax.Array, TimeStep], jax.Array]


class Vector(NamedTuple):
    """`n` copies of `env`; every array has a leading axis N, and the environment numbers are shared by all."""

    env: Env
    n: int

    def reset(self, key: jax.Array, params: Any) -> tuple[Any, TimeStep]:
        """Starts an episode in each copy, each with its own key."""
        return jax.vmap(self.env.reset, in_axes=(0, None))(jax.random.split(key, self.n), params)

    def step(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, TimeStep, TimeStep]:
        """One step of each copy, and a new start where an episode ended: (state, timestep, outcome)."""
        key_step, key_reset = jax.random.split(key)
        keys = jax.random.split(key_step, self.n)
        state, outcome = jax.vmap(self.env.transition, in_axes=(0, 0, 0, None))(keys, state, action, params)
        state, timestep = jax.vmap(_choose)(outcome.last, self.reset(key_reset, params), (state, outcome))
        return state, timestep, outcome


class Rollout(NamedTuple):
    """What happened, [T, N, ...]: `timestep` was acted on with `action`, which led to `outcome`."""

    timestep: TimeStep
    action: jax.Array
    outcome: TimeStep


def vector(env: Env, n: int) -> Vector:
    """`n` copies of `env` that reset by themselves. Raises ValueError when `n` is below 1."""
    if n < 1:
        raise ValueError(f"vector needs n of at least 1, got {n}")
    return Vector(env, n)


def random_policy(spec: EnvSpec) -> Policy:
    """Uniformly random legal actions for N environments."""
    return spec.sample_actions


def rollout(env: Env, policy: Policy, key: jax.Array, steps: int, n: int, params: Any = None) -> Rollout:
    """Plays `steps` steps of `n` copies from new episodes; `policy(key, timestep) -> action` sees all N at once.

    `params` are the environment's numbers, by default its own. Returns arrays [T, N, ...].
    """
    params = env.default_params if params is None else params
    envs = vector(env, n)
    key_reset, key_steps = jax.random.split(key)

    def step(carry: tuple[Any, TimeStep], key: jax.Array) -> tuple[tuple[Any, TimeStep], Rollout]:
        state, timestep = carry
        key_act, key_step = jax.random.split(key)
        action = policy(key_act, timestep)
        state, following, outcome = envs.step(key_step, state, action, params)
        return (state, following), Rollout(timestep, action, outcome)

    return jax.lax.scan(step, envs.reset(key_reset, params), jax.random.split(key_steps, steps))[1]


def _choose(condition: jax.Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)

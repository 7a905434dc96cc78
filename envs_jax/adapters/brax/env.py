"""One environment of brax behind the interface of `envs_jax.core`."""

from __future__ import annotations

import copy
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.adapters.brax import params as physics
from envs_jax.adapters.brax.library import quiet
from envs_jax.adapters.common import cast_like, strong
from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.spaces import Box

with quiet():
    from brax.envs.base import State as LibraryState


@struct.dataclass
class State:
    """What a step and `observe` need of brax's state."""

    pipeline: Any  # the physics
    observation: jax.Array  # float32 [n]
    done: jax.Array  # bool []: a true end
    steps: jax.Array  # int32 []: since the start of the episode


class BraxEnv(Env):
    """One brax environment with a time limit of its own.

    Observations are brax's, unbounded; the episode truly ends when brax says `done`, and is cut after `time_limit` steps.
    `default_params` are the `Params` of the physics, () for an environment without.
    """

    def __init__(self, environment: Any, time_limit: int):
        with quiet():
            start = jax.eval_shape(copy.copy(environment).reset, jax.random.PRNGKey(0))
        if not hasattr(start.obs, "shape"):
            raise ValueError(f"{type(environment).__name__}: the observation must be one array, got {start.obs}")
        self.library = environment
        self.default_params = physics.read(environment) if hasattr(environment, "sys") else ()
        self._limit = time_limit
        self.spec = EnvSpec(
            observation_space=Box(-jnp.inf, jnp.inf, start.obs.shape),
            action_space=Box(-1.0, 1.0, (environment.action_size,)),
            episode_limit=time_limit,
        )

    def initial(self, key: jax.Array, params: Any) -> State:
        with quiet():
            start = self._library_with(params).reset(key)
        return strong(self._state(start, jnp.int32(0)))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        # Its `step` writes into the dictionaries of the state that it is given, so it gets fresh ones.
        zero = jnp.float32(0)
        start = LibraryState(state.pipeline, state.observation, reward=zero, done=zero, metrics={}, info={})
        with quiet():
            after = self._library_with(params).step(start, action)
        return cast_like(state, self._state(after, state.steps + 1)), jnp.asarray(after.reward, jnp.float32)

    def observe(self, state: State, params: Any) -> TimeStep:
        return TimeStep(
            observation=state.observation,
            reward=jnp.float32(0),
            discount=(~state.done).astype(jnp.float32),
            alive=jnp.bool_(True),
            last=state.done | (state.steps >= self._limit),
        )

    def _library_with(self, params: Any) -> Any:
        """A copy of brax's object with the physics of these params; the shared one is never written to."""
        environment = copy.copy(self.library)
        if isinstance(self.default_params, physics.Params):
            environment.sys = physics.write(environment.sys, params, self.default_params)
        return environment

    def _state(self, after: LibraryState, steps: jax.Array) -> State:
        return State(after.pipeline_state, jnp.asarray(after.obs, jnp.float32), jnp.asarray(after.done) > 0, steps)

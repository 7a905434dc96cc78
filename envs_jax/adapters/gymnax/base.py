"""What all gymnax environments share: state, time limit, discount and steady dtypes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.adapters.common import cast_like, strong
from envs_jax.adapters.gymnax.observations import view
from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.spaces import Box, Discrete


@struct.dataclass
class State:
    """gymnax's state and what else `observe` needs."""

    inner: Any  # gymnax's state
    observation: Any  # gymnax's; kept, since it may be drawn with a key or made from the action
    terminated: jax.Array  # bool []: a true end
    steps: jax.Array  # int32 []: since the start of the episode


class Gymnax(Env):
    """The environment `env` that gymnax calls `name`, its episodes cut off after `time_limit` steps."""

    reset_mode = "pool"

    def __init__(self, name: str, env: Any, params: Any, time_limit: int):
        self._env = env
        self._steps = time_limit
        self._limit = type(params.max_steps_in_episode)(time_limit)  # one of gymnax's counts in floats
        self._ends_with_payments = name == "DiscountingChain-bsuite"
        self.default_params = strong(params).replace(max_steps_in_episode=None)
        self._observation_types, self._state_types = self._types()
        params = params.replace(max_steps_in_episode=self._limit)
        space, self._show = view(name, env, params, self._observation_types)
        self.spec = EnvSpec(
            observation_space=space,
            action_space=_action_space(env.action_space(params)),
            episode_limit=time_limit,
        )

    def initial(self, key: jax.Array, params: Any) -> State:
        observation, inner = self._env.reset_env(key, self._with_limit(params))
        return self._state(observation, inner, False, jnp.int32(0))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        params = self._with_limit(params)
        observation, inner, reward, terminated, _ = self._env.step_env(key, state.inner, action, params)
        if self._ends_with_payments:  # nothing can be paid any more: the one departure from gymnax's ends
            terminated |= inner.time >= jnp.max(params.reward_timestep)
        return self._state(observation, inner, terminated, state.steps + 1), jnp.asarray(reward, jnp.float32)

    def observe(self, state: State, params: Any) -> TimeStep:
        return TimeStep(
            observation=self._show(state.observation),
            reward=jnp.float32(0),
            discount=1.0 - state.terminated.astype(jnp.float32),
            alive=jnp.bool_(True),
            last=state.terminated | (state.steps >= self._steps),
        )

    def _with_limit(self, params: Any) -> Any:
        if params.max_steps_in_episode is not None:
            raise ValueError("max_steps_in_episode is no parameter here: give the constructor argument `time_limit` instead")
        return params.replace(max_steps_in_episode=self._limit)

    def _state(self, observation: Any, inner: Any, terminated: Any, steps: jax.Array) -> State:
        return State(
            inner=cast_like(self._state_types, inner),
            observation=cast_like(self._observation_types, observation),
            terminated=jnp.asarray(terminated, bool),
            steps=steps,
        )

    def _types(self) -> tuple[Any, Any]:
        """Shapes and dtypes of observation and state that hold after a reset and after every step alike."""
        key, params = jax.random.PRNGKey(0), self._with_limit(self.default_params)
        action = jax.eval_shape(self._env.action_space(params).sample, key)
        start = types = jax.eval_shape(self._env.reset_env, key, params)
        for _ in range(2):  # a step from a widened state may widen another part of it
            after = jax.eval_shape(self._env.step_env, key, types[1], action, params)[:2]
            types = jax.tree.map(_wider, start, after)
        return types


def _wider(a: Any, b: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(b.shape, jnp.promote_types(a.dtype, b.dtype))


def _action_space(space: Any) -> Discrete | Box:
    return Discrete(int(space.n)) if hasattr(space, "n") else Box(space.low, space.high, space.shape, space.dtype)

"""gymnax (1.0 and later) behind the interface of `envs_jax.core`.

Built on gymnax's own pieces, `reset_env`, `step_env` and `is_truncated`, so that nothing resets by itself and a time limit is
told from a true end: after `terminated` the discount is 0, after a cut it stays 1. Parameters are gymnax's own, as arrays;
only the time limit is a constructor argument, and its field among them is None.
"""

from __future__ import annotations

from typing import Any

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import spaces as gymnax_spaces

from envs_jax.adapters.common import cast_like, check_time_limit, strong
from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.spaces import Box, Discrete, Space

RESET_MODE = "pool"  # a reset at every step costs 1.07 to 1.12 times a CartPole step


def make(name: str, time_limit: int | None = None, **kwargs: Any) -> Env:
    """The environment that gymnax calls `name`, with its own constructor arguments.

    `time_limit` is the number of steps after which an episode is cut off; by default gymnax's own. Raises ValueError for a
    limit below 1 and for arguments that the constructor refuses.
    """
    try:
        env, params = gymnax.make(name, **kwargs)
    except TypeError as error:
        raise ValueError(f"gymnax/{name}: {error}") from error
    time_limit = int(params.max_steps_in_episode) if time_limit is None else time_limit
    return Gymnax(env, params, check_time_limit(f"gymnax/{name}", time_limit))


@struct.dataclass
class State:
    inner: Any  # gymnax's state
    observation: Any  # kept, since gymnax may draw it with a key or make it from the action
    terminated: jax.Array  # bool []


class Gymnax(Env):
    """A gymnax environment whose episodes are cut off after `time_limit` steps."""

    def __init__(self, env: Any, params: Any, time_limit: int):
        self._env = env
        self._limit = type(params.max_steps_in_episode)(time_limit)  # one of gymnax's counts in floats
        self.default_params = strong(params).replace(max_steps_in_episode=None)
        observation, self._state_types = self._types()
        params = params.replace(max_steps_in_episode=self._limit)
        self.spec = EnvSpec(
            observation_space=_space(env.observation_space(params), observation),
            action_space=_space(env.action_space(params)),
            episode_limit=time_limit,
        )
        self._observation_types = observation

    def initial(self, key: jax.Array, params: Any) -> State:
        observation, state = self._env.reset_env(key, self._with_limit(params))
        return self._state(observation, state, False)

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        params = self._with_limit(params)
        observation, inner, reward, terminated, _ = self._env.step_env(key, state.inner, action, params)
        return self._state(observation, inner, terminated), jnp.asarray(reward, jnp.float32)

    def observe(self, state: State, params: Any) -> TimeStep:
        truncated = self._env.is_truncated(state.inner, self._with_limit(params))
        return TimeStep(
            observation=state.observation,
            reward=jnp.float32(0),
            discount=1.0 - state.terminated.astype(jnp.float32),
            alive=jnp.bool_(True),
            last=state.terminated | truncated,
        )

    def _with_limit(self, params: Any) -> Any:
        if params.max_steps_in_episode is not None:
            raise ValueError("max_steps_in_episode is no parameter here: give the constructor argument `time_limit` instead")
        return params.replace(max_steps_in_episode=self._limit)

    def _state(self, observation: Any, inner: Any, terminated: Any) -> State:
        return State(
            inner=cast_like(self._state_types, inner),
            observation=cast_like(self._observation_types, observation),
            terminated=jnp.asarray(terminated, bool),
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


def _space(space: Any, emitted: Any = None) -> Space:
    """The same space; a Box in the dtype that is really emitted, and infinite where gymnax writes the largest float."""
    if isinstance(space, gymnax_spaces.Discrete):
        return Discrete(int(space.n))
    if not isinstance(space, gymnax_spaces.Box):
        raise ValueError(f"the gymnax adapter knows Discrete and Box spaces, got {space!r}")
    largest = np.finfo(np.float32).max
    low, high = (np.asarray(bound, np.float64) for bound in (space.low, space.high))
    low, high = np.where(low <= -largest, -np.inf, low), np.where(high >= largest, np.inf, high)
    dtype = space.dtype if emitted is None else emitted.dtype
    return Box(low, high, space.shape, dtype)

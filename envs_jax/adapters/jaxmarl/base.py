"""What all environments of the library share: named agents become an axis, and time limits are counted here.

The library's particles and SMAX test their step counter before they raise it, so a limit of 25 lasts 26 steps, and all of it
tells one `done` for a time limit and for a true end. So its limits are set where they are never reached, or are not looked at.
Its `step`, which starts a new episode by itself, is not used.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.adapters.common import cast_like, strong
from envs_jax.core import Env, EnvSpec, TimeStep


@struct.dataclass
class State:
    """The library's state and what else `observe` needs."""

    library: Any
    told: Any  # what the last step told beside its reward; () where nothing is kept
    ended: jax.Array  # bool []: a true end
    steps: jax.Array  # int32 []: since the start of the episode


class JaxmarlEnv(Env):
    """Base of the adapted environments. A subclass builds `library` and `spec`, and overrides what differs from here.

    `names` are the library's names of the agents, in the order of axis A.
    """

    reset_mode = "pool"

    def __init__(self, library: Any, spec: EnvSpec, names: tuple[str, ...]):
        if spec.episode_limit is None:
            raise ValueError(f"{type(self).__name__}: spec.episode_limit must be the time limit, got None")
        self.library = library
        self.spec = spec
        self.names = names
        self._limit = spec.episode_limit

    def view(self, state: State) -> jax.Array:
        """What the agents see, [A, ...]."""
        seen = self.library.get_obs(state.library)
        return jnp.stack([seen[name] for name in self.names])

    def action_mask(self, state: State) -> Any:
        """bool [A, n]: which actions are legal in this state; () when all are."""
        return ()

    def alive(self, state: State) -> jax.Array:
        """bool [A]: who may act now."""
        return jnp.ones(len(self.names), bool)

    def metrics(self, state: State) -> dict[str, jax.Array]:
        """float32 [] each, under the names of `spec.metrics`."""
        return {}

    def actions(self, action: jax.Array) -> dict[str, jax.Array]:
        """The library's form of a joint action [A, ...]."""
        return {name: action[agent] for agent, name in enumerate(self.names)}

    def start(self, library: Any) -> State:
        """The adapter's state of an episode that starts with the library's."""
        return State(library, (), jnp.bool_(False), jnp.int32(0))

    def play(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        """The library's step: the next state, not yet counted, and the reward [A]; dtypes as they come."""
        _, library, reward, _, _ = self.library.step_env(key, state.library, self.actions(action))
        return state.replace(library=library), jnp.stack([reward[name] for name in self.names])

    def initial(self, key: jax.Array, params: Any) -> State:
        _, library = self.library.reset(key)
        return strong(self.start(library))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        after, reward = self.play(key, state, action, params)
        return cast_like(state, after.replace(steps=state.steps + 1)), jnp.asarray(reward, jnp.float32)

    def observe(self, state: State, params: Any) -> TimeStep:
        agents = len(self.names)
        return TimeStep(
            self.view(state),
            reward=jnp.zeros(agents, jnp.float32),
            discount=jnp.full(agents, ~state.ended, jnp.float32),
            alive=self.alive(state),
            last=state.ended | (state.steps >= self._limit),
            action_mask=self.action_mask(state),
            metrics=self.metrics(state),
        )

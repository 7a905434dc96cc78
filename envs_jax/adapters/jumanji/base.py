"""What all jumanji environments share: state, time limit, discount and reward.

jumanji ends an episode at its own time limit, in several environments with discount 0, as if it were a true end. So the
library is built with a limit one step longer, which it never reaches, and the steps are counted here: what the library
ends is a true end, what the count ends is a truncation.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Self

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.adapters.common import cast_like, strong
from envs_jax.adapters.jumanji.raw import raw_spaces, tuples
from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.spaces import Discrete


@struct.dataclass
class State:
    """The library's state and what else `observe` needs."""

    library: Any  # the library's own state, its key taken out
    emitted: Any  # the parts of the library's observation that do not stand in its state
    raw: Any  # the library's whole observation where it is what agents see, else ()
    ended: jax.Array  # bool []: a true end
    steps: jax.Array  # int32 []: since the start of the episode


class JumanjiEnv(Env):
    """Base of the adapted environments. A subclass builds `library` and `spec`, and overrides what differs from here."""

    reset_mode = "pool"
    _shows_raw = False

    def __init__(self, library: Any, spec: EnvSpec):
        if spec.episode_limit is None:
            raise ValueError(f"{type(self).__name__}: spec.episode_limit must be the time limit, got None")
        self.library = library
        self.spec = spec
        self._limit = spec.episode_limit
        self._axes = () if spec.num_agents is None else (spec.num_agents,)

    def raw(self) -> Self:
        """A copy whose agents see the library's own observation, a tree, in place of `view`.

        Of several agents each sees all of it and its own number: `(observation, number)`.
        """
        observation = jax.eval_shape(lambda key: self.library.reset(key)[1].observation, jax.random.PRNGKey(0))
        spaces = raw_spaces(self.library.observation_spec, tuples(observation))
        if self.spec.num_agents is not None:
            spaces = (spaces, Discrete(self.spec.num_agents))
        env = copy.copy(self)
        env.spec = dataclasses.replace(self.spec, observation_space=spaces)
        env._shows_raw = True
        return env

    def emitted(self, observation: Any) -> Any:
        """The parts of the library's observation that `view` and `action_mask` need; the state keeps them."""
        return observation

    def view(self, state: State) -> jax.Array:
        """What the agents see, [...] or [A, ...]."""
        raise NotImplementedError

    def action_mask(self, state: State) -> Any:
        """bool [n] or [A, n]: which actions are legal in this state; () when all are."""
        return ()

    def metrics(self, state: State) -> dict[str, jax.Array]:
        """float32 [] each, under the names of `spec.metrics`."""
        return {}

    def alive(self, state: State) -> jax.Array:
        """bool [] or [A]: who may act now. With individual reward, an agent that may not must have earned its last."""
        return jnp.ones(self._axes, bool)

    def library_action(self, action: jax.Array) -> jax.Array:
        """The library's form of an action; where the library wants several indices and `spec` has one, unravel it here."""
        return action

    def initial(self, key: jax.Array, params: Any) -> State:
        return strong(self._state(*self.library.reset(key), steps=jnp.int32(0)))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        # The step's own key, not the one that the library carries along: two episodes from one pooled start state differ.
        library, timestep = self.library.step(state.library.replace(key=key), self.library_action(action))
        reward = jnp.broadcast_to(jnp.asarray(timestep.reward, jnp.float32), self._axes)
        return cast_like(state, self._state(library, timestep, state.steps + 1)), reward

    def observe(self, state: State, params: Any) -> TimeStep:
        alive = self.alive(state)
        earning = alive if self.spec.reward == "individual" else jnp.ones_like(alive)
        return TimeStep(
            observation=self._raw_view(state) if self._shows_raw else self.view(state),
            reward=jnp.zeros(self._axes, jnp.float32),
            discount=(earning & ~state.ended).astype(jnp.float32),
            alive=alive,
            last=state.ended | (state.steps >= self._limit),
            action_mask=self.action_mask(state),
            metrics=self.metrics(state),
        )

    def _state(self, library: Any, timestep: Any, steps: jax.Array) -> State:
        observation = timestep.observation
        raw = tuples(observation) if self._shows_raw else ()
        return State(library.replace(key=()), self.emitted(observation), raw, timestep.last(), steps)

    def _raw_view(self, state: State) -> Any:
        if self.spec.num_agents is None:
            return state.raw
        everything = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*self._axes, *leaf.shape)), state.raw)
        return everything, jnp.arange(self.spec.num_agents, dtype=jnp.int32)

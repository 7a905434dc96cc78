"""What all probes share: an episode of a few steps around a cue."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, EnvSpec, Group, TimeStep
from envs_jax.spaces import Box, Discrete, Space


@struct.dataclass
class Params:
    scale: jax.Array  # float32 []: multiplies every reward, and so every right value


@struct.dataclass
class State:
    time: jax.Array  # int32 []
    cue: jax.Array  # what the episode is about
    paid: jax.Array  # float32 []: the last reward, summed over agents, before scaling


class Probe(Env):
    """Shared by all probes: episodes of `length` steps around a cue; the defaults are one step, ±1 shown, two actions."""

    length = 1
    truncates = False  # whether the end is a cut instead of a true end
    agents: int | None = None
    reward = "individual"
    observation_space: Space = Box(-1, 1, (1,))
    action_space: Space = Discrete(2)
    world_space: Box | None = None
    groups: tuple[Group, ...] = ()
    succeeds = False  # whether the metric `success`, paid more than 0 at the last step, says something

    def __init__(self):
        self.default_params = Params(scale=jnp.float32(1))
        self.spec = EnvSpec(
            observation_space=self.observation_space,
            action_space=self.action_space,
            num_agents=self.agents,
            world_space=self.world_space,
            reward=self.reward,
            metrics={"success": "last"} if self.succeeds else {},
            episode_limit=self.length,
            groups=self.groups,
        )
        self._axis = () if self.agents is None else (self.agents,)

    def draw(self, key: jax.Array) -> jax.Array:
        """The cue of an episode: float32 [] or [A], −1 or 1."""
        return jax.random.rademacher(key, self._axis, jnp.float32)

    def show(self, state: State) -> jax.Array:
        """The observation."""
        return state.cue[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        """The reward, float32 [] or [A], of acting in `state`."""
        raise NotImplementedError

    def legal(self, state: State) -> Any:
        """The action mask."""
        return ()

    def lives(self, state: State) -> jax.Array:
        """Who may act: bool [] or [A]."""
        return jnp.ones(self._axis, bool)

    def initial(self, key: jax.Array, params: Params) -> State:
        return State(jnp.int32(0), self.draw(key), jnp.float32(0))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        reward = self.pay(state, action)
        return State(state.time + 1, state.cue, jnp.sum(reward)), reward * params.scale

    def observe(self, state: State, params: Params) -> TimeStep:
        last, alive = state.time >= self.length, self.lives(state)
        goes_on = jnp.bool_(True) if self.truncates else ~last
        return TimeStep(
            observation=self.show(state),
            reward=jnp.zeros(self._axis, jnp.float32),
            discount=(alive & goes_on).astype(jnp.float32),
            alive=alive,
            last=last,
            action_mask=self.legal(state),
            metrics={"success": (state.paid > 0).astype(jnp.float32)} if self.succeeds else {},
        )


def right(chosen: jax.Array, wanted: jax.Array) -> jax.Array:
    """1 where they agree, else −1, float32."""
    return jnp.where(chosen == wanted, 1.0, -1.0).astype(jnp.float32)


def index_of(cue: jax.Array) -> jax.Array:
    """Action 1 for a positive cue, else 0."""
    return (cue > 0).astype(jnp.int32)

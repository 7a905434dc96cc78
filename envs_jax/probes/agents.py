"""Probes of several agents: as a team or each alone, alike or in groups, with deaths and births."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from envs_jax.core import Group, TimeStep
from envs_jax.probes.base import Params, Probe, State, index_of, right
from envs_jax.spaces import Box, Discrete


class Team(Probe):
    """One step, two agents, a cue each as in `policy_observation`; both are paid 1 when both are right, else 0. V = 1.

    The state of the world is both cues.
    """

    agents = 2
    reward = "team"
    world_space = Box(-1, 1, (2,))
    succeeds = True

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.full((2,), jnp.all(action == index_of(state.cue)), jnp.float32)

    def world(self, state: State, params: Params) -> jax.Array:
        return state.cue


class Individual(Probe):
    """Two agents, a cue each as in `policy_observation`; agent 0 acts once and dies, agent 1 acts twice.

    Agent 0 is paid 1 when right, agent 1 is paid 2 at each step, else −1 and −2. Observations are [cue, time], zeros when
    dead. V₀ = 1; V₁ = 2 + 2γ at the first step and 2 at the second.
    """

    length = 2
    agents = 2
    observation_space = Box((-1, 0), (1, 1), (2,))

    def lives(self, state: State) -> jax.Array:
        return jnp.stack([state.time == 0, jnp.bool_(True)])

    def show(self, state: State) -> jax.Array:
        time = jnp.full((2,), jnp.minimum(state.time, 1), jnp.float32)
        return jnp.where(self.lives(state)[..., None], jnp.stack([state.cue, time], axis=-1), 0.0)

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        earned = right(action, index_of(state.cue)) * jnp.arange(1, 3, dtype=jnp.float32)
        return jnp.where(self.lives(state), earned, 0.0)


class TwoGroups(Probe):
    """One step, a team of two groups with roles of their own; it is paid the part of its three agents that is right. V = 1.

    Two scouts see a cue each and have two actions: action 1 is right for a cue of 1, else 0. A guard sees two cues and has
    three actions: right is how many of them are 1, so that one rule does not serve both. A scout's third action is masked, and
    wrong. The state of the world is all four cues.
    """

    agents = 3
    reward = "team"
    observation_space = Box(-1, 1, (2,))
    action_space = Discrete(3)
    world_space = Box(-1, 1, (4,))
    groups = (Group("scouts", 2, Box(-1, 1, (1,)), Discrete(2)), Group("guard", 1, Box(-1, 1, (2,)), Discrete(3)))

    def draw(self, key: jax.Array) -> jax.Array:
        return jax.random.rademacher(key, (4,), jnp.float32)

    def show(self, state: State) -> jax.Array:
        scouts = jnp.stack([state.cue[:2], jnp.zeros(2, jnp.float32)], axis=-1)
        return jnp.concatenate([scouts, state.cue[None, 2:]])

    def legal(self, state: State) -> jax.Array:
        return jnp.asarray(self.spec.own_actions)

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        wanted = jnp.append(index_of(state.cue[:2]), jnp.sum(index_of(state.cue[2:])))
        return jnp.full((3,), jnp.mean((action == wanted).astype(jnp.float32)))

    def world(self, state: State, params: Params) -> jax.Array:
        return state.cue


class Respawn(Probe):
    """Three steps, two slots: in slot 0 an elder lives throughout, in slot 1 somebody dies and somebody else is born.

    Step 0: the first agent of slot 1 sees a cue and is paid 2 for action 1 at −1 and for 2 at 1, else −2; then it dies.
    Step 1: the slot rests and shows still what the dead one saw; the elder is paid 1 for action 1, else −1.
    Step 2: a new agent in slot 1 is paid 1 for action 0. Or it guesses the dead one's cue, by the same two actions, and is
    paid 3 when right, else −3: it cannot know, and to guess is worth 0. The elder is paid nothing at steps 0 and 2.

    Observations are [the cue of slot 1's first agent; 1 for the elder; 1 for the new agent; time / 2 for those two], else 0.
    Right are 2, 1 and 1, a return of 4; more is had only by memory that outlives its agent. With a team reward (the default)
    everybody's value is 2 + γ + γ² at step 0, 1 + γ at step 1 and 1 at step 2. With `reward: individual` the first agent's is
    2, the new one's 1, and the elder's γ, 1 and 0. The state of the world is [cue, or 0 after step 0; time / 2].
    """

    length = 3
    agents = 2
    observation_space = Box((-1, 0, 0, 0), (1, 1, 1, 1), (4,))
    action_space = Discrete(3)
    world_space = Box((-1, 0), (1, 1), (2,))

    def __init__(self, reward: str = "team"):
        if reward not in ("team", "individual"):
            raise ValueError(f"probe/respawn: reward must be team or individual, got {reward!r}")
        self.reward = reward
        super().__init__()

    def draw(self, key: jax.Array) -> jax.Array:
        return jax.random.rademacher(key, (), jnp.float32)

    def lives(self, state: State) -> jax.Array:
        return jnp.stack([jnp.bool_(True), state.time != 1])

    def show(self, state: State) -> jax.Array:
        time = jnp.minimum(state.time, 2).astype(jnp.float32) / 2.0
        elder = jnp.stack([jnp.float32(0), jnp.float32(1), jnp.float32(0), time])
        first = jnp.stack([state.cue, jnp.float32(0), jnp.float32(0), jnp.float32(0)])
        return jnp.stack([elder, jnp.where(state.time < 2, first, jnp.asarray([0, 0, 1, 1], jnp.float32))])

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        elder = jnp.where(state.time == 1, right(action[0], jnp.int32(1)), 0.0)
        answer = right(action[1], index_of(state.cue) + 1)
        new = jnp.where(action[1] == 0, 1.0, 3.0 * answer)
        slot = jnp.select([state.time == 0, state.time == 2], [2.0 * answer, new], 0.0)
        reward = jnp.stack([elder, slot])
        return jnp.full((2,), jnp.sum(reward)) if self.reward == "team" else reward

    def observe(self, state: State, params: Params) -> TimeStep:
        timestep = super().observe(state, params)
        if self.reward == "individual":
            return timestep
        return timestep.replace(discount=jnp.full((2,), ~timestep.last, jnp.float32))

    def world(self, state: State, params: Params) -> jax.Array:
        time = jnp.minimum(state.time, 2).astype(jnp.float32) / 2.0
        return jnp.stack([jnp.where(state.time == 0, state.cue, 0.0), time])

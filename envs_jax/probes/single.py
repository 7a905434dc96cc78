"""Probes of one agent."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.probes.base import Probe, State, index_of, right
from envs_jax.spaces import Box, Discrete, MultiDiscrete


class Constant(Probe):
    """One step, the observation is 0, every action is paid 1. V(0) = 1."""

    def show(self, state: State) -> jax.Array:
        return jnp.zeros_like(state.cue)[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.ones_like(state.cue)


class Truncation(Constant):
    """As `constant`, but cut off after ten steps instead of ended. V(0) = 1 / (1 − γ), not the 10 that is collected."""

    length = 10
    truncates = True


class Observation(Probe):
    """One step; the reward is the observation, ±1, whatever the action. V(o) = o."""

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return state.cue


class Discounted(Probe):
    """Two steps, observations 0 and 1; only the second is paid, with 1. V(0) = γ, V(1) = 1."""

    length = 2

    def show(self, state: State) -> jax.Array:
        return jnp.minimum(state.time, 1).astype(jnp.float32)[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return (state.time == 1).astype(jnp.float32)


class Policy(Constant):
    """One step, the observation is 0; action 1 is paid 1, action 0 is paid −1. π(1) = 1, V(0) = 1."""

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return right(action, jnp.int32(1))


class PolicyObservation(Probe):
    """One step; action 1 is right for observation 1 and action 0 for −1, paid 1 when right, else −1. V = 1 for both."""

    succeeds = True

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return right(action, index_of(state.cue))


class Memory(PolicyObservation):
    """A cue ±1 is shown at the start and asked for after `delay` steps; only the answer is paid, as in `policy_observation`.

    Observations are [cue at the start, else 0; 1 when the answer is due, else 0]. With memory the return is 1 and
    V(start) = γ^delay; without memory nothing does better than a return of 0.
    """

    observation_space = Box((-1, 0), (1, 1), (2,))

    def __init__(self, delay: int = 3):
        if isinstance(delay, bool) or not isinstance(delay, int) or delay < 1:
            raise ValueError(f"probe/memory: delay must be a whole number of at least 1, got {delay!r}")
        self.length = delay + 1
        super().__init__()

    def show(self, state: State) -> jax.Array:
        due = (state.time == self.length - 1).astype(jnp.float32)
        return jnp.stack([jnp.where(state.time == 0, state.cue, 0.0), due])

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.where(state.time == self.length - 1, super().pay(state, action), 0.0)


class Continuous(Probe):
    """One step; the reward is −(a − 1 − o)², with a in [−1, 3] and o = ±1. The action is 1 + o (in [−1, 1]: o / 2), V = 0."""

    action_space = Box(-1, 3, (1,))

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return -jnp.square(action[0] - 1.0 - state.cue)


class Masked(Probe):
    """One step, three actions: 0 is paid 0; of 1 and 2 one is legal, paid 1, the other illegal, and would be paid 10.

    Observation 1 makes action 1 legal, −1 action 2. Only legal actions are taken and V = 1.
    """

    action_space = Discrete(3)

    def legal(self, state: State) -> jax.Array:
        return jnp.stack([jnp.bool_(True), state.cue > 0, state.cue <= 0])

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.where(self.legal(state)[action], jnp.minimum(action, 1), 10).astype(jnp.float32)


class MultiDiscreteActions(Probe):
    """One step, heads of two and three actions, each paid ½ when right, else −½: the first as in `policy_observation`,
    the second is right with 2. V = 1."""

    action_space = MultiDiscrete((2, 3))
    succeeds = True

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.mean(right(action, jnp.stack([index_of(state.cue), jnp.int32(2)])))


class Image(Probe):
    """One step; a grid of bytes 8 × 8 × 1 shows one line, 255 on 0, at a random place. Action 1 is right for an upright
    line, 0 for a level one, paid 1 when right, else −1. V = 1."""

    side = 8
    observation_space = Box(0, 255, (side, side, 1), np.uint8)
    succeeds = True

    def draw(self, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, (2,), 0, jnp.asarray([2, self.side], jnp.int32), jnp.int32)

    def show(self, state: State) -> jax.Array:
        upright, place = state.cue
        line = jnp.where(jnp.arange(self.side) == place, 255, 0).astype(jnp.uint8)
        level = jnp.broadcast_to(line[:, None], (self.side, self.side))
        return jnp.where(upright == 1, level.T, level)[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return right(action, state.cue[0])

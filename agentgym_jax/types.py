"""The arrays that travel through a training program.

Shape legend, used everywhere: T time steps of a rollout, N environments, A agents, B batch, L window length, U updates of
an iteration, P population members, D devices. Everything is time-major; a single-agent environment is A = 1 here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct


class Clock(NamedTuple):
    """The time of a run: two int32 scalars that stay outside the vmapped state, so that no branch becomes a select."""

    iteration: Any  # −w … −1 while warming up, 0 … total − 1 while training
    total: Any

    @property
    def progress(self) -> jax.Array:
        """The part of the run that is done, float32 in [0, 1]."""
        return jnp.maximum(self.iteration, 0) / jnp.float32(self.total)


class Across(NamedTuple):
    """What the devices that share one member's environments do together; the defaults are those of a single device."""

    mean: Callable[[Any], Any] = lambda x: x
    max: Callable[[Any], Any] = lambda x: x
    size: int = 1
    index: Callable[[], Any] = lambda: 0

    def own_key(self, key: jax.Array) -> jax.Array:
        """A key for this device alone, where all hold the same `key`; that key itself on a single device."""
        return key if self.size == 1 else jax.random.fold_in(key, self.index())

    def own_part(self, x: jax.Array, axis: int = 0) -> jax.Array:
        """This device's part of an axis of environments: the index-th of `size` equal slices."""
        if self.size == 1:
            return x
        part = x.shape[axis] // self.size
        return jax.lax.dynamic_slice_in_dim(x, self.index() * part, part, axis)


class Sizes(NamedTuple):
    """Environments on this device (N) and rollout length (T)."""

    num_envs: int
    rollout_length: int


@struct.dataclass
class Transition:
    """One step of every agent, [T, N, A, ...]. A field that an algorithm's `record` does not name is None."""

    observation: Any = None  # what was acted on
    action: Any = None
    reward: Any = None  # float32 [T, N, A]
    discount: Any = None  # float32 [T, N, A]: 0 only at a true end
    alive: Any = None  # bool [T, N, A]: could act, so its row weighs
    next_alive: Any = None
    last: Any = None  # bool [T, N]: the episode ended with this step
    reset: Any = None  # bool [T, N, A]: `observation` is an agent's first
    action_mask: Any = None  # bool [T, N, A, n], () without masks
    next_action_mask: Any = None
    next_observation: Any = None  # what the action led to, before any reset
    world: Any = None  # [T, N, W]
    next_world: Any = None
    extras: Any = None  # what `act` wants to remember


@struct.dataclass
class Trajectory:
    steps: Transition  # [T, N, A, ...]
    carry: Any  # the actor's carry before step 0, [N, A, ...]


@struct.dataclass
class Batch:
    """What `learn` reads."""

    steps: Transition  # [L, B, A, ...]
    carry: Any = ()  # before step 0, [B, A, ...], or ()
    index: Any = None  # int32 [B]: where the memory keeps these rows
    probability: Any = None  # float32 [B]: with which they were drawn; None when all are used


@struct.dataclass
class EpisodeStats:
    """Running sums of the episodes in progress, [N]."""

    episode_return: jax.Array  # a team reward counted once, individual rewards summed over agents
    length: jax.Array  # int32
    metrics: Any  # {name: float32 [N]}: sums; for `last` metrics the newest value
    groups: Any  # {group: float32 [N]}: rewards summed over its agents; {} without groups, and where a team shares one reward


@struct.dataclass
class ActorState:
    env_state: Any  # [N, ...]
    timestep: Any  # TimeStep [N, A, ...]: what to act on next
    task: Any  # which task each environment plays; () when it is fixed
    carry: Any  # hidden state, [N, A, ...]
    reset: jax.Array  # bool [N, A]
    stats: EpisodeStats


@struct.dataclass
class Best:
    score: jax.Array  # float32 []: the best mean greedy return so far
    learner: Any


@struct.dataclass
class TrainState:
    """The whole checkpoint: arrays only."""

    learner: Any
    actor: ActorState
    memory: Any
    tasks: Any
    best: Best
    key: jax.Array

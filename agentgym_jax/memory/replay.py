"""Replay: a ring of the newest rollouts, from which windows are drawn uniformly or by priority.

A window is either `length` neighbouring steps of one environment, beginning at any step (transitions, n-step returns), or one
whole pushed rollout with the carry before it (recurrent learners). Windows never cross the seam between the newest and the
oldest step and never hold an empty row; they may cross from one rollout into the next, and they may contain episode ends: rows
carry `last`, `discount` and `reset` for that. Agents of an environment stay together.

Where a push goes follows from the clock, which is not mapped: a population writes slices, not scatters. Rows are stored as
recorded: next observations too, since after an end they are the only copy, and where ends fall is not known in advance.

Prioritised (Schaul et al. 2016, arXiv:1511.05952, proportional): a window's odds are its priority over the sum of all. New
windows get the largest priority that there has been so far, 1 to begin with. `feedback` sets priorities, so it expects
(|δ| + ε)^α. Importance weights are the learner's: probability^−β over their maximum. A window of several steps gets a priority
when its last step is there, and loses it when its first is overwritten.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.checks import ConfigError, check_size, check_whole
from agentgym_jax.memory import sum_tree
from agentgym_jax.memory.base import Memory
from agentgym_jax.types import Batch, Clock, Sizes, Trajectory

LEAST, MOST = 1e-30, 1e30  # priorities stay between, so that every window can be drawn and no sum overflows


@struct.dataclass
class Replay:
    """What is stored; R = slots · T rows."""

    steps: Any  # Transition [R, N, A, ...]
    carry: Any  # [slots, N, A, ...] before each rollout; () unless windows are whole rollouts
    tree: Any  # SumTree over windows; () when uniform
    highest: Any  # float32 []: the largest priority so far; () when uniform


@dataclasses.dataclass(frozen=True)
class _Ring:
    """The static parts. A place is where a window may begin: a step, or with `whole` a rollout; each holds N windows."""

    sizes: Sizes
    slots: int  # rollouts that fit
    batch_size: int
    length: int  # places that a window covers: L, or with `whole` 1
    whole: bool
    warmup: int

    @property
    def per_push(self) -> int:
        return 1 if self.whole else self.sizes.rollout_length

    @property
    def places(self) -> int:
        return self.slots * self.per_push

    @property
    def windows(self) -> int:
        return self.places * self.sizes.num_envs

    def pushed(self, clock: Clock) -> jax.Array:
        """Rollouts pushed since the beginning of warm-up, this iteration's among them; int32 []."""
        return clock.iteration + self.warmup + 1

    # ---- writing

    def init(self, trajectory: Trajectory) -> Replay:
        rows = self.slots * self.sizes.rollout_length
        steps = jax.tree.map(lambda x: jnp.zeros((rows, *x.shape[1:]), x.dtype), trajectory.steps)
        carry = jax.tree.map(lambda x: jnp.zeros((self.slots, *x.shape), x.dtype), trajectory.carry) if self.whole else ()
        return Replay(steps, carry, (), ())

    def push(self, memory: Replay, trajectory: Trajectory, clock: Clock) -> Replay:
        slot = (clock.iteration + self.warmup) % self.slots
        row = slot * self.sizes.rollout_length

        def write(ring, x, at):
            return jax.lax.dynamic_update_slice_in_dim(ring, x, at, axis=0)

        steps = jax.tree.map(lambda ring, x: write(ring, x, row), memory.steps, trajectory.steps)
        if not self.whole:
            return memory.replace(steps=steps)
        carry = jax.tree.map(lambda ring, x: write(ring, x[None], slot), memory.carry, trajectory.carry)
        return memory.replace(steps=steps, carry=carry)

    # ---- reading

    def sample(self, memory: Replay, trajectory: Trajectory, key: jax.Array, clock: Clock) -> Batch:
        """Every stored window has the same odds."""
        pushed = self.pushed(clock)
        oldest = jnp.where(pushed > self.slots, pushed % self.slots, 0) * self.per_push
        begins = jnp.minimum(pushed, self.slots) * self.per_push - self.length + 1  # places where a window may begin
        pick = jax.random.randint(key, (self.batch_size,), 0, begins * self.sizes.num_envs)
        place = (oldest + pick // self.sizes.num_envs) % self.places
        index = place * self.sizes.num_envs + pick % self.sizes.num_envs
        odds = 1.0 / (begins * self.sizes.num_envs).astype(jnp.float32)
        return self.gather(memory, index, jnp.broadcast_to(odds, (self.batch_size,)))

    def gather(self, memory: Replay, index: jax.Array, probability: jax.Array) -> Batch:
        """The windows `index` [B] as steps [L, B, A, ...]."""
        place, env = index // self.sizes.num_envs, index % self.sizes.num_envs
        first, length = place, self.length
        if self.whole:
            first, length = place * self.sizes.rollout_length, self.sizes.rollout_length
        offsets = jnp.arange(length, dtype=jnp.int32)[:, None]
        row = (first[None, :] + offsets) % (self.slots * self.sizes.rollout_length)
        steps = jax.tree.map(lambda x: x.at[row, env[None, :]].get(mode="promise_in_bounds"), memory.steps)
        carry = jax.tree.map(lambda x: x.at[place, env].get(mode="promise_in_bounds"), memory.carry)
        return Batch(steps, carry, index, probability)


@dataclasses.dataclass(frozen=True)
class _Prioritised(_Ring):
    """As above, with priorities; a window's leaf is its place · N + its environment."""

    def init(self, trajectory: Trajectory) -> Replay:
        return super().init(trajectory).replace(tree=sum_tree.empty(self.windows), highest=jnp.float32(1))

    def push(self, memory: Replay, trajectory: Trajectory, clock: Clock) -> Replay:
        """The windows that end in the new rollout become complete; those that began in the overwritten one are gone."""
        touched = min(self.per_push + self.length - 1, self.places)  # places, the newest `length` − 1 of them incomplete
        behind = jnp.minimum(self.pushed(clock), self.slots) * self.per_push  # places stored
        ahead = jnp.arange(touched, dtype=jnp.int32)
        complete = (ahead >= touched - behind) & (ahead <= touched - self.length)  # nothing lies before the first push
        value = jnp.where(complete, memory.highest, 0.0)
        value = jnp.broadcast_to(value[:, None], (touched, self.sizes.num_envs)).reshape(-1)
        end = self.pushed(clock) % self.slots * self.per_push  # the place after the newest
        tree = sum_tree.fill(memory.tree, self.windows, (end - touched) % self.places * self.sizes.num_envs, value)
        return super().push(memory, trajectory, clock).replace(tree=tree)

    def sample(self, memory: Replay, trajectory: Trajectory, key: jax.Array, clock: Clock) -> Batch:
        """A window's odds are its priority over the sum of all."""
        index = sum_tree.draw(memory.tree, key, self.batch_size)
        return self.gather(memory, index, memory.tree.priority(index) / memory.tree.total)

    def feedback(self, memory: Replay, batch: Batch, value: jax.Array) -> Replay:
        """Sets the priorities of a batch, [B]; a window drawn more than once gets the largest. NaN counts as the least."""
        value = jnp.clip(jnp.nan_to_num(value, nan=0.0), LEAST, MOST)
        tree = sum_tree.update(memory.tree, batch.index, value)
        return memory.replace(tree=tree, highest=jnp.maximum(memory.highest, jnp.max(value)))


def replay(
    sizes: Sizes,
    capacity: int,
    batch_size: int,
    length: int = 1,
    whole: bool = False,
    burn_in: int = 0,
    prioritised: bool = False,
    warmup: int = 0,
    updates: int = 1,
) -> Memory:
    """A memory of the newest `capacity` environment steps, drawn from with replacement.

    Args:
      sizes: N and T of a push. capacity: steps of all N environments together, a multiple of T · N.
      batch_size: windows of a sample, B. length: steps of a window, L; not used with `whole`.
      whole: windows are pushed rollouts, L = T, with their carry; `Batch.carry` is () otherwise.
      burn_in: leading rows of a whole window that only warm up the carry; the learner applies it, here it is checked.
      warmup: the algorithm's; the first sample follows its warmup + 1 pushes. updates: U.

    Raises:
      ConfigError: the sizes do not fit together.
    """
    for field, value in (("capacity", capacity), ("batch_size", batch_size), ("updates", updates), ("n_steps", length)):
        check_whole(f"algorithm.{field}", value)
    check_whole("algorithm.burn_in", burn_in, 0)
    check_size("algorithm.capacity", capacity)
    ring = (_Prioritised if prioritised else _Ring)(
        sizes=sizes,
        slots=slots_of(sizes, capacity),
        batch_size=batch_size,
        length=1 if whole else length,
        whole=whole,
        warmup=warmup,
    )
    _check_windows(ring, capacity, length, burn_in)
    memory = Memory(ring.init, ring.push, ring.sample, updates=updates)
    return memory._replace(feedback=ring.feedback) if isinstance(ring, _Prioritised) else memory


def slots_of(sizes: Sizes, capacity: int) -> int:
    """How many rollouts `capacity` environment steps are; ConfigError, with both numbers, where they are no whole number."""
    rollout = sizes.rollout_length * sizes.num_envs
    if capacity % rollout:
        near = max(capacity // rollout, 1) * rollout
        raise ConfigError(
            f"algorithm.capacity: {capacity} is not a multiple of train.num_envs · train.rollout_length = {rollout}; "
            f"choose {near} or {near + rollout}"
        )
    return capacity // rollout


def _check_windows(ring: _Ring, capacity: int, length: int, burn_in: int) -> None:
    """A full memory holds a batch, and the first sample finds a whole window."""
    rollout = ring.sizes.rollout_length
    held, unit = (ring.windows, f"windows of {rollout} steps") if ring.whole else (capacity, "steps")
    if ring.batch_size > held:
        raise ConfigError(
            f"algorithm.batch_size: {ring.batch_size} is more than the {held} {unit} that algorithm.capacity = {capacity} holds"
        )
    if ring.whole and burn_in >= rollout:
        raise ConfigError(f"algorithm.burn_in: {burn_in} leaves nothing to learn of train.rollout_length = {rollout} steps")
    stored = min(ring.warmup + 1, ring.slots) * rollout
    if not ring.whole and length > stored:
        raise ConfigError(
            f"algorithm.n_steps: {length} is more than the {stored} steps of an environment that are stored when learning "
            f"begins; lower it, or raise algorithm.capacity or the warm-up"
        )

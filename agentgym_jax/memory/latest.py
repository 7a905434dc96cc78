"""On-policy learning: the batch is the trajectory just made."""

from __future__ import annotations

from agentgym_jax.memory.base import Memory
from agentgym_jax.types import Batch


def latest() -> Memory:
    """A memory that holds nothing: every iteration learns once, from all of its own steps."""
    return Memory(
        init=lambda trajectory: (),
        push=lambda memory, trajectory, clock: memory,
        sample=lambda memory, trajectory, key, clock: Batch(trajectory.steps, trajectory.carry),
    )

"""What a memory is: the one difference between on-policy learning and replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


def _no_feedback(memory: Any, batch: Any, value: Any) -> Any:
    return memory


class Memory(NamedTuple):
    """Pure functions. `trajectory` is always the one just made.

    init(trajectory) -> memory, from a trajectory of zeros
    push(memory, trajectory, clock) -> memory
    sample(memory, trajectory, key, clock) -> Batch; called inside the scan over updates, so that one batch lives at a time
    feedback(memory, batch, value [B]) -> memory
    updates: U, how often an iteration samples and learns; static
    """

    init: Callable[..., Any]
    push: Callable[..., Any]
    sample: Callable[..., Any]
    feedback: Callable[..., Any] = _no_feedback
    updates: int = 1

"""What a logger is. It takes plain Python data that is on the host already and never touches the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np


class Logger(Protocol):
    """Where records go. `member` is {"seed": …, swept keys}, `index` its place in the population, `step` environment steps."""

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        """The means of one member over the iterations of one call."""
        ...

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        """The episodes of one member at one point: {greedy, sampled: {name: [E numbers]}}."""
        ...

    def flush(self) -> None:
        """Puts all records so far on the disk."""
        ...

    def close(self) -> None:
        """Flushes and ends the logger."""
        ...


def label(member: Mapping[str, Any]) -> str:
    """A member's name in files: `seed-3_learning_rate-0.001`."""
    return "_".join(f"{key.rpartition('.')[2]}-{value}" for key, value in member.items())


def evaluation_means(results: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """{"greedy/return": mean over the episodes, …} of one member at one point."""
    return {
        f"{policy}/{name}": float(np.mean(episodes, dtype=np.float64))
        for policy, values in results.items()
        for name, episodes in values.items()
    }

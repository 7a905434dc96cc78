"""Environment numbers that change over a run, such as the weight of a shaped reward that goes to 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from agentgym_jax.ops.schedules import Schedule
from agentgym_jax.tasks.base import Tasks


def scheduled(schedules: Mapping[str, Schedule], params_with: Callable[[Mapping[str, jax.Array]], Any]) -> Tasks:
    """An episode has the numbers of the time at which it starts, and keeps them.

    `schedules`: {name: Schedule} over the run. `params_with({name: float32 []})` gives the environment parameters with these
    numbers. Evaluation happens at the end of the clock, so it plays with the end values.
    """
    return Tasks(
        init=lambda: (),
        sample=lambda tasks, key, clock, index: {name: each.at(clock.progress) for name, each in schedules.items()},
        params=params_with,
    )

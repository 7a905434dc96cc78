"""Which task an environment gets when an episode starts. A task stays with its environment until that episode ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from agentgym_jax.types import Clock


class Tasks(NamedTuple):
    """Pure functions over tasks.

    init() -> tasks: what the sampler knows, part of the train state
    sample(tasks, key, clock, index) -> task: the task of an episode that starts now in environment `index`, int32 []
    params(task) -> the environment parameters of that task
    """

    init: Callable[[], Any]
    sample: Callable[[Any, jax.Array, Clock, jax.Array], Any]
    params: Callable[[Any], Any]


def fixed(params: Any) -> Tasks:
    """Every episode has the same parameters; they are constants of the program and take no room in its state."""
    return Tasks(init=lambda: (), sample=lambda tasks, key, clock, index: (), params=lambda task: params)

"""Several settings of an environment's numbers, dealt to the environments in turn: held-out settings in evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.tasks.base import Tasks


def dealt(settings: Sequence[Any]) -> Tasks:
    """Environment i always has `settings[i mod n]`; all are trees of one structure, shapes and dtypes."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *settings)
    return Tasks(
        init=lambda: (),
        sample=lambda tasks, key, clock, index: index % len(settings),
        params=lambda task: jax.tree.map(lambda x: x[task], stacked),
    )

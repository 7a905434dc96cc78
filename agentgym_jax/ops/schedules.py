"""Numbers that change over a run. A schedule's numbers are traced leaves, its kind is static: sweeping them compiles nothing.

Any field of a `Hyper` is a number or a `Schedule`. `over` and `warmup` are fractions of the run.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

KINDS = ("constant", "linear", "cosine")
UNITS = ("step", "iteration")


@struct.dataclass
class Schedule:
    """From `start` to `end`, reached where the fraction `over` of the run is done, after a rise from 0 over the part `warmup`.

    `kind` constant stays at `start`. `per` matters for a learning rate alone: `step` moves it with every gradient step,
    `iteration` holds it during an iteration, which is the staircase of PureJaxRL.
    """

    start: Any
    end: Any = 0.0
    over: Any = 1.0
    warmup: Any = 0.0
    kind: str = struct.field(pytree_node=False, default="linear")
    per: str = struct.field(pytree_node=False, default="step")

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"a schedule's `kind` must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.per not in UNITS:
            raise ValueError(f"a schedule's `per` must be one of {', '.join(UNITS)}, got {self.per!r}")

    def at(self, progress: jax.Array) -> jax.Array:
        """The value where the fraction `progress` of the run is done, float32 []; it stays at `end` beyond the end."""
        rise = jnp.clip(progress / jnp.maximum(self.warmup, 1e-8), 0.0, 1.0)
        after = (progress - self.warmup) / jnp.maximum(self.over - self.warmup, 1e-8)
        done = jnp.clip(after, 0.0, 1.0)
        if self.kind == "constant":
            value = jnp.asarray(self.start, jnp.float32)
        else:
            part = done if self.kind == "linear" else 0.5 - 0.5 * jnp.cos(jnp.pi * done)
            value = self.start + (self.end - self.start) * part
        return jnp.where(progress < self.warmup, rise * self.start, value)


def is_schedule(x: Any) -> bool:
    """Whether a number is a schedule."""
    return isinstance(x, Schedule)


def resolve(hyper: Any, progress: jax.Array) -> Any:
    """`hyper` with every schedule replaced by its value at `progress`, leaves float32 []."""
    return jax.tree.map(lambda x: x.at(progress) if is_schedule(x) else x, hyper, is_leaf=is_schedule)


def value_at(number: Any, progress: jax.Array) -> jax.Array:
    """One number or schedule at `progress`, float32 []."""
    return number.at(progress) if is_schedule(number) else number


def as_hyper(hyper: Any) -> Any:
    """Every leaf a strong float32 array: a Python float, a numpy number and an array give the same program."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), hyper)

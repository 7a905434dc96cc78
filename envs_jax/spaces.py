"""Spaces: what an observation or an action may be. Frozen and hashable, so that they can be static."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Bound = float | tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Discrete:
    """The integers 0 … n − 1, as an int32 scalar."""

    n: int

    def __post_init__(self):
        if self.n < 1:
            raise ValueError(f"Discrete.n must be at least 1, got {self.n}")

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.int32)

    def sample(self, key: jax.Array, leading: tuple[int, ...] = ()) -> jax.Array:
        """Uniform elements, int32 [*leading]."""
        return jax.random.randint(key, leading, 0, self.n, jnp.int32)

    def contains(self, x: jax.Array) -> jax.Array:
        """Whether `x` has this shape and kind of number, and lies inside: a boolean scalar."""
        x = jnp.asarray(x)
        if x.shape != () or not jnp.issubdtype(x.dtype, jnp.integer):
            return jnp.bool_(False)
        return (x >= 0) & (x < self.n)


@dataclasses.dataclass(frozen=True)
class MultiDiscrete:
    """A vector of `len(nvec)` integers, the i-th in 0 … nvec[i] − 1, int32."""

    nvec: tuple[int, ...]

    def __post_init__(self):
        object.__setattr__(self, "nvec", tuple(int(n) for n in self.nvec))
        if not self.nvec or min(self.nvec) < 1:
            raise ValueError(f"MultiDiscrete.nvec needs entries of at least 1, got {self.nvec}")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.nvec),)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.int32)

    def sample(self, key: jax.Array, leading: tuple[int, ...] = ()) -> jax.Array:
        """Uniform elements, int32 [*leading, len(nvec)]."""
        shape = (*leading, *self.shape)
        return jax.random.randint(key, shape, 0, jnp.broadcast_to(jnp.asarray(self.nvec, jnp.int32), shape), jnp.int32)

    def contains(self, x: jax.Array) -> jax.Array:
        """Whether `x` has this shape and kind of number, and lies inside: a boolean scalar."""
        x = jnp.asarray(x)
        if x.shape != self.shape or not jnp.issubdtype(x.dtype, jnp.integer):
            return jnp.bool_(False)
        return jnp.all((x >= 0) & (x < jnp.asarray(self.nvec, jnp.int32)))


def _hashable(bound: Any) -> Bound:
    """A number or a nested tuple of numbers; a constant array collapses to its number."""
    array = np.asarray(bound)
    if array.size and bool(np.all(array == array.flat[0])):
        return float(array.flat[0])

    def nest(x: Any) -> Any:
        return tuple(nest(row) for row in x) if isinstance(x, list) else float(x)

    return nest(array.astype(np.float64).tolist())


@dataclasses.dataclass(frozen=True)
class Box:
    """Arrays of one shape and dtype between `low` and `high` (numbers, or nested tuples of that shape; ±inf allowed)."""

    low: Any
    high: Any
    shape: tuple[int, ...] = ()
    dtype: Any = np.float32

    def __post_init__(self):
        object.__setattr__(self, "low", _hashable(self.low))
        object.__setattr__(self, "high", _hashable(self.high))
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        low, high = self.bounds()
        if not np.all(low <= high):
            raise ValueError(f"Box.low must not exceed Box.high, got {self.low} and {self.high}")

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """`low` and `high` as arrays of this shape, float64."""
        low, high = (np.broadcast_to(np.asarray(b, np.float64), self.shape) for b in (self.low, self.high))
        return low, high

    @property
    def bounded(self) -> bool:
        """Whether every bound is finite."""
        return bool(all(np.all(np.isfinite(b)) for b in self.bounds()))

    def sample(self, key: jax.Array, leading: tuple[int, ...] = ()) -> jax.Array:
        """Elements, [*leading, *shape]: uniform between finite bounds, normal (clipped) where a bound is infinite."""
        shape = (*leading, *self.shape)
        bounds = self.bounds()
        low, high = (jnp.broadcast_to(jnp.asarray(b, jnp.float32), shape) for b in bounds)
        if np.issubdtype(self.dtype, np.integer):
            return jax.random.randint(key, shape, low.astype(jnp.int32), high.astype(jnp.int32) + 1).astype(self.dtype)
        if self.bounded:
            return jax.random.uniform(key, shape, minval=low, maxval=high).astype(self.dtype)
        finite = jnp.broadcast_to(np.isfinite(bounds[0]) & np.isfinite(bounds[1]), shape)
        uniform = jax.random.uniform(key, shape, minval=jnp.where(finite, low, 0.0), maxval=jnp.where(finite, high, 1.0))
        normal = jnp.clip(jax.random.normal(key, shape), low, high)
        return jnp.where(finite, uniform, normal).astype(self.dtype)

    def contains(self, x: jax.Array) -> jax.Array:
        """Whether `x` has this shape and dtype and lies inside: a boolean scalar."""
        x = jnp.asarray(x)
        if x.shape != self.shape or x.dtype != self.dtype:
            return jnp.bool_(False)
        low, high = (jnp.asarray(b, jnp.float32) for b in self.bounds())
        return jnp.all((x >= low) & (x <= high))


Space = Discrete | MultiDiscrete | Box


def mask_size(space: Space) -> int:
    """The length of an action mask: n for Discrete, the heads side by side for MultiDiscrete, 0 for Box."""
    if isinstance(space, Discrete):
        return space.n
    return sum(space.nvec) if isinstance(space, MultiDiscrete) else 0

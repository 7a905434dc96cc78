"""Shuffles of 0 … n − 1 for minibatches."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

_MAX_STRIDES = 4096  # how many strides to choose from; more do not mix better
_SHORTEST_REACH = 16  # the largest stride must be at least this part of n; that holds up to about 185,000 rows
_MIN_STRIDES = 8  # below this an affine shuffle has too few outcomes, and an exact one is cheap


def strides(n: int) -> np.ndarray:
    """Strides a coprime to n with a·(n − 1) inside int32, spread evenly over 1 … n − 1; int32 [≤ 4096]."""
    largest = min(n - 1, (2**31 - 1) // max(n - 1, 1) - 1)
    candidates = np.unique(np.linspace(1, max(largest, 1), 4 * _MAX_STRIDES).astype(np.int64))
    coprime = candidates[[math.gcd(int(a), n) == 1 for a in candidates]]
    return coprime[np.linspace(0, len(coprime) - 1, min(len(coprime), _MAX_STRIDES)).astype(int)].astype(np.int32)


def affine_permutation(key: jax.Array, n: int) -> jax.Array:
    """A random permutation i -> (a·i + b) mod n, int32 [n]: no sort, so far cheaper than an exact shuffle.

    Every element is equally likely at every place; pairs are not independent. Falls back to an exact shuffle where n has
    too few strides, or is so large that a·(n − 1) inside int32 leaves only short ones, which would hardly mix.
    """
    choices = strides(n)
    if len(choices) < _MIN_STRIDES or choices[-1] < n // _SHORTEST_REACH:
        return jax.random.permutation(key, n).astype(jnp.int32)
    key_stride, key_shift = jax.random.split(key)
    stride = jnp.asarray(choices)[jax.random.randint(key_stride, (), 0, len(choices))]
    shift = jax.random.randint(key_shift, (), 0, n, jnp.int32)
    return (jnp.arange(n, dtype=jnp.int32) * stride % n + shift) % n


def exact_permutation(key: jax.Array, n: int) -> jax.Array:
    """A uniformly random permutation, int32 [n]."""
    return jax.random.permutation(key, n).astype(jnp.int32)

"""The library's own observation: a tree of hashable tuples, and the spaces of its leaves."""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import Any

import jax
import numpy as np

from envs_jax.spaces import Box, Space


@functools.cache
def _tuple(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


def tuples(tree: Any) -> Any:
    """The same tree with every dataclass a named tuple of the same fields, so that a tree of spaces can be hashed."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*map(tuples, tree))
    if dataclasses.is_dataclass(tree):
        fields = tuple(field.name for field in dataclasses.fields(tree))
        return _tuple(type(tree).__name__, fields)(*(tuples(getattr(tree, field)) for field in fields))
    return tree


def raw_spaces(spec: Any, observation: Any) -> Any:
    """A tree like `observation` (of `tuples`, its leaves shapes and dtypes) with the space of each leaf.

    The bounds are those of `spec`, the library's; the shape and dtype are what is emitted, which may differ.
    """
    if isinstance(observation, tuple):
        fields: tuple[str, ...] = observation._fields  # pyright: ignore[reportAttributeAccessIssue]
        return type(observation)(*(raw_spaces(getattr(spec, name), getattr(observation, name)) for name in fields))
    return _space(spec, observation)


def _space(spec: Any, leaf: jax.ShapeDtypeStruct) -> Space:
    low, high = getattr(spec, "minimum", -np.inf), getattr(spec, "maximum", np.inf)
    if leaf.dtype == np.bool_:
        low, high = 0, 1
    return Box(np.asarray(low, np.float64), np.asarray(high, np.float64), leaf.shape, leaf.dtype)

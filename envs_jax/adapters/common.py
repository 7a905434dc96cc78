"""What every adapter does to a library: steady dtypes, and constructor arguments that are checked by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from envs_jax.names import unknown

Chosen = TypeVar("Chosen")


def strong(tree: Any) -> Any:
    """The same tree with every leaf a strongly typed array."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.asarray(leaf).dtype), tree)


def cast_like(template: Any, tree: Any) -> Any:
    """The tree with the strong dtypes of `template`, a tree of the same structure.

    Libraries emit one dtype from reset and another from step; a loop that carries their state needs one.
    """
    return jax.tree.map(lambda like, leaf: jnp.asarray(leaf, like.dtype), template, tree)


def check_arguments(environment: str, accepted: Iterable[str], given: Iterable[str]) -> None:
    """Raises ValueError at the first argument that the environment does not take, with the nearest that it does."""
    accepted = list(accepted)
    for name in given:
        if name not in accepted:
            raise unknown(f"argument of {environment}", name, accepted)


def check_time_limit(environment: str, time_limit: Any) -> int:
    """`time_limit` as an int; raises ValueError unless it is a whole number of steps, at least one."""
    if isinstance(time_limit, bool) or not isinstance(time_limit, int) or time_limit < 1:
        raise ValueError(f"{environment}: time_limit must be a whole number of steps, at least 1, got {time_limit!r}")
    return time_limit


def check_whole(environment: str, least: int, **arguments: Any) -> None:
    """Raises ValueError unless every argument is a whole number, at least `least`."""
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{environment}: {name} must be a whole number, at least {least}, got {value!r}")


def choose(environment: str, argument: str, value: Any, known: Mapping[str, Chosen]) -> Chosen:
    """What the name `value` stands for; raises ValueError with the nearest names, or all, when there is none."""
    if not isinstance(value, str) or value not in known:
        raise unknown(f"{argument} of {environment}", value, known)
    return known[value]

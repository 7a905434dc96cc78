"""Continuous actions as a choice among a few values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, TimeStep
from envs_jax.spaces import Discrete, MultiDiscrete, Space
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.bounds import action_bounds, finite

_NAME = "discretise_actions"
_LARGEST = 4096  # actions of one joint choice: a policy has a logit for each


class DiscretiseActions(Wrapper):
    """A choice of `bins` values in each dimension of a finite Box, evenly spaced; the first and last are its exact bounds.

    The action becomes a MultiDiscrete with a head for every dimension (Tavakoli et al. 2018, arXiv:1711.08946). `bins` is one
    number or one for each dimension. `joint` makes it one Discrete of all combinations instead, in which the first dimension
    changes fastest: action Σ_d choice_d · Π_{e<d} bins_e. Where groups of agents have fewer dimensions than others, their
    surplus choices are masked but for 0. Raises ValueError for a space that is no finite floating-point Box, fewer than two
    bins, and more than 4096 joint actions.
    """

    def __init__(self, env: Env, bins: int | Sequence[int], joint: bool = False):
        spec = env.spec
        if spec.groups and len(finite(_NAME, spec.action_space).shape) != 1:
            raise ValueError(f"{_NAME} needs vectors where agents form groups, got {spec.action_space}")
        if not isinstance(joint, bool):
            raise ValueError(f"{_NAME}.joint must be true or false, got {joint!r}")
        self._bins = _checked(bins, math.prod(finite(_NAME, spec.action_space).shape))
        if joint and math.prod(self._bins) > _LARGEST:
            raise ValueError(
                f"{_NAME}: {math.prod(self._bins):,} joint actions are more than {_LARGEST}; use fewer bins or joint: false"
            )
        self._joint = joint
        groups = tuple(dataclasses.replace(group, action_space=self._space(group.action_space)) for group in spec.groups)
        super().__init__(env, dataclasses.replace(spec, action_space=self._space(spec.action_space), groups=groups))
        self._values = _values(*action_bounds(_NAME, spec), self._bins, len(spec.action_space.shape))
        rows = [self._legal(math.prod(group.action_space.shape), group.size) for group in spec.groups]
        self._mask = np.concatenate(rows) if rows else None

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        shape = (*(() if self.spec.num_agents is None else (self.spec.num_agents,)), *self.env.spec.action_space.shape)
        if self._joint:
            strides = np.cumprod([1, *self._bins[:-1]])
            action = jnp.stack([action // int(s) % n for s, n in zip(strides, self._bins, strict=True)], axis=-1)
        choice = action.reshape(*action.shape[:-1], len(self._bins), 1)
        values = jnp.broadcast_to(self._values, (*choice.shape[:-1], self._values.shape[-1]))
        continuous = jnp.take_along_axis(values, choice, axis=-1, mode="clip").reshape(shape)
        return self.env.advance(key, state, continuous, params)

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        return timestep if self._mask is None else timestep.replace(action_mask=jnp.asarray(self._mask))

    def _space(self, space: Space) -> Discrete | MultiDiscrete:
        """What replaces a Box, that of a group too."""
        bins = self._bins[: math.prod(finite(_NAME, space).shape)]
        return Discrete(math.prod(bins)) if self._joint else MultiDiscrete(bins)

    def _legal(self, dimensions: int, size: int) -> np.ndarray:
        """bool [size, n]: the mask of a group's agents, who have this many dimensions."""
        if self._joint:
            row = np.arange(math.prod(self._bins)) < math.prod(self._bins[:dimensions])
        else:
            row = np.concatenate([(np.arange(n) == 0) | (head < dimensions) for head, n in enumerate(self._bins)])
        return np.tile(row, (size, 1))


def _checked(bins: Any, dimensions: int) -> tuple[int, ...]:
    """Bins of every dimension."""
    listed: tuple[Any, ...] = tuple(bins) if isinstance(bins, list | tuple) else (bins,) * dimensions
    if len(listed) != dimensions or any(isinstance(n, bool) or not isinstance(n, int) or n < 2 for n in listed):
        raise ValueError(
            f"{_NAME}.bins must be a whole number of at least 2, or {dimensions} of them, one a dimension; got {bins!r}"
        )
    return listed


def _values(low: np.ndarray, high: np.ndarray, bins: tuple[int, ...], dimensions: int) -> np.ndarray:
    """float32 [..., D, most bins]: what each choice means; shorter rows are filled up with their last."""
    leading = low.shape[: low.ndim - dimensions]
    low, high = (np.asarray(bound, np.float32).reshape(*leading, len(bins)) for bound in (low, high))
    values = np.repeat(high[..., None], max(bins), axis=-1)
    for head, n in enumerate(bins):
        values[..., head, :n] = np.linspace(low[..., head], high[..., head], n, axis=-1)
        values[..., head, 0], values[..., head, n - 1] = low[..., head], high[..., head]
    return values

"""Minibatches of a rollout: several passes over its rows in random order, as rows or as whole windows of environments."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import jax

from agentgym_jax.checks import ConfigError, check_choice, check_divides, check_size, check_whole
from agentgym_jax.ops.permutation import affine_permutation, exact_permutation
from agentgym_jax.ops.trees import flatten_rows
from agentgym_jax.types import Sizes


class Passes(Protocol):
    """The settings of an algorithm that this file reads."""

    @property
    def epochs(self) -> int: ...  # passes over each rollout, ≥ 1

    @property
    def minibatches(self) -> int: ...  # parts of each pass, ≥ 1; must divide the rows that are shuffled

    @property
    def minibatch_by(self) -> str: ...  # step: rows of T·N; environment: whole windows of N; auto: environment when recurrent

    @property
    def permutation(self) -> str: ...  # affine: fast; exact: uniformly random, by sorting


def check_passes(config: Passes) -> None:
    """Refuses values that none of the settings may have."""
    check_whole("algorithm.epochs", config.epochs)
    check_whole("algorithm.minibatches", config.minibatches)
    check_choice("algorithm.minibatch_by", config.minibatch_by, ("auto", "step", "environment"))
    check_choice("algorithm.permutation", config.permutation, ("affine", "exact"))


@dataclasses.dataclass(frozen=True)
class Minibatches:
    """How the rows of a rollout [T, N, A, ...] go through the gradient steps of one `learn`."""

    config: Passes
    sizes: Sizes
    by_environment: bool

    @property
    def steps(self) -> int:
        """Gradient steps of one `learn`."""
        return self.config.epochs * self.config.minibatches

    def order(self, key: jax.Array) -> jax.Array:
        """Which rows each gradient step takes, int32 [epochs · minibatches, rows of a minibatch]."""
        count = self.sizes.num_envs if self.by_environment else self.sizes.num_envs * self.sizes.rollout_length
        permute = affine_permutation if self.config.permutation == "affine" else exact_permutation
        order = jax.vmap(lambda key: permute(key, count))(jax.random.split(key, self.config.epochs))
        return order.reshape(self.steps, -1)

    def gather(self, rows: Any, carry: Any, index: jax.Array) -> tuple[Any, Any]:
        """One minibatch [L, B, A, ...]: whole windows of some environments, or steps as windows of length 1."""
        if self.by_environment:
            return jax.tree.map(lambda x: x[:, index], rows), jax.tree.map(lambda x: x[index], carry)
        return jax.tree.map(lambda x: x[index][None], flatten_rows(rows)), carry  # feed-forward: it has no leaves


def make_minibatches(config: Passes, recurrent: bool, sizes: Sizes) -> Minibatches:
    """Raises ConfigError, with the numbers, for what does not fit together."""
    if recurrent and config.minibatch_by == "step":
        raise ConfigError("algorithm.minibatch_by: `step` would tear a recurrent network's windows; use `environment`")
    by_environment = recurrent if config.minibatch_by == "auto" else config.minibatch_by == "environment"
    rows = ("train.num_envs", sizes.num_envs)
    if not by_environment:
        rows = ("train.num_envs · train.rollout_length", sizes.num_envs * sizes.rollout_length)
    check_divides("algorithm.minibatches", config.minibatches, *rows)
    check_size(f"algorithm.epochs · {rows[0]}", config.epochs * rows[1])
    return Minibatches(config, sizes, by_environment)

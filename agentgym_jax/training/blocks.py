"""A population that is larger than the memory of its devices: some members at a time, the others wait on the host."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.training.parallel import Population
from agentgym_jax.types import Clock


class Blocks:
    """`size` members as blocks of a smaller population, which is compiled once; it serves like one `Population`.

    In every call the blocks go over the devices one after another: long calls (`train.calls` small) move less. Inputs and
    states are lists with an entry for each block; the last block is filled up with copies of the last member.
    """

    def __init__(self, population: Population, size: int):
        self.population, self.size = population, size
        self.loop, self.mode, self.devices, self.rows = population.loop, population.mode, population.devices, population.rows
        self.clock, self.round = population.clock, population.round

    def place(self, tree: Any) -> list[Any]:
        """Leaves [P, ...] in host order as blocks [B, ...], on the host: each call places them."""
        count, block = -(-self.size // self.population.size), self.population.size
        index = np.minimum(np.arange(count * block), self.size - 1).reshape(count, block)
        return [jax.tree.map(lambda x, rows=rows: x[rows], tree) for rows in index]

    def members(self, blocks: list[Any]) -> Any:
        """The inverse of `place`: leaves [P, ...] without what fills the last block."""
        return jax.tree.map(lambda *parts: _joined(parts)[: self.size], *blocks)

    def compile(self, keys: list[Any], hyper: list[Any]) -> float:
        """See `Population.compile`."""
        return self.population.compile(self.population.place(keys[0]), self.population.place(hyper[0]))

    def init(self, keys: list[Any], hyper: list[Any]) -> list[Any]:
        """The states of all members, on the host."""
        place, back = self.population.place, self.population.members
        return [back(self.population.init(place(key), place(numbers))) for key, numbers in zip(keys, hyper, strict=True)]

    def advance(self, states: list[Any], hyper: list[Any], clock: Clock) -> tuple[list[Any], list[Any]]:
        """See `Population.advance`."""
        return self._each(self.population.advance, states, hyper, clock)

    def evaluate(self, states: list[Any], hyper: list[Any], number: jax.Array) -> tuple[list[Any], list[Any]]:
        """See `Population.evaluate`."""
        return self._each(self.population.evaluate, states, hyper, number)

    def _each(self, program: Any, states: list[Any], hyper: list[Any], shared: Any) -> tuple[list[Any], list[Any]]:
        place, back, after, outputs = self.population.place, self.population.members, [], []
        for state, numbers in zip(states, hyper, strict=True):
            state, output = program(place(state), place(numbers), shared)
            after.append(back(state))
            outputs.append(back(output))
        return after, outputs


def _joined(parts: tuple[Any, ...]) -> Any:
    """Arrays of the host, or typed keys, one behind the other."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else jnp.concatenate(parts)

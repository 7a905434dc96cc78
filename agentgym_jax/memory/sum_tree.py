"""A sum tree: draws items in proportion to their priorities, and changes priorities, in a few vectorised steps.

Every node has `FANOUT` children, so that a hundred thousand items need six levels and a node's children are one short vector.
A level is an array [nodes, FANOUT]; the last one holds the priorities, entry i of a level above the sum of row i of the next.

What keeps it exact:
  * a sum is always computed anew from its children, never changed by a difference, so that nothing drifts;
  * each level of a draw has a random number of its own, so that the odds do not coarsen with the number of items (one float32
    for the whole tree has 2^23 values);
  * a child without priority is never taken, however the sums round.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

FANOUT = 8
_FAST = "promise_in_bounds"


@struct.dataclass
class SumTree:
    levels: tuple[jax.Array, ...]  # float32 [nodes, FANOUT] each; from the root's children to the priorities

    @property
    def total(self) -> jax.Array:
        """The sum of all priorities, float32 []."""
        return jnp.sum(self.levels[0])

    def priority(self, index: jax.Array) -> jax.Array:
        """The priorities of the items `index`, float32 of its shape."""
        return self.levels[-1].at[index // FANOUT, index % FANOUT].get(mode=_FAST)


def empty(capacity: int) -> SumTree:
    """A tree of `capacity` ≥ 1 items, all with priority 0."""
    nodes = [-(-capacity // FANOUT)]
    while nodes[0] > 1:
        nodes.insert(0, -(-nodes[0] // FANOUT))
    return SumTree(tuple(jnp.zeros((count, FANOUT), jnp.float32) for count in nodes))


def update(tree: SumTree, index: jax.Array, value: jax.Array) -> SumTree:
    """Gives the items `index`, int32 [B], priorities `value`, float32 [B] ≥ 0; of an item's duplicates the largest counts."""
    node, child = index // FANOUT, index % FANOUT
    level = tree.levels[-1].at[node, child].set(0.0, mode=_FAST).at[node, child].max(value, mode=_FAST)
    levels = [level]
    for above in reversed(tree.levels[:-1]):
        level = _resum(above, level, node)
        node = node // FANOUT
        levels.insert(0, level)
    return SumTree(tuple(levels))


def fill(tree: SumTree, capacity: int, start: jax.Array, value: jax.Array) -> SumTree:
    """Gives neighbouring items start, start + 1, … (the first follows the last of `capacity`) the priorities `value`.

    Args: start int32 [] in [0, capacity); value float32 [M], 1 ≤ M ≤ capacity.
    """
    index = (start + jnp.arange(value.shape[0], dtype=jnp.int32)) % capacity
    level = tree.levels[-1].at[index // FANOUT, index % FANOUT].set(value, mode=_FAST)
    levels, width, count = [level], capacity, value.shape[0]
    for above in reversed(tree.levels[:-1]):
        start, width = start // FANOUT, -(-width // FANOUT)
        count = min(-(-count // FANOUT) + 2, width)  # unaligned at both ends, and at the seam
        level = _resum(above, level, (start + jnp.arange(count, dtype=jnp.int32)) % width)
        levels.insert(0, level)
    return SumTree(tuple(levels))


def _resum(above: jax.Array, level: jax.Array, node: jax.Array) -> jax.Array:
    """The level `above` with the sums of the nodes `node` of `level` computed anew; duplicates write the same number."""
    total = jnp.sum(level.at[node].get(mode=_FAST), axis=-1)
    return above.at[node // FANOUT, node % FANOUT].set(total, mode=_FAST)


def draw(tree: SumTree, key: jax.Array, count: int) -> jax.Array:
    """`count` items with replacement, int32 [count], each with odds in proportion to its priority; some priority must be > 0.

    The first level is stratified as in Schaul et al. (2016), appendix B.2.1: draw j falls into the j-th of `count` equal parts.
    """
    uniform = jax.random.uniform(key, (len(tree.levels), count))
    strata = (jnp.arange(count, dtype=jnp.float32) + uniform[0]) / count
    return descend(tree, uniform.at[0].set(strata))


def descend(tree: SumTree, marks: jax.Array) -> jax.Array:
    """The items, int32 [B], that lie at the marks [levels, B]: the share, in [0, 1], of each node's sum to go past."""
    node = jnp.zeros(marks.shape[1], jnp.int32)
    order = jnp.arange(FANOUT, dtype=jnp.int32)[None, :]
    for level, mark in zip(tree.levels, marks, strict=True):
        children = level.at[node].get(mode=_FAST)
        sums = _running_sums(children)
        past = sums > mark[:, None] * sums[:, -1:]
        # The first child past the mark; where rounding leaves none, the last; one without priority never.
        preference = jnp.where(children > 0, jnp.where(past, 2 * FANOUT - order, order), -1)
        node = node * FANOUT + jnp.argmax(preference, axis=-1).astype(jnp.int32)
    return node


def _running_sums(x: jax.Array) -> jax.Array:
    """Cumulative sums along the last axis, left to right; written out, it becomes one loop with its surroundings."""
    sums = [x[:, 0]]
    for child in range(1, FANOUT):
        sums.append(sums[-1] + x[:, child])
    return jnp.stack(sums, axis=-1)

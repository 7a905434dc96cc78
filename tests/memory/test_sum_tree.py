"""The sum tree against a plain array: exact sums after any updates, proportional draws, never an item without priority."""

from __future__ import annotations

import functools

import hypothesis
import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from agentgym_jax.memory import sum_tree
from agentgym_jax.memory.sum_tree import FANOUT, SumTree

CAPACITY, BATCH = 75, 6  # three levels, none of them full
jit_update = jax.jit(sum_tree.update)
jit_fill = jax.jit(sum_tree.fill, static_argnums=1)
jit_draw = jax.jit(sum_tree.draw, static_argnums=2)
jit_descend = jax.jit(sum_tree.descend)

priorities = arrays.arrays(np.float32, BATCH, elements=st.floats(0.0, 1e4, width=32, allow_subnormal=False))
indices = arrays.arrays(np.int32, BATCH, elements=st.integers(0, CAPACITY - 1))


def filled(values) -> SumTree:
    values = jnp.asarray(values, jnp.float32)
    return jit_fill(sum_tree.empty(len(values)), len(values), jnp.int32(0), values)


def leaves(tree: SumTree) -> np.ndarray:
    return np.asarray(tree.levels[-1]).reshape(-1)


def check_sums(tree: SumTree) -> None:
    for above, below in zip(tree.levels[:-1], tree.levels[1:], strict=True):
        sums = np.asarray(below).sum(axis=1)
        np.testing.assert_allclose(np.asarray(above).reshape(-1)[: len(sums)], sums, rtol=1e-6)
    np.testing.assert_allclose(tree.total, leaves(tree).astype(np.float64).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("capacity", "nodes"), [(1, [1]), (8, [1]), (9, [1, 2]), (64, [1, 8]), (65, [1, 2, 9]), (513, [1, 2, 9, 65])]
)
def test_every_item_has_a_leaf_and_nothing_else_has_priority(capacity, nodes):
    tree = filled(np.ones(capacity))
    assert [level.shape for level in tree.levels] == [(count, FANOUT) for count in nodes]
    np.testing.assert_array_equal(leaves(tree), np.arange(nodes[-1] * FANOUT) < capacity)
    assert tree.total == capacity
    np.testing.assert_array_equal(tree.priority(jnp.arange(capacity)), np.ones(capacity))


@hypothesis.settings(max_examples=25)
@hypothesis.given(steps=st.lists(st.tuples(indices, priorities, st.integers(0, CAPACITY - 1)), min_size=1, max_size=6))
def test_updates_and_fills_equal_those_of_an_array(steps):
    tree, model = sum_tree.empty(CAPACITY), np.zeros(CAPACITY, np.float32)
    for index, value, start in steps:
        tree = jit_fill(tree, CAPACITY, start, value)
        model[(start + np.arange(BATCH)) % CAPACITY] = value
        tree = jit_update(tree, index, value)
        for item in set(index):
            model[item] = value[index == item].max()
        np.testing.assert_array_equal(leaves(tree)[:CAPACITY], model)
        check_sums(tree)


def test_a_fill_of_any_length_from_any_start_reaches_every_sum():
    for capacity, count in ((75, 75), (75, 17), (64, 9), (9, 9), (1, 1)):
        fill = jax.jit(functools.partial(sum_tree.fill, capacity=capacity))
        for start in range(0, capacity, 7):
            tree = fill(filled(np.full(capacity, 5.0)), start=start, value=jnp.arange(count, dtype=jnp.float32))
            check_sums(tree)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    values=arrays.arrays(np.float32, CAPACITY, elements=st.sampled_from([0.0, 0.0, 1e-30, 1e-6, 0.1, 1.0, 3.3, 1e7, 1e30])),
    marks=st.lists(st.sampled_from([0.0, 0.3, 0.5, 1 - 2.0**-23, 1.0]), min_size=3 * BATCH, max_size=3 * BATCH),
)
def test_nothing_without_priority_is_drawn_at_any_mark(values, marks):
    """Marks 0 and 1 lie on the boundary itself, and priorities of 1e30 beside 1e-30 leave rounding every chance."""
    hypothesis.assume(values.any())
    drawn = jit_descend(filled(values), jnp.asarray(marks, jnp.float32).reshape(3, BATCH))
    assert np.all(values[drawn] > 0)


def test_a_single_item_with_priority_is_always_drawn():
    for item in (0, 7, 8, 74):
        values = np.zeros(CAPACITY)
        values[item] = 0.1
        np.testing.assert_array_equal(jit_draw(filled(values), jax.random.key(item), BATCH), np.full(BATCH, item))


def test_draws_are_proportional_to_priorities():
    values = np.random.default_rng(0).exponential(size=CAPACITY) * (np.arange(CAPACITY) % 5 > 0)
    draws = jax.jit(jax.vmap(lambda key: sum_tree.draw(filled(values), key, BATCH)))
    counts = np.bincount(np.asarray(draws(jax.random.split(jax.random.key(0), 10_000))).reshape(-1), minlength=CAPACITY)
    assert counts[values == 0].sum() == 0
    expected = values / values.sum() * counts.sum()
    assert scipy.stats.chisquare(counts[values > 0], expected[values > 0]).pvalue > 0.01


def test_draws_of_a_batch_are_spread_over_the_tree():
    """Stratified: with equal priorities each eighth of the items gets an eighth of the batch."""
    drawn = np.asarray(jit_draw(filled(np.ones(64)), jax.random.key(3), 32))
    np.testing.assert_array_equal(np.bincount(drawn // 8), np.full(8, 4))


def test_sums_do_not_drift_over_tens_of_thousands_of_updates():
    """Priorities fall by eight orders of magnitude: in sums changed by differences the rounding of the first would stay."""
    updates = 40_000

    def step(tree, inputs):
        key, scale = inputs
        key_index, key_value = jax.random.split(key)
        index = jax.random.randint(key_index, (BATCH,), 0, CAPACITY)
        return sum_tree.update(tree, index, scale * jax.random.uniform(key_value, (BATCH,), minval=0.1)), None

    inputs = (jax.random.split(jax.random.key(0), updates), jnp.geomspace(1e6, 1e-2, updates, dtype=jnp.float32))
    tree = jax.jit(lambda tree: jax.lax.scan(step, tree, inputs)[0])(filled(np.ones(CAPACITY)))
    exact = leaves(tree).astype(np.float64).sum()
    assert abs(float(tree.total) - exact) < 1e-5 * exact
    check_sums(tree)

"""Functions on pytrees."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.ops.trees import all_finite, flatten_rows, select, strong


def test_select_picks_whole_rows_of_every_leaf_and_keeps_types():
    condition = jnp.array([True, False, True])
    keys = jax.random.split(jax.random.key(0), 6)
    on = {"a": jnp.ones((3, 2, 2)), "b": jnp.arange(3), "keys": keys[:3], "flag": jnp.ones(3, bool)}
    off = {"a": jnp.zeros((3, 2, 2)), "b": -jnp.arange(3), "keys": keys[3:], "flag": jnp.zeros(3, bool)}
    got = jax.jit(select)(condition, on, off)
    np.testing.assert_array_equal(got["a"][:, 0, 0], [1, 0, 1])
    np.testing.assert_array_equal(got["b"], [0, -1, 2])
    np.testing.assert_array_equal(got["flag"], [True, False, True])
    for row, source in enumerate((on, off, on)):
        np.testing.assert_array_equal(jax.random.key_data(got["keys"][row]), jax.random.key_data(source["keys"][row]))
    assert jax.tree.map(jnp.result_type, got) == jax.tree.map(jnp.result_type, on)
    whole = select(jnp.bool_(True), on, off)
    np.testing.assert_array_equal(whole["b"], on["b"])


def test_select_is_blind_to_garbage_in_what_is_not_chosen():
    got = select(jnp.array([True, False]), jnp.float32([1.0, jnp.nan]), jnp.float32([jnp.inf, 2.0]))
    np.testing.assert_array_equal(got, [1.0, 2.0])


def test_strong_makes_numbers_and_weak_arrays_strong():
    tree = strong({"a": 1.0, "b": 2, "c": jnp.asarray(3.0), "d": np.float32(4), "e": True})
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(tree))
    assert [tree[k].dtype.name for k in "abcde"] == ["float32", "int32", "float32", "float32", "bool"]
    assert jax.tree.leaves(strong({"key": jax.random.key(0)}))[0].dtype == jax.random.key(0).dtype


def test_flatten_rows_merges_leading_axes_in_order():
    x = jnp.arange(24).reshape(2, 3, 4)
    got = flatten_rows({"x": x, "y": x[..., 0]})
    np.testing.assert_array_equal(got["x"], x.reshape(6, 4))
    np.testing.assert_array_equal(got["y"], x[..., 0].reshape(6))
    np.testing.assert_array_equal(flatten_rows(x, axes=3), jnp.arange(24))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_all_finite(bad):
    good = {"a": jnp.ones(3), "n": jnp.arange(3), "key": jax.random.key(0)}
    assert all_finite(good) and all_finite({}) and all_finite({"n": jnp.arange(2)})
    assert not all_finite(good | {"b": jnp.float32([0.0, bad])})

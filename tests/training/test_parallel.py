"""A population on two devices: layout, padding, equality with one device, donation and transfers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.training.parallel import Population

from .support import assert_same_run, drift_loop, drift_population, drift_run, member, members, raw, root_keys


def test_members_on_two_devices_are_those_on_one():
    """Three members leave one row of the second device to padding."""
    split, whole = drift_run(3, "map", 2), drift_run(3, "map", 1)
    assert all(x.shape[0] == 3 for x in jax.tree.leaves(split))
    for index in range(3):
        assert_same_run(member(split, index), member(whole, index), f"two devices, member {index}")


LAYOUTS = [(1, 2, 1, 1), (2, 2, 2, 1), (3, 2, 2, 2), (4, 2, 2, 2), (5, 1, 1, 5)]


@pytest.mark.parametrize(("size", "given", "used", "rows"), LAYOUTS)
def test_layout(size, given, used, rows):
    population = Population(drift_loop(), size, devices=jax.devices()[:given])
    assert (len(population.devices), population.rows, population.mode) == (used, rows, "map")
    tree = {"x": np.arange(size * 3, dtype=np.float32).reshape(size, 3), "key": root_keys(*range(size))}
    placed = population.place(tree)
    assert placed["x"].shape == (used, rows, 3)
    assert len(placed["x"].addressable_shards) == used
    padded = np.asarray(placed["x"]).reshape(-1, 3)
    np.testing.assert_array_equal(padded[size:], np.broadcast_to(padded[size - 1], padded[size:].shape))
    back = population.members(placed)
    np.testing.assert_array_equal(back["x"], tree["x"])
    np.testing.assert_array_equal(raw(back["key"]), raw(tree["key"]))


def test_states_survive_a_round_trip_over_the_host():
    """What a checkpoint does: host order without padding, back in place, and on with the same bits."""
    population = drift_population(3, "map", 2)
    keys, hypers = (population.place(tree) for tree in members(3))
    clock = population.clock(0, 2)
    kept = population.members(population.init(keys, hypers))
    direct, _ = population.advance(population.init(keys, hypers), hypers, clock)
    restored, _ = population.advance(population.place(kept), hypers, clock)
    for x, y in zip(*map(jax.tree.leaves, (population.members(direct), population.members(restored))), strict=True):
        assert raw(x).tobytes() == raw(y).tobytes()


def buffers(tree):
    """Where the numbers of every leaf lie, one address a device."""
    leaves = [x for x in jax.tree.leaves(tree) if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)]
    return [shard.data.unsafe_buffer_pointer() for x in leaves for shard in x.addressable_shards]


def test_no_two_leaves_of_a_state_share_a_buffer_and_all_are_donated():
    population = drift_population(3, "map", 2)
    keys, hypers = (population.place(tree) for tree in members(3))
    states = population.init(keys, hypers)
    for call in (population.advance, population.evaluate):
        shared = population.clock(0, 2) if call == population.advance else population.round(0)
        addresses = buffers(states)
        assert len(addresses) == len(set(addresses))
        new, _ = call(states, hypers, shared)
        jax.block_until_ready(new)
        assert all(x.is_deleted() for x in jax.tree.leaves(states))
        assert not any(x.is_deleted() for x in jax.tree.leaves((new, hypers, keys, shared)))
        states = new


def test_a_call_moves_nothing_between_host_and_devices():
    population = drift_population(3, "map", 2)
    keys, hypers = (population.place(tree) for tree in members(3))
    states, clocks, number = population.init(keys, hypers), [population.clock(i, 9) for i in range(3)], population.round(0)
    with jax.transfer_guard("disallow"):
        for clock in clocks:
            states, _ = population.advance(states, hypers, clock)
            states, _ = population.evaluate(states, hypers, number)
        jax.block_until_ready(states)

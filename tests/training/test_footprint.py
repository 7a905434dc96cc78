"""The memory that is foretold against what XLA takes, and members that take turns."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.training.blocks import Blocks
from agentgym_jax.training.footprint import Footprint, footprint, in_words, kept_bytes
from agentgym_jax.training.parallel import Population, across_devices
from agentgym_jax.types import Clock

from .support import (
    QUICK,
    Drift,
    assert_same_bits,
    assert_same_run,
    drift_loop,
    drift_population,
    drift_run,
    hyper,
    member,
    members,
    run_population,
    small_loop,
)

REPLAY = {"batch_size": 512, "learning_starts": 2048}
WIDE = {"num_envs": 64, "rollout_length": 32}
LOOPS = {
    "mlp": lambda: small_loop(Drift(), network={"hidden": (64, 64)}, **WIDE),
    "gru": lambda: small_loop("probe/memory", network={"torso": "gru", "recurrent": 32}, **WIDE),
    "dqn": lambda: small_loop(Drift(), "dqn", {"hidden": (64, 64)}, REPLAY | {"capacity": 65_536}, **WIDE),
    "recurrent dqn": lambda: small_loop(
        "probe/memory", "dqn", {"torso": "gru", "recurrent": 32}, REPLAY | {"capacity": 32_768, "batch_size": 64}, **WIDE
    ),
    "cnn": lambda: small_loop("probe/image", network={"torso": "cnn", "channels": (8,), "kernels": (2,)}, **WIDE),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_estimate_is_near_what_xla_allocates(name):
    loop = LOOPS[name]()
    numbers = as_hyper(get_algorithm("dqn").hyper()) if "dqn" in name else hyper()
    found = footprint(loop, jax.random.key(0), numbers)
    state = jax.eval_shape(loop.init, jax.random.key(0), numbers)
    clock = Clock(jnp.int32(0), jnp.int32(1))
    program = jax.jit(loop.advance, donate_argnums=0, compiler_options=QUICK).lower(state, numbers, clock).compile()
    told = program.memory_analysis()
    assert abs(found.state / told.argument_size_in_bytes - 1) < 0.02
    assert 0.4 < found.work / told.temp_size_in_bytes < 2.5


def test_a_shared_member_counts_its_own_part_alone():
    whole, part = (
        footprint(small_loop(Drift(), across=across_devices(shards), **WIDE), jax.random.key(0), hyper()) for shards in (1, 2)
    )
    assert part.state < whole.state and part.work < whole.work
    assert whole.of(3, 2) == 3 * whole.state + 2 * whole.work


def test_of_branches_the_larger_counts():
    def program(x, y):
        return jax.lax.cond(x[0, 0] > 0, lambda: x @ y, lambda: x @ y @ y)

    shape = jnp.zeros((4, 4), jnp.float32)
    assert kept_bytes(jax.make_jaxpr(program)(shape, shape).jaxpr) == 2 * 64


@pytest.mark.parametrize(("size", "words"), [(12, "12 bytes"), (1_234, "1.2 kB"), (2_600_000_000, "2.6 GB"), (3e11, "300 GB")])
def test_sizes_in_words(size, words):
    assert in_words(size) == words


def test_members_in_blocks_are_those_of_one_population():
    """Three members, two at a time; the last block has one that is not there."""
    blocks = Blocks(drift_population(2, "map", 1), 3)
    together = run_population(blocks, *members(3))
    for index in range(3):
        assert_same_run(member(together, index), member(drift_run(3, "map", 1), index), f"in blocks, member {index}")


def test_blocks_keep_their_members_apart_and_in_order():
    blocks = Blocks(Population(drift_loop(), 2, devices=jax.devices()[:1]), 5)
    tree = {"x": np.arange(10).reshape(5, 2), "key": members(5)[0]}
    placed = blocks.place(tree)
    assert [block["x"][:, 0].tolist() for block in placed] == [[0, 2], [4, 6], [8, 8]]
    assert_same_bits(blocks.members(placed), tree)


def test_footprints_add_up():
    assert Footprint(3, 5).of(4, 2) == 22

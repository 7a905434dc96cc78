"""The population that a run gets, and what it says of its memory."""

from __future__ import annotations

import types

import jax
import numpy as np
import pytest

import agentgym_jax
from agentgym_jax.io.running import devices
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.running.reevaluate import differences, evaluate_again
from agentgym_jax.training.blocks import Blocks
from agentgym_jax.training.footprint import Footprint
from agentgym_jax.training.parallel import Population

from .support import tiny


def test_a_run_says_what_it_needs_and_has():
    population, line = devices.make_population(assemble(tiny("seeds=3")))
    assert isinstance(population, Population) and population.size == 3
    assert line.startswith("memory: about ") and "on this machine, which has" in line and "hardly" not in line


def test_too_much_for_the_machine_is_said_before_anything_compiles(monkeypatch):
    monkeypatch.setattr(devices, "free_bytes", lambda device: 10)
    _, line = devices.make_population(assemble(tiny("seeds=3")))
    assert "which has 10 bytes free: it will hardly fit" in line


def test_blocks_on_request():
    population, line = devices.make_population(assemble(tiny("seeds=5", "train.block=2")))
    assert isinstance(population, Blocks) and population.population.size == 2
    assert "2 of 5 members at a time" in line
    assert isinstance(devices.make_population(assemble(tiny("seeds=5", "train.block=9")))[0], Population)


def test_an_accelerator_gets_as_many_members_as_fit():
    """Halves of 16 rows until 80 % of the memory are enough; one at least."""
    stats = {"bytes_limit": 120, "bytes_in_use": 20}
    card = types.SimpleNamespace(platform="gpu", device_kind="card", memory_stats=lambda: stats)
    population = types.SimpleNamespace(rows=16, groups=2, mode="vmap", devices=[card, card])
    assert devices.free_bytes(card) == 100
    assert devices._most_at_a_time(population, Footprint(5, 10), 100) == 4 * 2
    assert devices._most_at_a_time(population, Footprint(5, 10), 1000) == 16 * 2
    assert devices._most_at_a_time(population, Footprint(500, 10), 100) == 2
    assert devices._most_at_a_time(population, Footprint(500, 10), None) == 32
    assert devices.free_bytes(jax.devices()[0]) > 2**20


def test_a_run_in_blocks_is_the_run():
    whole, parts = (agentgym_jax.train(tiny("seeds=3", f"train.block={block}"), quiet=True) for block in (3, 2))
    assert whole.summary["evaluation"] == parts.summary["evaluation"]
    np.testing.assert_array_equal(whole.curves["episode_return"], parts.curves["episode_return"])
    assert parts.policy(seed=2).learner.params.keys() == whole.policy(seed=2).learner.params.keys()


REFUSED = [("train.block=0", "train.block"), ("train.shards=3", "train.shards: 3 does not divide")]


@pytest.mark.parametrize(("override", "message"), REFUSED)
def test_bad_sizes_are_named(override, message):
    with pytest.raises(ValueError, match=message):
        tiny(override)


def test_a_member_on_two_devices_from_a_file(tmp_path):
    """Trained, saved, read and measured again, with statistics that the devices agree on."""
    experiment = tiny("train.shards=2", "seeds=2", "algorithm.normalise_observations=true")
    run = agentgym_jax.train(experiment, out=tmp_path / "run", quiet=True)
    assert run.summary["diverged"] == [] and run.total_steps == agentgym_jax.load_run(tmp_path / "run").total_steps
    loaded = agentgym_jax.load_run(tmp_path / "run")
    assert not differences(evaluate_again(loaded), loaded.last_evaluation)
    with pytest.raises(ValueError, match="make_train is for one device"):
        agentgym_jax.make_train(experiment)

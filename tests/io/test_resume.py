"""A run that is stopped somewhere and goes on is the run that was never stopped."""

import dataclasses
import json
import shutil
import signal

import jax
import numpy as np
import pytest

import agentgym_jax
from agentgym_jax.algorithms.registry import algorithm_names
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.loggers import read_records
from agentgym_jax.io.running import runner
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.running.interrupt import Interrupted
from agentgym_jax.io.running.lock import Lock
from agentgym_jax.io.saving import resume
from agentgym_jax.io.saving.background import Checkpoints
from agentgym_jax.io.saving.checkpoint import OPTIONAL, read, stored_steps
from tests.io.resuming import GRU, SECONDS, SIX_CALLS, Notes, assert_same_run, compile_once, killed, quick_programs, scalars
from tests.io.support import PLAIN, tiny
from tests.training.support import assert_close, assert_same_bits, clock, quick, raw

NEWEST = {"epochs": 1, "minibatches": 2}
REPLAY = {"capacity": 128, "batch_size": 4, "updates": 2, "learning_starts": 32, "target_period": 3}
TEAM = "env=probe/team"
LEARNERS = {  # the section `algorithm`, and overrides
    "ppo": (NEWEST | {"normalise_observations": True, "normalise_rewards": True}, "env=probe/continuous"),
    "ippo": (NEWEST, TEAM),
    "mappo": (NEWEST, TEAM, GRU),
    "dqn": (REPLAY | {"prioritised": True, "n_steps": 2},),
    "iql": (REPLAY, TEAM),
    "vdn": (REPLAY, TEAM),
    "qmix": (REPLAY | {"burn_in": 1}, TEAM, GRU),
    "pqn": (NEWEST, "env=probe/memory", GRU),
    "pqn_vdn": (NEWEST, TEAM),
}


def six_calls_of(name):
    algorithm, *overrides = LEARNERS[name]
    return load_experiment(PLAIN | {"algorithm": {"name": name, **algorithm}}, [*overrides, *SIX_CALLS, "seeds=1"])


@pytest.fixture
def compiled(straight, monkeypatch):
    """The programs of `straight` serve again."""
    compile_once(monkeypatch, straight.programs)


@pytest.fixture(autouse=True)
def _quickly():
    with quick_programs():
        yield


def test_every_learner_is_among_these():
    assert set(LEARNERS) == set(algorithm_names())


@pytest.mark.parametrize("name", LEARNERS)
def test_six_calls_are_three_a_checkpoint_and_three_to_the_bit(name, tmp_path):
    """Parameters, optimiser, memory, statistics, keys, environments and hidden states of every learner."""
    assembly = assemble(six_calls_of(name))
    keys, hyper = jax.tree.map(lambda x: x[0], assembly.member_inputs())
    advance, count = quick(assembly.loop.advance), assembly.plan.iterations_per_call
    state, curves = quick(assembly.loop.init)(keys, hyper), []
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state)
    checkpoints = Checkpoints(tmp_path)
    for call in range(6):
        if call == 3:
            checkpoints.save(3, state, OPTIONAL)
        state, each = advance(state, hyper, clock(call * count, assembly.plan.iterations))
        curves.append(each)
    checkpoints.close()
    again = read(tmp_path, 3).state(shapes)
    assert jax.tree.structure(again) == jax.tree.structure(shapes)
    for call in range(3, 6):
        again, each = advance(again, hyper, clock(call * count, assembly.plan.iterations))
        assert_same_bits(each, curves[call])
    assert_same_bits(again, state)


def test_a_run_with_replay_goes_on_to_the_bit(tmp_path, monkeypatch):
    """Records, curves, evaluations and summary too; with a warm-up that counts as steps, and members that take turns."""
    compile_once(monkeypatch, {})
    experiment = six_calls_of("dqn")
    experiment = dataclasses.replace(experiment, train=dataclasses.replace(experiment.train, block=1), seeds=2)
    run = agentgym_jax.train(experiment, out=tmp_path / "straight", quiet=True)
    folder = killed(run.directory, tmp_path / "stopped")
    after_three = stored_steps(folder / "checkpoints")[2]
    again = agentgym_jax.resume(folder, from_step=after_three, quiet=True)
    assert_same_run(run, again, apart=SECONDS | {"compiles"})
    assert stored_steps(folder / "checkpoints") == stored_steps(run.directory / "checkpoints")
    (resumption,) = json.loads((folder / "provenance.json").read_text())["resumptions"]
    assert (resumption["steps"], resumption["bit_equal"], resumption["differences"]) == (after_three, True, [])


def test_compiled_anew_it_is_equal_to_the_bit_too(straight, tmp_path):
    folder = killed(straight.run.directory, tmp_path / "run")
    reporter = Notes()
    again = resume.prepare(folder, from_step=64, reporter=reporter).train()
    assert_same_run(straight.run, again)
    assert again.compiles == 1
    assert reporter.notes[2] == "goes on at 64 of 112 steps; equal to the bit"
    assert reporter.steps == [80, 96, 112]
    assert not (folder / "lock").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [("log.checkpoint=0", "checkpoint: .* 0"), ("log.checkpoint=ends", "did you mean 'end'"), ("log.keep=0", "keep: .* 0")],
)
def test_how_often_and_how_many_are_checked(override, message):
    with pytest.raises(ValueError, match=message):
        tiny(override)


def test_a_finished_run_is_left_alone(straight):
    before = sorted((path, path.stat().st_mtime_ns) for path in straight.run.directory.rglob("*"))
    assert resume.prepare(straight.run.directory) is None
    loaded = agentgym_jax.resume(straight.run.directory)
    assert loaded.summary["total_steps"] == 112
    assert_same_bits(loaded.state, straight.run.state)
    assert sorted((path, path.stat().st_mtime_ns) for path in straight.run.directory.rglob("*")) == before


def test_a_run_without_a_checkpoint_begins_again(straight, tmp_path):
    folder = killed(straight.run.directory, tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    (folder / "checkpoints").mkdir()
    session = resume.prepare(folder, reporter=Notes())
    assert "has no checkpoint yet: the run begins again" in session.start.note
    assert read_records(folder / "metrics.jsonl") == []
    session.recorder.open(0, session.start.resumption)
    session.recorder.close()
    assert scalars(folder / "tensorboard") == []
    session.lock.release()


@pytest.mark.parametrize(("signum", "points", "calls"), [(signal.SIGINT, 2, 3), (signal.SIGTERM, 3, 2)])
def test_a_signal_is_answered_at_the_end_of_the_running_call(straight, tmp_path, compiled, signum, points, calls):
    """The call that runs when the signal comes is the last one; it is recorded and saved, and the run goes on behind it."""
    experiment = dataclasses.replace(
        straight.run.experiment,
        train=dataclasses.replace(straight.run.experiment.train, calls=calls),
        eval=dataclasses.replace(straight.run.experiment.eval, points=points),
        log=agentgym_jax.LogConfig(tensorboard=True, checkpoint="end"),
    )
    out = tmp_path / "a run"
    reporter = Notes(at=32, then=lambda: signal.raise_signal(signum))
    with pytest.raises(Interrupted) as caught:
        runner.prepare(experiment, out=out, reporter=reporter).train()
    assert caught.value.exit_code == 128 + signum
    assert f"stopped by {signal.Signals(signum).name} at 48 of 112 steps; a checkpoint at 48 steps" in reporter.notes[-1]
    assert reporter.notes[-1].endswith(f"go on with: agentgym resume '{out}'")
    assert len(read_records(out / "evaluations.jsonl")) == (2 if calls == 2 else 0)
    again = agentgym_jax.resume(out, quiet=True)
    assert_same_bits(again.state.replace(best=()), straight.run.state.replace(best=()))
    assert_same_bits(again.curves, straight.run.curves)
    assert (out / "metrics.jsonl").read_text() == (straight.run.directory / "metrics.jsonl").read_text()


def test_a_second_signal_does_not_wait(straight, tmp_path, compiled):
    def twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    reporter = Notes(at=48, then=twice)
    with pytest.raises(Interrupted):
        runner.prepare(straight.run.experiment, out=tmp_path / "run", reporter=reporter).train()
    assert reporter.steps[-1] == 48
    session = resume.prepare(tmp_path / "run")
    assert session.start.steps in (32, 48)
    session.lock.release()


def test_another_call_length_and_fewer_seeds_are_told_apart(straight, tmp_path):
    """Keys and environments exactly, two iterations to 1e-5, on one device where there were two; the old run stays."""
    folder, out = killed(straight.run.directory, tmp_path / "run"), tmp_path / "other"
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text().replace("calls: 2", "calls: 1"))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    reporter = Notes()
    session = resume.prepare(folder, ["seeds=[7]"], 80, out, reporter=reporter)
    saved = read(folder / "checkpoints", 80)
    assert np.array_equal(raw(session.start.state.key), saved.arrays["state.key"][1:])
    observation = session.start.state.actor.timestep.observation
    assert np.array_equal(observation, saved.arrays["state.actor.timestep.observation"][1:])
    other = session.train()
    label = "not bit-equal to a run without interruption: devices was 2 and is 1; iterations in a call was 1 and is 2"
    assert f"goes on at 80 of 112 steps; {label}" in reporter.notes[2]
    assert not json.loads((out / "provenance.json").read_text())["resumptions"][0]["bit_equal"]
    assert_close(other.curves, jax.tree.map(lambda x: x[1:], straight.run.curves), "curves", floor=1e-6)
    assert_close(other.state.learner, jax.tree.map(lambda x: x[1:], straight.run.state.learner), "learner", floor=1e-6)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    records = read_records(out / "metrics.jsonl")
    assert [record["step"] for record in records] == [32, 48, 64, 80, 112]
    assert {(record["member"], record["seed"]) for record in records} == {(0, 7)}
    assert {name for name, *_ in scalars(out / "tensorboard")} == {"seed-7"}
    assert stored_steps(out / "checkpoints") == [80, 112]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.total_steps=192"], "train.total_steps: .* 96, got 192: learning rates and other schedules depend"),
        (["algorithm.gamma=0.5"], "algorithm.gamma: a run goes on with what it began with, 0.99, got 0.5; only train.calls"),
        (["seeds=[3]"], "seeds: 1 of 2 can go on in a directory of their own; add --out DIR"),
        (["seeds=[3, 5]"], "seeds: 5 did not run; the run has 3, 7"),
        (["train.calls=1"], "train.calls: 1 makes calls of 2 iterations, and none begins after the 5 of checkpoint"),
        (["train.callls=1"], "did you mean calls"),
    ],
)
def test_what_would_be_another_run_is_refused(straight, tmp_path, overrides, message):
    folder = killed(straight.run.directory, tmp_path / "run")
    records = (folder / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match=message):
        resume.prepare(folder, overrides, from_step=96)
    assert (folder / "metrics.jsonl").read_bytes() == records
    assert not (folder / "lock").exists()


def test_a_run_that_is_being_written_is_refused_and_a_stale_lock_is_not(straight, tmp_path):
    folder = killed(straight.run.directory, tmp_path / "run")
    lock = Lock(folder / "lock")
    for second in (lambda: resume.prepare(folder), lambda: runner.prepare(tiny(), out=folder, overwrite=True)):
        with pytest.raises(ValueError, match=r"is being written by process \d+ on .+; wait"):
            second()
    lock.release()
    (folder / "lock").write_text("process 1 on a machine that crashed\n")
    resume.prepare(folder).lock.release()


def test_a_run_of_an_environment_object_goes_on_with_its_experiment(straight, tmp_path):
    folder = killed(straight.run.directory, tmp_path / "run")
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text().replace("probe/memory", "<envs_jax.Mine>"))
    with pytest.raises(ValueError, match="object of Python"):
        resume.prepare(folder)
    experiment = straight.run.experiment
    with pytest.raises(ValueError, match="env.id: .* '<envs_jax.Mine>', got 'probe/memory'"):
        resume.prepare(folder, experiment=experiment)
    other = dataclasses.replace(experiment, hyper=dataclasses.replace(experiment.hyper, gamma=0.5))
    with pytest.raises(ValueError, match=r"algorithm.gamma: .* 0.99, got 0.5"):
        resume.prepare(killed(straight.run.directory, tmp_path / "other"), experiment=other)
    session = resume.prepare(tmp_path / "other", experiment=experiment)
    assert session.start.steps == 112
    session.lock.release()

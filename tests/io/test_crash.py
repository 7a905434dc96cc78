"""A process that is killed at any moment, or cannot write any more, leaves a run that can be read and resumed."""

import dataclasses
import shutil
from concurrent.futures import Future
from pathlib import Path

import pytest

import agentgym_jax
from agentgym_jax.io.loggers import json_lines
from agentgym_jax.io.running import runner
from agentgym_jax.io.running.run import load_run
from agentgym_jax.io.running.run_directory import existing
from agentgym_jax.io.saving import background as saving
from agentgym_jax.io.saving import carry_over, durable
from agentgym_jax.io.saving.background import SaveError
from agentgym_jax.io.saving.checkpoint import newest, stored_steps
from tests.io.resuming import Notes, compile_once, quick_programs
from tests.training.support import assert_same_bits


@pytest.fixture(autouse=True)
def _quickly(straight, monkeypatch):
    compile_once(monkeypatch, straight.programs)
    with quick_programs():
        yield


class InLine:
    """Writes checkpoints at once, so that the moments come in one order."""

    def __init__(self, *_):
        pass

    def submit(self, function, *args):
        future = Future()
        future.set_result(function(*args))
        return future

    def shutdown(self):
        pass


@pytest.fixture
def moments(straight, tmp_path, monkeypatch):
    """The folder of a run before every write, sync, rename and removal in it: what a kill at that moment leaves."""
    run, kept = tmp_path / "run", []

    def watched(function):
        def call(*args, **named):
            if run.exists():
                kept.append(tmp_path / f"moment-{len(kept):03}")
                shutil.copytree(run, kept[-1])
            return function(*args, **named)

        return call

    experiment = dataclasses.replace(straight.run.experiment, log=agentgym_jax.LogConfig(checkpoint=1, keep=1))
    session = runner.prepare(experiment, out=run, reporter=Notes())
    monkeypatch.setattr(saving, "ThreadPoolExecutor", InLine)
    for place, name in (
        (json_lines, "_write"),
        (saving, "write"),
        (saving, "sync_tree"),
        (saving, "sync"),
        (durable, "sync"),
        (durable.os, "replace"),
        (Path, "rename"),
    ):
        monkeypatch.setattr(place, name, watched(getattr(place, name)))
    session.train()
    monkeypatch.undo()
    compile_once(monkeypatch, straight.programs)
    return kept


def up_to(path, steps):
    """The lines of a .jsonl file of the run without a stop, up to these steps."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if int(line.split(",")[0].split(":")[1]) <= steps)


def test_killed_at_any_moment_nothing_is_lost_or_doubled(straight, moments):
    """Every moment: the newest checkpoint is whole, and the records up to it are all there, each once."""
    assert len(moments) > 80
    seen = set()
    for moment in moments:
        if not (moment / "config.yaml").exists():
            assert not stored_steps(moment / "checkpoints")
            continue
        directory, steps = existing(moment), 0
        if stored_steps(directory.checkpoints):
            steps = newest(directory.checkpoints, lambda checkpoint: checkpoint.step)
            assert len(stored_steps(directory.checkpoints)) <= 3  # the newest, the best and one that is being replaced
        assert steps >= max(seen, default=0)
        seen.add(steps)
        carry_over.cut(directory, steps)
        for name in ("metrics.jsonl", "evaluations.jsonl"):
            kept = (moment / name).read_text() if (moment / name).exists() else ""
            assert kept == up_to(straight.run.directory / name, steps)
    assert seen == {0, 32, 48, 64, 80, 96, 112}
    for moment in (moments[len(moments) // 3], moments[2 * len(moments) // 3]):
        again = agentgym_jax.resume(moment, quiet=True)
        assert_same_bits(again.state, straight.run.state)
        assert (moment / "metrics.jsonl").read_text() == (straight.run.directory / "metrics.jsonl").read_text()


def test_a_failed_save_stops_the_run_within_one_period_and_the_one_before_is_good(straight, tmp_path):
    folder = tmp_path / "run" / "checkpoints"

    def obstruct():
        (folder / ".saving-80").write_text("in its way")

    reporter = Notes(at=48, then=obstruct)
    experiment = dataclasses.replace(straight.run.experiment, log=agentgym_jax.LogConfig(checkpoint=1, keep=1))
    with pytest.raises(SaveError, match=f"could not be written to {folder}: .*; the newest complete one is at 64 steps"):
        runner.prepare(experiment, out=tmp_path / "run", reporter=reporter).train()
    assert reporter.steps[-1] <= 96
    assert load_run(tmp_path / "run").total_steps == 64
    (folder / ".saving-80").unlink()
    again = agentgym_jax.resume(tmp_path / "run", quiet=True)
    assert_same_bits(again.state, straight.run.state)

"""Runs that stop and go on: what tests of them share."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from agentgym_jax.io.loggers.tensorboard import read_events
from agentgym_jax.io.running import provenance
from agentgym_jax.io.running.progress import Reporter
from agentgym_jax.io.running.run import Run
from agentgym_jax.training.parallel import Population
from tests.training.support import QUICK, assert_same_bits

SIX_CALLS = ("train.total_steps=96", "eval.points=3", "train.calls=2", "log.checkpoint=1", "log.keep=9", "log.tensorboard=true")
GRU = "network={torso: gru, hidden: [8], recurrent: 8}"
SECONDS = {"compile_seconds", "train_seconds", "evaluation_seconds", "steps_per_second"}


class Straight(NamedTuple):
    """A run without a stop, and its compiled programs."""

    run: Run
    programs: dict[str, Any]


class Notes(Reporter):
    """Remembers what was said, and does something once so many steps are done."""

    def __init__(self, at=None, then=lambda: None):
        super().__init__()
        self.at, self.then, self.notes, self.steps = at, then, [], []

    def note(self, text):
        self.notes.append(text)

    def advanced(self, steps, train_seconds):
        self.steps.append(steps)
        if steps == self.at:
            self.then()


@contextlib.contextmanager
def quick_programs() -> Iterator[None]:
    """Programs of a few iterations are not worth optimising; a commit that is made meanwhile is not looked at."""
    whole = jax.stages.Lowered.compile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "_git", lambda *words: "the same")
        patch.setattr(jax.stages.Lowered, "compile", lambda self: whole(self, compiler_options=QUICK))
        yield


def compile_once(patch: pytest.MonkeyPatch, programs: dict[str, Any]) -> None:
    """Every population takes these programs; the first fills them in."""
    whole = Population.compile

    def compile(self, keys, hyper):
        if not programs:
            whole(self, keys, hyper)
            programs.update(self._programs)
        self._programs = programs
        return 0.0

    patch.setattr(Population, "compile", compile)


def killed(directory: Path, folder: Path) -> Path:
    """A copy of a run's directory as a killed process leaves it: no summary, and a last line that was cut off."""
    shutil.copytree(directory, folder)
    (folder / "summary.json").unlink()
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"step": 1')
    return folder


PARTS = ("state", "curves", "curve_steps", "evaluation", "evaluation_steps", "absolute")


def assert_same_run(run, other, apart=SECONDS, parts=PARTS):
    """Two runs are equal to the bit, in memory and in their files, but for seconds; their TensorBoard curves go forward."""
    for part in parts:
        assert_same_bits(getattr(run, part), getattr(other, part))
    for name in ("metrics.jsonl", "evaluations.jsonl", "config.yaml"):
        assert (run.directory / name).read_text() == (other.directory / name).read_text()
    first, second = (json.loads((each.directory / "summary.json").read_text()) for each in (run, other))
    assert {name: x for name, x in first.items() if name not in apart} == {n: x for n, x in second.items() if n not in apart}
    events = scalars(other.directory / "tensorboard")
    assert sorted(map(str, events)) == sorted(map(str, scalars(run.directory / "tensorboard")))
    for curve in {event[:2] for event in events}:
        assert all(np.diff([step for name, tag, step, _ in events if (name, tag) == curve]) > 0)


def scalars(folder: Path) -> list[tuple[str, str, int, float]]:
    """(member's folder, tag, step, value) of all TensorBoard records, in the order of their files."""
    from tensorboardX.proto.event_pb2 import Event

    events = [
        (path.parent.name, Event.FromString(record[12:-4]))
        for path in sorted(folder.rglob("*tfevents*"))
        for record in read_events(path)
    ]
    return [(name, value.tag, event.step, value.simple_value) for name, event in events for value in event.summary.value]

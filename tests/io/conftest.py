"""One tiny run with everything on disk, shared by the tests that read it."""

from __future__ import annotations

import dataclasses
import io

import pytest

from agentgym_jax.io.running import runner
from agentgym_jax.io.running.progress import Lines
from tests.io.resuming import GRU, SIX_CALLS, Notes, Straight, quick_programs
from tests.io.support import tiny


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """(run, what was said while it ran): two seeds, two learning rates, memory, normalisation, TensorBoard files."""
    experiment = tiny(
        "env=probe/memory",
        "network={torso: gru, hidden: [8], recurrent: 8}",
        "algorithm.normalise_observations=true",
        "log.tensorboard=true",
        "seeds=[3, 7]",
    )
    experiment = dataclasses.replace(experiment, sweep={"algorithm.learning_rate": [1e-3, 1e30]})
    said = io.StringIO()
    out = tmp_path_factory.mktemp("runs") / "memory"
    return runner.prepare(experiment, out=out, reporter=Lines(said)).train(), said.getvalue()


@pytest.fixture(scope="session")
def straight(tmp_path_factory):
    """Six calls without a stop, each with its checkpoint: two seeds, memory, normalisation, TensorBoard files."""
    experiment = tiny(*SIX_CALLS, GRU, "env=probe/memory", "algorithm.normalise_observations=true", "seeds=[3, 7]")
    session = runner.prepare(experiment, out=tmp_path_factory.mktemp("straight") / "run", reporter=Notes())
    with quick_programs():
        return Straight(session.train(), session.population._programs)

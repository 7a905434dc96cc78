"""From an experiment to a run: checks first, then the session that trains and measures."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

from agentgym_jax import _runtime
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.running.devices import make_population
from agentgym_jax.io.running.lock import Lock
from agentgym_jax.io.running.programs import parts
from agentgym_jax.io.running.progress import Reporter, make_reporter
from agentgym_jax.io.running.run import Run
from agentgym_jax.io.running.run_directory import create
from agentgym_jax.io.running.session import Session
from agentgym_jax.training.blocks import Blocks
from agentgym_jax.training.parallel import Population


def train(
    experiment: Experiment,
    seeds: Any = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> Run:
    """Trains all members of an experiment in one compile, and measures them.

    Args:
      seeds: replaces `experiment.seeds`; a count or a list. out: the run directory; None writes nothing.
      overwrite: move an existing run directory aside. quiet: no progress on stderr.

    Raises:
      ConfigError: what cannot run, before anything compiles. Interrupted (a KeyboardInterrupt): Ctrl-C or SIGTERM; with a run
      directory the running call was finished and saved, for `resume` to go on from; a second signal does not wait for it.
      SaveError: a checkpoint could not be written.
    """
    return prepare(experiment, seeds, out, overwrite, make_reporter(quiet)).train()


def prepare(
    experiment: Experiment,
    seeds: Any = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> Session:
    """All that can be refused: builds the parts and makes the run directory; compiles nothing. See `train`."""
    if seeds is not None and isinstance(experiment, Experiment):
        experiment = dataclasses.replace(experiment, seeds=seeds)
    assembly, programs, traces, _ = parts(experiment)
    population, memory = make_population(assembly, programs)
    warn_of_hangs(population)
    directory = None if out is None else create(out, overwrite)
    lock = None if directory is None else Lock(directory.lock)
    return Session(assembly, population, directory, reporter or make_reporter(), traces, memory, lock)


def warn_of_hangs(population: Population | Blocks) -> None:
    """Warns where training vmapped over members could hang, since XLA's CPU backend was started without our flag."""
    vmapped = population.mode == "vmap" and population.rows > 1
    if vmapped and population.devices[0].platform == "cpu" and _runtime.flag_status() != "active":
        warnings.warn(
            f"training vmapped over members can hang on XLA's CPU backend without {_runtime.FLAG} ({_runtime.flag_status()});"
            " use train.population: map",
            stacklevel=4,
        )

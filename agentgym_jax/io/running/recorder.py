"""What a run leaves behind while it goes on: records, checkpoints, and their order on the disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from agentgym_jax.io.config.load import to_plain, to_yaml
from agentgym_jax.io.loggers import Logger, call_means, make_loggers
from agentgym_jax.io.running.assemble import Assembly
from agentgym_jax.io.running.history import History
from agentgym_jax.io.running.progress import Reporter
from agentgym_jax.io.running.provenance import provenance
from agentgym_jax.io.running.run_directory import RunDirectory
from agentgym_jax.io.saving.background import Checkpoints
from agentgym_jax.io.saving.checkpoint import stored_steps
from agentgym_jax.io.saving.durable import sync_tree, write_atomically


class Recorder:
    """Records of a run: in its history always, and in its directory if it has one."""

    def __init__(self, assembly: Assembly, directory: RunDirectory | None, reporter: Reporter, history: History, program: Any):
        """`program`: what the compiled program depends on, as plain data, to be stored with every checkpoint."""
        self.assembly, self.directory, self.reporter, self.history = assembly, directory, reporter, history
        self.members = assembly.experiment.members
        self.saved_steps: int | None = None
        self._program = program
        self._loggers: list[Logger] = []
        self._checkpoints: Checkpoints | None = None
        self._provenance: dict[str, Any] = {}

    @property
    def steps(self) -> int:
        """Environment steps of one member that are done and recorded."""
        return self.assembly.steps(self.history.iterations) if self.history.iterations else 0

    @property
    def can_save(self) -> bool:
        """Whether there is a folder for checkpoints."""
        return self._checkpoints is not None

    def open(self, goes_on_from: int | None = None, resumption: Any = None) -> None:
        """Writes what a run begins with. `goes_on_from`: the steps at which an earlier process left this directory.

        The configuration comes last, so that a folder with one is a run that can be resumed.
        """
        directory, experiment = self.directory, self.assembly.experiment
        if directory is None:
            return
        self._checkpoints = Checkpoints(directory.checkpoints, experiment.log.keep)
        self._provenance = provenance(experiment.seeds)
        if goes_on_from is None:
            write_atomically(directory.provenance, json.dumps(self._provenance, indent=2) + "\n")
            write_atomically(directory.config, to_yaml(experiment))
        else:
            directory.add_resumption(resumption)
            self._checkpoints.remove_after(goes_on_from)
            self.saved_steps = goes_on_from if goes_on_from in stored_steps(directory.checkpoints) else None
        self._loggers = make_loggers(experiment, directory, self.members, goes_on_from)

    def call(self, curves: dict[str, np.ndarray]) -> None:
        """Curves {name: [P, K]} of one call. Raises SaveError when the checkpoint that was being written has failed."""
        diverged = self.history.add_call(curves, self.assembly.plan.iterations_per_call)
        for index, member in enumerate(self.members):
            values = call_means({name: values[index] for name, values in curves.items()})
            for logger in self._loggers:
                logger.metrics(index, member, self.steps, values)
        for index in diverged:
            self.reporter.note(f"member {dict(self.members[index])} diverged by {self.steps:,} steps; the others go on")
        if self._checkpoints is not None:
            self._checkpoints.check()

    def evaluation(self, results: dict[str, dict[str, np.ndarray]]) -> None:
        """Episodes {policy: {name: [P, E]}} of one point; all records are on the disk afterwards."""
        self.history.add_evaluation(results, self.steps)
        for index, member in enumerate(self.members):
            own = jax.tree.map(lambda x: x[index], results)  # noqa: B023  called before the loop goes on
            for logger in self._loggers:
                logger.evaluation(index, member, self.steps, own)
        self._flush()

    def due(self, calls: int | None = None) -> bool:
        """Whether `log.checkpoint` wants one after so many calls of the run (None: those that are recorded)."""
        plan, every = self.assembly.plan, self.assembly.experiment.log.checkpoint
        calls = self.history.iterations // plan.iterations_per_call if calls is None else calls
        if calls == plan.points * plan.calls:
            return True
        return every != "end" and calls % (plan.calls if every == "point" else every) == 0

    def save(self, state: Callable[[], Any], score: float | None) -> None:
        """Begins to write `state()`, leaves [P, ...] on the host, unless these steps are saved already.

        Records come first, so that none is lost that the checkpoint is beyond. `score`: see `Checkpoints`.
        """
        if self._checkpoints is None or self.steps == self.saved_steps:
            return
        self._flush()
        meta = {
            **self.history.meta(),
            "steps": self.steps,
            "total_iterations": self.assembly.plan.iterations,
            "score": score,
            "config": to_plain(self.assembly.experiment),
            "program": self._program,
            "provenance": self._provenance,
        }
        self._checkpoints.save(self.steps, state(), meta, self.history.arrays())
        self.saved_steps = self.steps

    def close(self) -> None:
        """Ends the records and waits for the checkpoint that is being written. Raises SaveError when that failed."""
        loggers, self._loggers = self._loggers, []
        checkpoints, self._checkpoints = self._checkpoints, None
        for logger in loggers:
            logger.close()
        if checkpoints is not None:
            checkpoints.close()

    def _flush(self) -> None:
        for logger in self._loggers:
            logger.flush()
        if self._loggers and self.directory is not None and self.directory.tensorboard.is_dir():
            sync_tree(self.directory.tensorboard)

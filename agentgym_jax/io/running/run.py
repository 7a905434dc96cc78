"""A run that has been made: its numbers, its policies, its plot; and reading it back from its directory."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.loggers import finite, read_records
from agentgym_jax.io.running import report
from agentgym_jax.io.running.assemble import Assembly, assemble
from agentgym_jax.io.running.history import Seconds
from agentgym_jax.io.running.policy import Policy
from agentgym_jax.io.running.run_directory import RunDirectory, damage_named, existing
from agentgym_jax.io.saving.checkpoint import Checkpoint, newest
from agentgym_jax.io.saving.durable import write_atomically
from agentgym_jax.training.parallel import state_shapes


@dataclasses.dataclass(frozen=True)
class Run:
    """What `train` returns and `load_run` reads. P members are on the leading axis, in the order of `experiment.members`."""

    experiment: Experiment
    assembly: Assembly
    state: Any  # TrainState [P, ...] on the host
    curves: dict[str, np.ndarray]  # {name: float32 [P, iterations]}; of a loaded run [P, calls], means over a call
    curve_steps: np.ndarray  # [iterations] or [calls]: environment steps of one member
    evaluation: dict[str, dict[str, np.ndarray]]  # {greedy, sampled: {name: float32 [P, points, E]}}
    evaluation_steps: np.ndarray  # [points]
    absolute: dict[str, np.ndarray]  # {name: float32 [P, 10 · E]}; of a loaded run empty
    total_steps: int  # environment steps of one member that ran
    seconds: Seconds = Seconds()
    compiles: int = 0  # traces of `advance`
    directory: Path | None = None
    summary: dict[str, Any] = dataclasses.field(default_factory=dict)  # see `report.summarise`

    @property
    def env(self) -> Any:
        """The environment with its wrappers, whose observations and actions `policy` takes and gives."""
        return self.assembly.env

    @property
    def last_evaluation(self) -> dict[str, dict[str, np.ndarray]]:
        """{greedy, sampled: {name: [P, E]}} at the last point."""
        return {policy: {name: x[:, -1] for name, x in results.items()} for policy, results in self.evaluation.items()}

    def policy(self, seed: int | None = None, greedy: bool = True, best: bool = False, point: int = 0) -> Policy:
        """The policy of the member with this seed (default: the first), to act outside the trainer.

        `greedy`: its mode, else the behaviour policy with its noise. `best`: as it was at its best evaluation, else as it is
        now. `point`: which swept setting, as in `experiment.points`. Raises ConfigError for a seed or point that did not run.
        """
        seeds, points = self.experiment.seeds, self.experiment.points
        seed = seeds[0] if seed is None else seed
        if seed not in seeds:
            raise ConfigError(f"seed: {seed} did not run; the run has {', '.join(map(str, seeds))}")
        if not 0 <= point < len(points):
            raise ConfigError(f"point: {point} did not run; the run has 0 … {len(points) - 1}")
        member = point * len(seeds) + seeds.index(seed)
        learner = self.state.best.learner if best else self.state.learner
        own = jax.tree.map(lambda x: jax.numpy.asarray(x[member]), learner)
        return Policy(self.assembly, own, self.assembly.hypers[point], greedy)

    def plot(self) -> Any:
        """The learning curve as a matplotlib figure."""
        return report.plot(self)


def load_run(path: str | Path, experiment: Experiment | None = None) -> Run:
    """A run from its directory, as of its newest checkpoint; changes nothing there.

    `experiment` is needed when the run's environment or networks were Python objects, which no file holds. Raises ConfigError
    when the folder is no run or does not fit.
    """
    directory = existing(path)
    experiment = load_experiment(directory.config) if experiment is None else experiment
    assembly = assemble(experiment)
    with damage_named(directory.path):
        return _read(directory, experiment, assembly)


def _read(directory: RunDirectory, experiment: Experiment, assembly: Assembly) -> Run:
    shapes = state_shapes(assembly.loop, *assembly.member_inputs())

    def use(checkpoint: Checkpoint) -> tuple[int, Any]:
        return checkpoint.step, checkpoint.state(shapes)

    steps, state = newest(directory.checkpoints, use)
    members = len(experiment.members)
    metrics = [record for record in read_records(directory.metrics) if record["step"] <= steps]
    evaluations = [record for record in read_records(directory.evaluations) if record["step"] <= steps]
    labels = {"step", "member", *experiment.members[0]}
    curve_steps, curves = _stack(metrics, members, lambda record: {k: v for k, v in record.items() if k not in labels})
    evaluation: dict[str, dict[str, np.ndarray]] = {}
    evaluation_steps = np.zeros(0, np.int64)
    for policy in ("greedy", "sampled"):
        evaluation_steps, evaluation[policy] = _stack(evaluations, members, lambda record, policy=policy: record[policy])
    summary = json.loads(directory.summary.read_text()) if directory.summary.exists() else {}
    return Run(
        experiment=experiment,
        assembly=assembly,
        state=state,
        curves=curves,
        curve_steps=curve_steps,
        evaluation=evaluation,
        evaluation_steps=evaluation_steps,
        absolute={},
        total_steps=steps,
        directory=directory.path,
        summary=summary,
    )


def _stack(records: list[dict[str, Any]], members: int, values: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Records of all members as arrays {name: float32 [P, X, ...]}, NaN where a record lacks a number, and the steps [X]."""
    steps = sorted({record["step"] for record in records})
    place = {step: index for index, step in enumerate(steps)}
    stacked: dict[str, np.ndarray] = {}
    for record in records:
        for name, value in values(record).items():
            array = np.asarray(value, np.float32)
            if name not in stacked:
                stacked[name] = np.full((members, len(steps), *array.shape), np.nan, np.float32)
            stacked[name][record["member"], place[record["step"]]] = array
    return np.asarray(steps, np.int64), stacked


def write_summary(run: Run, directory: RunDirectory) -> None:
    """curve.png and summary.json, in this order: a run with a summary is finished."""
    run.plot().savefig(directory.curve, dpi=120)
    write_atomically(directory.summary, json.dumps(finite(run.summary), indent=2, allow_nan=False) + "\n")

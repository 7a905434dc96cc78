"""One run driven from the host: dispatch a call, log the one before, measure at every point, save, answer signals."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import jax
import numpy as np

from agentgym_jax.io import report
from agentgym_jax.io.assemble import Assembly
from agentgym_jax.io.checkpoint import Checkpoints
from agentgym_jax.io.config import to_plain, to_yaml
from agentgym_jax.io.interrupt import Interrupted, Signals
from agentgym_jax.io.loggers import JsonLines, Logger, TensorBoard, WeightsAndBiases, call_means
from agentgym_jax.io.progress import Reporter
from agentgym_jax.io.provenance import provenance
from agentgym_jax.io.run import Run, Seconds, write_summary
from agentgym_jax.io.run_directory import RunDirectory
from agentgym_jax.io.statistics import iqm
from agentgym_jax.training.blocks import Blocks
from agentgym_jax.training.parallel import Population


class Session:
    """The state of one run while it goes on."""

    def __init__(
        self,
        assembly: Assembly,
        population: Population | Blocks,
        directory: RunDirectory | None,
        reporter: Reporter,
        traces: list[None],  # grows with every trace of `advance`
        memory: str,  # the line that says how much is needed
    ):
        self.assembly, self.population, self.directory, self.reporter = assembly, population, directory, reporter
        self.traces, self.memory = traces, memory
        self.members = assembly.experiment.members
        self.loggers: list[Logger] = []
        self.checkpoints: Checkpoints | None = None
        self.seconds = Seconds()
        self.iterations = 0  # done and logged
        self.saved_steps: int | None = None
        self._curves: list[dict[str, np.ndarray]] = []
        self._evaluations: list[dict[str, dict[str, np.ndarray]]] = []
        self._evaluation_steps: list[int] = []
        self._diverged: set[int] = set()
        self._provenance: dict[str, Any] = {}

    def train(self) -> Run:
        """The whole run; see `train`."""
        with Signals() as signals:
            try:
                run = self._go(signals)
            except Interrupted as stop:
                self._stopped(stop)
                raise
            except BaseException:
                self._close()  # what is being written is waited for, and its own failure told
                raise
            finally:
                self.reporter.close()
            run = dataclasses.replace(run, summary=report.summarise(run))
            if self.directory is not None:
                with signals.shield():
                    write_summary(run, self.directory)
        return run

    def _go(self, signals: Signals) -> Run:
        """Compiles, trains and measures; returns the run without its summary."""
        assembly, population, plan = self.assembly, self.population, self.assembly.plan
        self._open()
        self.reporter.note(what_runs(assembly, population))
        self.reporter.note(self.memory)
        self.reporter.begin(population.size, assembly.steps(plan.iterations))
        keys, hyper = (population.place(x) for x in assembly.member_inputs())
        self.seconds = self.seconds._replace(compile=population.compile(keys, hyper))
        self.reporter.note(f"compiled in {self.seconds.compile:.1f} s")
        self.reporter.trained_from(0)
        begun = time.perf_counter()
        states = jax.block_until_ready(population.init(keys, hyper))
        self._add(train=time.perf_counter() - begun)
        for point in range(plan.points):
            states = self._train_to_point(states, hyper, point, signals)
            states = self._evaluate(states, hyper, point == plan.points - 1, signals)
        states, absolute = self._absolute(states, hyper)
        with signals.shield():
            self._close()
        return self._run(population.members(states), absolute)

    def _stopped(self, stop: Interrupted) -> None:
        """Puts everything that is known on disk and says in one line what is there."""
        self._close()
        steps, total = (self.assembly.steps(n) for n in (self.iterations, self.assembly.plan.iterations))
        where = "nothing was written"
        if self.directory is not None:
            saved = "no checkpoint" if self.saved_steps is None else f"a checkpoint at {self.saved_steps:,} steps"
            where = f"{saved}; {self.directory.contents()}"
        self.reporter.note(f"stopped by {stop} at {steps if self.iterations else 0:,} of {total:,} steps; {where}")

    # ---- the parts of a run

    def _open(self) -> None:
        directory, experiment = self.directory, self.assembly.experiment
        if directory is None:
            return
        directory.config.write_text(to_yaml(experiment))
        self._provenance = provenance(experiment.seeds)
        directory.provenance.write_text(json.dumps(self._provenance, indent=2) + "\n")
        self.loggers.append(JsonLines(directory.metrics, directory.evaluations))
        if experiment.log.tensorboard:
            self.loggers.append(TensorBoard(directory.tensorboard, self.members))
        if experiment.log.wandb is not None:
            self.loggers.append(WeightsAndBiases(experiment.log.wandb, directory.path.name, to_plain(experiment)))
        self.checkpoints = Checkpoints(directory.checkpoints)

    def _train_to_point(self, states: Any, hyper: Any, point: int, signals: Signals) -> Any:
        """All calls between two evaluations; while the device works on one, the host logs the one before."""
        plan, population = self.assembly.plan, self.population
        running, mark = None, time.perf_counter()
        for call in range(plan.calls):
            iteration = (point * plan.calls + call) * plan.iterations_per_call
            states, curves = population.advance(states, hyper, population.clock(iteration, plan.iterations))
            if running is not None:
                mark = self._log_call(running, mark, signals)
            running = curves
        self._log_call(running, mark, signals)
        return states

    def _log_call(self, curves: Any, mark: float, signals: Signals) -> float:
        """Waits for a call, counts its seconds and writes its records; returns when it was finished."""
        curves = self.population.members(curves)
        now = time.perf_counter()
        self._add(train=now - mark)
        with signals.shield():
            self._curves.append(curves)
            self.iterations += self.assembly.plan.iterations_per_call
            steps = self.assembly.steps(self.iterations)
            for index, member in enumerate(self.members):
                values = call_means({name: values[index] for name, values in curves.items()})
                for logger in self.loggers:
                    logger.metrics(index, member, steps, values)
            self._name_diverged(curves["diverged"], steps)
        self.reporter.advanced(steps, self.seconds.train)
        return now

    def _evaluate(self, states: Any, hyper: Any, last: bool, signals: Signals) -> Any:
        """One evaluation of all members, logged and flushed to disk; then the checkpoint."""
        begun = time.perf_counter()
        states, results = self.population.evaluate(states, hyper, self.population.round(0))
        results = self.population.members(results)
        self._add(evaluation=time.perf_counter() - begun)
        steps = self.assembly.steps(self.iterations)
        with signals.shield():
            self._evaluations.append(results)
            self._evaluation_steps.append(steps)
            for index, member in enumerate(self.members):
                own = jax.tree.map(lambda x, index=index: x[index], results)
                for logger in self.loggers:
                    logger.evaluation(index, member, steps, own)
            for logger in self.loggers:
                logger.flush()
            if self.checkpoints is not None and (last or self.assembly.experiment.log.checkpoint == "point"):
                self._save(states, steps)
        returns = np.asarray(np.mean(results["greedy"]["return"], axis=-1, dtype=np.float64))
        self.reporter.evaluated(iqm(returns[np.isfinite(returns)]), steps)
        return states

    def _save(self, states: Any, steps: int) -> None:
        experiment = self.assembly.experiment
        meta = {
            "steps": steps,
            "iteration": self.iterations,
            "total_iterations": self.assembly.plan.iterations,
            "config": to_plain(experiment),
            "provenance": self._provenance,
        }
        assert self.checkpoints is not None
        self.checkpoints.save(steps, self.population.members(states), meta)
        self.saved_steps = steps

    def _absolute(self, states: Any, hyper: Any) -> tuple[Any, dict[str, np.ndarray]]:
        """The best policy of every member on fresh episodes, {name: [P, 10 · E]}."""
        begun = time.perf_counter()
        rounds = []
        for number in range(1, self.assembly.plan.absolute + 1):
            states, results = self.population.evaluate(states, hyper, self.population.round(number))
            rounds.append(self.population.members(results)["greedy"])
        self._add(evaluation=time.perf_counter() - begun)
        return states, {name: np.concatenate([each[name] for each in rounds], axis=1) for name in rounds[0]}

    def _close(self) -> None:
        for logger in self.loggers:
            logger.close()
        self.loggers = []
        if self.checkpoints is not None:
            self.checkpoints.close()
            self.checkpoints = None

    def _add(self, train: float = 0.0, evaluation: float = 0.0) -> None:
        self.seconds = self.seconds._replace(train=self.seconds.train + train, evaluation=self.seconds.evaluation + evaluation)

    def _name_diverged(self, diverged: np.ndarray, steps: int) -> None:
        for index in map(int, np.flatnonzero(np.any(diverged > 0, axis=1))):
            if index not in self._diverged:
                self._diverged.add(index)
                self.reporter.note(f"member {dict(self.members[index])} diverged by {steps:,} steps; the others go on")

    def _run(self, state: Any, absolute: dict[str, np.ndarray]) -> Run:
        plan = self.assembly.plan
        return Run(
            experiment=self.assembly.experiment,
            assembly=self.assembly,
            state=state,
            curves={name: np.concatenate([x[name] for x in self._curves], axis=1) for name in self._curves[0]},
            curve_steps=np.array([self.assembly.steps(n + 1) for n in range(plan.iterations)], np.int64),
            evaluation=jax.tree.map(lambda *points: np.stack(points, axis=1), *self._evaluations),
            evaluation_steps=np.array(self._evaluation_steps, np.int64),
            absolute=absolute,
            total_steps=self.assembly.steps(plan.iterations),
            seconds=self.seconds,
            compiles=len(self.traces),
            directory=None if self.directory is None else self.directory.path,
        )


def what_runs(assembly: Assembly, population: Population | Blocks) -> str:
    """One line before a run starts: the budget as it was rounded, and on what it runs."""
    experiment, plan = assembly.experiment, assembly.plan
    steps, members, devices = assembly.steps(plan.iterations), population.size, len(population.devices)
    asked = experiment.train.total_steps
    rounded = "" if steps == asked else f" ({asked:,} rounded up to whole iterations and points"
    if rounded:
        rounded += f", and {assembly.steps(0):,} of warm-up)" if assembly.algorithm.warmup else ")"
    return (
        f"{report.env_name(experiment.env.id)}, {experiment.name}: {members} member{'s' if members > 1 else ''} ×"
        f" {steps:,} steps{rounded} = {plan.iterations:,} iterations of {plan.num_envs} × {plan.rollout_length} steps,"
        f" {plan.points} evaluations of {plan.episodes} episodes; {devices} {population.devices[0].platform} device"
        f"{'s' if devices > 1 else ''}, mode {population.mode}"
    )

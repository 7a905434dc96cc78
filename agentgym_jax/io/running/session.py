"""One run driven from the host: dispatch a call, log the one before, measure at every point, save, answer signals."""

from __future__ import annotations

import dataclasses
import shlex
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from agentgym_jax.io.running import report
from agentgym_jax.io.running.assemble import Assembly
from agentgym_jax.io.running.history import History
from agentgym_jax.io.running.interrupt import Interrupted, Signals
from agentgym_jax.io.running.lock import Lock
from agentgym_jax.io.running.progress import Reporter
from agentgym_jax.io.running.recorder import Recorder
from agentgym_jax.io.running.run import Run, write_summary
from agentgym_jax.io.running.run_directory import RunDirectory
from agentgym_jax.io.running.statistics import iqm
from agentgym_jax.training.blocks import Blocks
from agentgym_jax.training.parallel import Population


class Start(NamedTuple):
    """Where a run begins that is not new."""

    steps: int  # environment steps of one member; 0: it begins again
    state: Any  # TrainState [P, ...] on the host; None at 0 steps
    score: float | None  # of the checkpoint
    history: History
    resumption: dict[str, Any]  # what provenance.json tells of it
    note: str  # the line that a person reads


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
        lock: Lock | None = None,  # on the directory
        start: Start | None = None,
    ):
        self.assembly, self.population, self.directory, self.reporter = assembly, population, directory, reporter
        self.traces, self.memory, self.lock, self.start = traces, memory, lock, start
        self.history = History() if start is None else start.history
        self.recorder = Recorder(assembly, directory, reporter, self.history, program(assembly, population))
        self.resume_command = "" if directory is None else f"agentgym resume {shlex.quote(str(directory.path))}"

    def train(self, ends_process: bool = False) -> Run:
        """The whole run; see `runner.train`. `ends_process`: see `Signals`."""
        with Signals(ends_process, self.reporter.note) as signals:
            try:
                run = self._go(signals)
                run = dataclasses.replace(run, summary=report.summarise(run))
                if self.directory is not None:
                    with signals.shield():
                        write_summary(run, self.directory)
            except Interrupted as stop:
                self._stopped(stop)
                raise
            except BaseException:
                self.recorder.close()  # what is being written is waited for, and its own failure told
                raise
            finally:
                self.reporter.close()
                if self.lock is not None:
                    self.lock.release()
        return run

    def _go(self, signals: Signals) -> Run:
        """Compiles, trains and measures; returns the run without its summary."""
        assembly, population, plan, start = self.assembly, self.population, self.assembly.plan, self.start
        with signals.shield():
            self.recorder.open() if start is None else self.recorder.open(start.steps, start.resumption)
        for line in (what_runs(assembly, population), self.memory, *([] if start is None else [start.note])):
            self.reporter.note(line)
        self.reporter.begin(population.size, assembly.steps(plan.iterations))
        keys, hyper = (population.place(x) for x in assembly.member_inputs())
        seconds = population.compile(keys, hyper)
        self.history.add_seconds(compile=seconds)
        self.reporter.note(f"compiled in {seconds:.1f} s")
        self.reporter.trained_from(self.recorder.steps)
        states = self._begin(keys, hyper)
        with signals.deferred(wanted=self.recorder.can_save):
            while len(self.history.evaluation_steps) < plan.points:
                states = self._train_to_point(states, hyper, signals)
                states = self._evaluate(states, hyper, signals)
        states, absolute = self._absolute(states, hyper)
        with signals.shield():
            self.recorder.close()
        return self._run(population.members(states), absolute)

    def _stopped(self, stop: Interrupted) -> None:
        """Puts everything that is known on disk and says in one line what is there."""
        self.recorder.close()
        where, saved = "nothing was written", self.recorder.saved_steps
        if self.directory is not None:
            saved = "no checkpoint" if saved is None else f"a checkpoint at {saved:,} steps"
            where = f"{saved}; {self.directory.contents()}; go on with: {self.resume_command}"
        total = self.assembly.steps(self.assembly.plan.iterations)
        self.reporter.note(f"stopped by {stop} at {self.recorder.steps:,} of {total:,} steps; {where}")

    # ---- the parts of a run

    def _begin(self, keys: Any, hyper: Any) -> Any:
        """The states on the devices: new ones, or those that the run goes on from."""
        begun = time.perf_counter()
        if self.start is None or self.start.state is None:
            states = self.population.init(keys, hyper)
        else:
            state, self.start = self.start.state, self.start._replace(state=None)  # the devices have it from now on
            self.recorder.save(lambda: state, self.start.score)  # the first in a directory of its own, else there already
            states = self.population.place(state)
        states = jax.block_until_ready(states)
        self.history.add_seconds(train=time.perf_counter() - begun)
        return states

    def _train_to_point(self, states: Any, hyper: Any, signals: Signals) -> Any:
        """All calls up to the next evaluation; while the device works on one, the host logs the one before.

        A checkpoint before the evaluation waits for the call that runs.
        """
        plan, population = self.assembly.plan, self.population
        begin, end = self.history.iterations // plan.iterations_per_call, (len(self.history.evaluation_steps) + 1) * plan.calls
        running, mark = None, time.perf_counter()
        for call in range(begin, end):
            clock = population.clock(call * plan.iterations_per_call, plan.iterations)
            states, curves = population.advance(states, hyper, clock)
            if running is not None:
                mark = self._log_call(running, mark, signals)
            running = curves
            if call + 1 < end and (signals.pending or self.recorder.due(calls=call + 1)):
                self._log_call(running, mark, signals)
                self._save(states, None, signals)
                running, mark = None, time.perf_counter()
        if running is not None:
            self._log_call(running, mark, signals)
        return states

    def _log_call(self, curves: Any, mark: float, signals: Signals) -> float:
        """Waits for a call, counts its seconds and writes its records; returns when it was finished."""
        curves = self.population.members(curves)
        now = time.perf_counter()
        self.history.add_seconds(train=now - mark)
        with signals.shield():
            self.recorder.call(curves)
        self.reporter.advanced(self.recorder.steps, self.history.seconds.train)
        return now

    def _evaluate(self, states: Any, hyper: Any, signals: Signals) -> Any:
        """One evaluation of all members, logged; then the checkpoint, if one is due or a signal came."""
        begun = time.perf_counter()
        states, results = self.population.evaluate(states, hyper, self.population.round(0))
        results = self.population.members(results)
        self.history.add_seconds(evaluation=time.perf_counter() - begun)
        with signals.shield():
            self.recorder.evaluation(results)
        returns = np.asarray(np.mean(results["greedy"]["return"], axis=-1, dtype=np.float64))
        self.reporter.evaluated(iqm(returns[np.isfinite(returns)]), self.recorder.steps)
        if signals.pending or self.recorder.due():
            self._save(states, self.history.score(), signals)
        return states

    def _save(self, states: Any, score: float | None, signals: Signals) -> None:
        """A checkpoint; then the signal, if one came."""
        with signals.shield():
            self.recorder.save(lambda: self.population.members(states), score)
        signals.check()

    def _absolute(self, states: Any, hyper: Any) -> tuple[Any, dict[str, np.ndarray]]:
        """The best policy of every member on fresh episodes, {name: [P, 10 · E]}."""
        begun = time.perf_counter()
        rounds = []
        for number in range(1, self.assembly.plan.absolute + 1):
            states, results = self.population.evaluate(states, hyper, self.population.round(number))
            rounds.append(self.population.members(results)["greedy"])
        self.history.add_seconds(evaluation=time.perf_counter() - begun)
        return states, {name: np.concatenate([each[name] for each in rounds], axis=1) for name in rounds[0]}

    def _run(self, state: Any, absolute: dict[str, np.ndarray]) -> Run:
        plan, history = self.assembly.plan, self.history
        return Run(
            experiment=self.assembly.experiment,
            assembly=self.assembly,
            state=state,
            curves=history.curves(),
            curve_steps=np.array([self.assembly.steps(n + 1) for n in range(plan.iterations)], np.int64),
            evaluation=history.evaluation(),
            evaluation_steps=np.array(history.evaluation_steps, np.int64),
            absolute=absolute,
            total_steps=self.assembly.steps(plan.iterations),
            seconds=history.seconds,
            compiles=len(self.traces),
            directory=None if self.directory is None else self.directory.path,
        )


def program(assembly: Assembly, population: Population | Blocks) -> dict[str, Any]:
    """What the compiled programs depend on beside the settings of the experiment, as plain data."""
    at_once = population.population if isinstance(population, Blocks) else population
    return {
        "members": population.size,
        "members at a time": at_once.size,
        "devices": len(population.devices),
        "mode": population.mode,
        "shards": assembly.loop.shards,
        "iterations in a call": assembly.plan.iterations_per_call,
    }


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

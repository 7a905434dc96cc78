"""Hyperparameter search: batches of trials, each one compiled population, asked of and told to optuna."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_jax.checks import ConfigError, check_choice
from agentgym_jax.io.config import check
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.load import load_experiment, to_yaml
from agentgym_jax.io.config.settings import with_settings
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.running.history import History
from agentgym_jax.io.running.lock import Lock
from agentgym_jax.io.running.progress import Reporter, make_reporter
from agentgym_jax.io.running.run_directory import RunDirectory, damage_named
from agentgym_jax.io.running.runner import prepare
from agentgym_jax.io.saving.durable import write_atomically
from agentgym_jax.io.search.trials import (
    PRUNERS,
    Batch,
    Space,
    ask,
    for_validation,
    left_behind,
    make_pruner,
    make_sampler,
    optuna,
)
from agentgym_jax.io.sweeps import plot as sweep_plot
from agentgym_jax.io.sweeps import table as sweep_table
from agentgym_jax.io.sweeps.drive import open_directory
from agentgym_jax.io.sweeps.groups import value_in_words

CONFIG, PROTOCOL = "search.yaml", "tune.json"
_POLICIES = ("greedy", "sampled", "absolute")


@dataclasses.dataclass(frozen=True)
class Search:
    """What `tune` returns."""

    experiment: Experiment | None  # with the settings of the best trial, ready for `train`; None where no trial was finished
    study: Any  # optuna's
    trials: list[dict[str, Any]]  # a row a trial: number, state, value, its settings, …
    protocol: dict[str, Any]  # what the trials were scored on, and what the result is to be reported on
    compiles: int  # traces of `advance` over all batches of this call
    directory: Path | None


@dataclasses.dataclass(frozen=True)
class Options:
    """How to search; see `tune`."""

    trials: int
    batch: int = 8
    seeds: Any = 1
    metric: str = "greedy.return"
    minimise: bool = False
    pruner: str = "median"
    seed: int = 0
    eval_seed: int | None = None

    def __post_init__(self):
        for name in ("trials", "batch"):
            object.__setattr__(self, name, check.whole(f"tune: {name}", getattr(self, name)))
        object.__setattr__(self, "seed", check.whole("tune: seed", self.seed, least=0))
        check_choice("tune: pruner", self.pruner, PRUNERS)


def tune(
    experiment: Experiment | str | Path | Mapping[str, Any],
    trials: int,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    overrides: Sequence[str] = (),
    storage: str | None = None,
    **options: Any,
) -> Search:
    """Searches for the settings of an experiment's section `search` that score best.

    Args:
      experiment: an `Experiment`, or what `load_experiment` reads, with `overrides`. trials: how many in all, rounded up to
        whole batches. out: a directory for the study and what came of it; None writes nothing.
      resume: go on with the study in `out`, up to `trials` in all. overwrite: move an existing directory aside.
      storage: a URL of optuna's for the study; None: the file `study.db` in `out`.
      options: batch (8), trials in one population; seeds (1), training seeds of a trial, a count from 1,000,000 upwards or
        a list; eval_seed, of the validation episodes; metric (greedy.return), minimise; pruner (median, halving, none);
        seed (0), of the sampler.

    Raises:
      ConfigError: what cannot run; seeds or evaluation keys that the experiment's own result is reported on; optuna is not
      installed; the directory of another search. Interrupted: finished batches are in the study then.
    """
    check.known_keys("tune", options, [field.name for field in dataclasses.fields(Options)])
    library, chosen = optuna(), Options(trials, **options)
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment, overrides)
    if not experiment.search:
        raise ConfigError("search: is empty; write search: {algorithm.learning_rate: {log_uniform: [1e-4, 1e-2]}}")
    space, base = Space.of(experiment), for_validation(experiment, chosen.seeds, chosen.eval_seed)
    chosen = chosen if space.traced else dataclasses.replace(chosen, batch=1)  # alike in everything static, they are the same
    _check_metric(chosen.metric, assemble(base).spec)
    protocol = {
        "metric": chosen.metric, "minimise": chosen.minimise, "pruner": chosen.pruner, "batch": chosen.batch,
        "validation": {"seeds": list(base.seeds), "eval_seed": base.eval.seed},
        "report": {"seeds": list(experiment.seeds), "eval_seed": experiment.eval.seed},
    }  # fmt: skip
    directory = None if out is None else open_directory(experiment, Path(out), CONFIG, resume, overwrite)
    lock = None if directory is None else Lock(RunDirectory(directory).lock)
    try:
        if directory is not None:
            _same_protocol(directory, protocol)
        study = _study(library, directory, storage, chosen, protocol)
        return _Tuning(experiment, base, space, chosen, study, protocol, directory, quiet).run()
    finally:
        if lock is not None:
            lock.release()


def trials_table(found: Search, metric: str, minimise: bool) -> Any:
    """The best trials, for a terminal."""
    keys = [key for key in found.trials[0] if key not in ("state", "value", "evaluations", "diverged")] if found.trials else []
    complete = [{**row, metric: row["value"]} for row in found.trials if row["state"] == "COMPLETE"]
    return sweep_table.ranked(complete, metric, keys, "the best trials, on validation seeds", minimise)


def _check_metric(metric: str, spec: Any) -> None:
    policy, _, name = metric.partition(".")
    check_choice("tune: metric", policy, _POLICIES)
    check_choice(f"tune: metric {policy}", name, ("return", "agent_return", "length", "cut", *dict(spec.metrics)))


def _same_protocol(directory: Path, protocol: Mapping[str, Any]) -> None:
    """Writes the protocol of a new search; refuses to go on by another one, whose scores could not be compared."""
    path = directory / PROTOCOL
    if not path.exists():
        write_atomically(path, json.dumps(protocol, indent=2) + "\n")
        return
    with damage_named(path):
        before = json.loads(path.read_text())
    for name, value in protocol.items():
        if before.get(name) != value:
            raise ConfigError(f"{directory} was searched with {name} {before.get(name)!r}, got {value!r}; leave it as it was")


def _study(library: Any, directory: Path | None, storage: str | None, chosen: Options, protocol: Mapping[str, Any]) -> Any:
    if storage is None and directory is not None:
        storage = f"sqlite:///{directory / 'study.db'}"
    study = library.create_study(
        storage=storage,
        study_name=None if directory is None else directory.resolve().name,
        load_if_exists=directory is not None,
        direction="minimize" if chosen.minimise else "maximize",
        pruner=make_pruner(library, chosen.pruner),
    )
    if study.user_attrs.get("protocol", protocol) != protocol:
        raise ConfigError(f"storage {storage} holds another study of this name; choose another --out or --storage")
    study.set_user_attr("protocol", protocol)
    study.sampler = make_sampler(library, chosen.seed + len(study.trials))  # a resumed one must not draw the same again
    return study


class _AllPruned(Exception):
    """Nobody of a batch is left."""


class _Listening(Reporter):
    """Passes everything on to another reporter, and looks at the session after each evaluation."""

    def __init__(self, to: Reporter, batch: Batch):
        super().__init__()
        self._to, self._batch, self.history = to, batch, History()
        self.begin, self.trained_from, self.advanced, self.note, self.close = (
            to.begin, to.trained_from, to.advanced, to.note, to.close,
        )  # fmt: skip

    def evaluated(self, iqm: float, steps: int) -> None:
        self._to.evaluated(iqm, steps)
        if not self._batch.measured(self.history):
            raise _AllPruned


class _Tuning:
    """One call of `tune`."""

    def __init__(
        self, experiment: Experiment, base: Experiment, space: Space, chosen: Options, study: Any, protocol: Any,
        directory: Path | None, quiet: bool,
    ):  # fmt: skip
        self.experiment, self.base, self.space, self.chosen, self.study = experiment, base, space, chosen, study
        self.protocol, self.directory, self.quiet = protocol, directory, quiet
        self.compiles = 0

    def run(self) -> Search:
        batch, waiting = self.chosen.batch, left_behind(self.study)
        total = -(-self.chosen.trials // batch) * batch
        reporter = make_reporter(self.quiet)
        if total != self.chosen.trials:
            reporter.note(f"{self.chosen.trials} trials rounded up to {total}, whole batches of {batch}")
        while (done := self._done()) < total:
            self._batch(done, total, waiting)
            self._write()
        return Search(self._best(), self.study, self.rows(), self.protocol, self.compiles, self.directory)

    def _batch(self, done: int, total: int, waiting: list[dict[str, Any]]) -> None:
        trials = ask(self.study, self.space, self.chosen.batch, waiting)
        experiment = self.space.population(self.base, [trial.params for trial in trials])
        batch = Batch(self.study, trials, self.chosen.metric, len(experiment.seeds), experiment.eval.points)
        reporter = _Listening(make_reporter(self.quiet), batch)
        shared = ", ".join(f"{key} {trials[0].params[key]}" for key in self.space.static)
        reporter.note(f"trials {done + 1} to {done + len(trials)} of {total}{f': {shared}' if shared else ''}")
        session = prepare(experiment, reporter=reporter)
        reporter.history = session.history
        try:
            batch.finished(session.train())
        except _AllPruned:
            reporter.note("all of them pruned")
        self.compiles += len(session.traces)

    def _done(self) -> int:
        return sum(row["state"] in ("COMPLETE", "PRUNED") for row in self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """A row a trial."""
        found = []
        for trial in self.study.get_trials(deepcopy=False):
            row = {"trial": trial.number, "state": trial.state.name, "value": trial.value}
            row |= {key: trial.params.get(key) for key in self.space.search}
            row |= {"evaluations": len(trial.intermediate_values), "diverged": trial.user_attrs.get("diverged", False)}
            found.append(row)
        return found

    def _best(self) -> Experiment | None:
        best = self._best_row()
        if best is None:
            return None
        chosen = self.space.settings({key: best[key] for key in self.space.search})
        return with_settings(dataclasses.replace(self.experiment, search={}), chosen)

    def _best_row(self) -> dict[str, Any] | None:
        complete = [row for row in self.rows() if row["state"] == "COMPLETE"]
        pick = min if self.chosen.minimise else max
        return pick(complete, key=lambda row: row["value"]) if complete else None

    def _write(self) -> None:
        """trials.csv, best.yaml and trials.png, as of now."""
        if self.directory is None:
            return
        rows, text = self.rows(), io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_atomically(self.directory / "trials.csv", text.getvalue())
        best = self._best_row()
        if best is not None:
            told = ", ".join(f"{key} {value_in_words(best[key])}" for key in self.space.search)
            how = f"# Trial {best['trial']} of {len(rows)}: {self.chosen.metric} {best['value']:.6g} with {told}\n"
            how += f"# on seeds {list(self.base.seeds)} and eval.seed {self.base.eval.seed}; this file has others.\n"
            write_atomically(self.directory / "best.yaml", how + to_yaml(self._best()))  # type: ignore[arg-type]
        figure = sweep_plot.trials(rows, tuple(self.space.search), self.chosen.metric, self.chosen.minimise)
        figure.savefig(self.directory / "trials.png", dpi=120)

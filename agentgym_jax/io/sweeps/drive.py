"""A sweep driven from the host: group after group, each a run of its own, and one table over all of them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.load import load_experiment, to_plain, to_yaml
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.running.devices import make_population
from agentgym_jax.io.running.lock import Lock
from agentgym_jax.io.running.programs import static_key
from agentgym_jax.io.running.progress import Reporter, make_reporter
from agentgym_jax.io.running.run import Run, load_run
from agentgym_jax.io.running.run_directory import RunDirectory, create, damage_named
from agentgym_jax.io.running.runner import prepare
from agentgym_jax.io.running.session import Session, what_runs
from agentgym_jax.io.saving.durable import write_atomically
from agentgym_jax.io.saving.resume import prepare as resume_run
from agentgym_jax.io.sweeps import plot as sweep_plot
from agentgym_jax.io.sweeps import table as sweep_table
from agentgym_jax.io.sweeps import varied as settings
from agentgym_jax.io.sweeps.groups import Group, groups, in_words

CONFIG = "sweep.yaml"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What `sweep` returns."""

    experiment: Experiment
    groups: tuple[Group, ...]
    table: list[dict[str, Any]]  # a row a member, see `sweep_table.rows`
    directory: Path | None
    kept: tuple[Run, ...]  # the runs themselves, where no directory holds them

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run of every group; read from its directory where there is one."""
        if self.directory is None:
            return self.kept
        return tuple(load_run(_folder(self.directory, i), group.experiment) for i, group in enumerate(self.groups))

    @property
    def keys(self) -> tuple[str, ...]:
        """The swept keys."""
        return tuple(settings.columns(self.experiment.sweep))

    def column(self, name: str) -> np.ndarray:
        """One column of the table, [members]."""
        return sweep_table.column(self.table, name)

    def plot(self, metric: str = "greedy.return") -> Any:
        """The metric against each swept setting, as a matplotlib figure."""
        return sweep_plot.plot(self.table, self.keys, metric)


def sweep(
    experiment: Experiment | str | Path | Mapping[str, Any],
    seeds: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
    overrides: Sequence[str] = (),
) -> Sweep:
    """Trains every member of an experiment's sweep, members that share everything static in one compiled program.

    Args:
      experiment: an `Experiment`, or what `load_experiment` reads, with `overrides`. seeds: replaces its seeds.
      out: the sweep's directory, with a run directory `group-000` … for each group; None writes nothing.
      resume: skip the groups that are finished in `out`, and go on with a half-done one from its newest checkpoint.
      overwrite: move an existing directory aside. quiet: no progress on stderr.

    Raises:
      ConfigError: what cannot run in any group, before anything compiles; a directory of another sweep. Interrupted: Ctrl-C
      or SIGTERM; finished groups and their table are on disk then.
    """
    experiment = read(experiment, seeds, overrides)
    together = groups(experiment)
    for group in together:
        with _named(group):
            assemble(group.experiment)
    directory = None if out is None else open_directory(experiment, Path(out), CONFIG, resume, overwrite)
    lock = None if directory is None else Lock(RunDirectory(directory).lock)
    try:
        return _all(experiment, together, directory, quiet)
    finally:
        if lock is not None:
            lock.release()


def _all(experiment: Experiment, together: tuple[Group, ...], directory: Path | None, quiet: bool) -> Sweep:
    keys = tuple(settings.columns(experiment.sweep))
    table: list[dict[str, Any]] = []
    kept: list[Run] = []
    for index, group in enumerate(together):
        folder, reporter = None if directory is None else _folder(directory, index), make_reporter(quiet)
        reporter.note(f"group {index + 1} of {len(together)}" + (f": {in_words(group.settings)}" if group.settings else ""))
        summary = None if folder is None else _finished(folder)
        if summary is None:
            run = group_session(group, folder, reporter).train()
            summary = run.summary
            kept += [run] if folder is None else []
        else:
            reporter.note("finished before, skipped")
        table += sweep_table.rows(index, group, keys, summary)
        if directory is not None:
            sweep_table.write(table, directory)
    result = Sweep(experiment, together, table, directory, tuple(kept))
    if directory is not None:
        result.plot().savefig(directory / "sweep.png", dpi=120)
    return result


def group_session(group: Group, folder: Path | None, reporter: Reporter) -> Session:
    """The run of one group: new, or going on from the checkpoint of one that was stopped."""
    session = None
    if folder is not None and RunDirectory(folder).config.exists():  # written last of what a resumption needs
        session = resume_run(folder, experiment=group.experiment, reporter=reporter)
    if session is None:
        session = prepare(group.experiment, out=folder, overwrite=True, reporter=reporter)
    if folder is not None:
        session.resume_command = f"agentgym sweep {folder.parent / CONFIG} --out {folder.parent} --resume"
    return session


def read(experiment: Any, seeds: Any = None, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment of a sweep. Raises ConfigError where there is nothing to sweep."""
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment, overrides)
    elif overrides:
        raise ConfigError("overrides: are for files; change the Experiment with dataclasses.replace")
    if seeds is not None:
        experiment = dataclasses.replace(experiment, seeds=seeds)
    if experiment.search:
        raise ConfigError("search: is for `agentgym tune`; a sweep needs a section `sweep`")
    if not experiment.sweep:
        raise ConfigError("sweep: is empty; write sweep: {algorithm.learning_rate: [1e-3, 3e-4]}, or use `agentgym train`")
    return experiment


def outline(experiment: Experiment) -> list[str]:
    """What a sweep would run: groups, members, steps, memory, in lines for a person. Compiles nothing."""
    lines, programs, together = [], set(), groups(experiment)
    for index, group in enumerate(together):
        with _named(group):
            assembly = assemble(group.experiment)
            population, memory = make_population(assembly)
        programs.add(static_key(group.experiment) or index)
        lines += [f"group {index + 1}: {in_words(group.settings) or 'all members'}"]
        lines += [f"  {what_runs(assembly, population)}", f"  {memory}"]
    count = len(experiment.members)
    lines.append(f"{_plural(len(together), 'group')}, {_plural(count, 'member')}, {_plural(len(programs), 'compilation')}")
    return lines


def best_table(result: Sweep, metric: str) -> Any:
    """The best settings of a sweep, for a terminal."""
    settled = sweep_table.over_seeds(result.table, result.keys, metric)
    title = f"the best of {_plural(len(settled), 'setting')}, IQM over seeds"
    return sweep_table.ranked(settled, metric, [*result.keys, "seeds"], title)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@contextlib.contextmanager
def _named(group: Group) -> Iterator[None]:
    """Names the group in an error about it."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"sweep at {in_words(group.settings)}: {error}" if group.settings else str(error)) from None


def _folder(directory: Path, index: int) -> Path:
    return directory / f"group-{index:03}"


def _finished(folder: Path) -> dict[str, Any] | None:
    """The summary of a run that came to its end, which is the last thing that it writes."""
    path = RunDirectory(folder).summary
    if not path.exists():
        return None
    with damage_named(path):
        return json.loads(path.read_text())


def open_directory(experiment: Experiment, path: Path, name: str, resume: bool, overwrite: bool) -> Path:
    """A directory for several runs of an experiment, whose file there is `name`: new, or that of the same experiment.

    Raises ConfigError for any other.
    """
    if resume and (path / name).exists():
        check_same(path / name, experiment)
        return path
    create(path, overwrite)
    write_atomically(path / name, to_yaml(experiment))
    return path


def check_same(file: Path, experiment: Experiment) -> None:
    """Refuses to go on in the directory of another experiment, and names the first setting that differs."""
    with damage_named(file):
        before: Any = OmegaConf.to_container(OmegaConf.load(file))
    now = to_plain(experiment)
    for section in dict.fromkeys([*now, *before]):
        old, new = before.get(section), now.get(section)
        if section == "log" or old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            key = next(key for key in dict.fromkeys([*new, *old]) if old.get(key) != new.get(key))
            section, old, new = f"{section}.{key}", old.get(key), new.get(key)
        raise ConfigError(f"{file.parent} holds another experiment: {section} is {old!r} there and {new!r} here")

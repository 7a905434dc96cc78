"""Going on with a run in a new process: from its newest checkpoint, equal to the bit wherever the program is the same."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.files import load_plain
from agentgym_jax.io.config.load import load_experiment, to_plain
from agentgym_jax.io.running import runner
from agentgym_jax.io.running.assemble import Assembly, assemble
from agentgym_jax.io.running.devices import make_population
from agentgym_jax.io.running.history import History, read_history
from agentgym_jax.io.running.lock import Lock
from agentgym_jax.io.running.progress import Reporter, make_reporter
from agentgym_jax.io.running.provenance import git_commit, machine, versions
from agentgym_jax.io.running.run import Run, load_run
from agentgym_jax.io.running.run_directory import RunDirectory, create, existing
from agentgym_jax.io.running.session import Session, Start, program
from agentgym_jax.io.saving import carry_over
from agentgym_jax.io.saving.checkpoint import Checkpoint, newest, stored_steps
from agentgym_jax.training.blocks import Blocks
from agentgym_jax.training.parallel import Population, state_shapes

# Another value leaves what is learnt the same up to rounding. Everything else would be another experiment.
MAY_CHANGE = ("train.calls", "train.population", "train.block", "train.shards", "seeds", "log.checkpoint", "log.keep")
_MACHINE = ("backend", "device_kind", "processor", "xla_flags", "jax_environment", "x64", "prng")  # can change a number


def resume(
    path: str | Path,
    overrides: Sequence[str] = (),
    from_step: int | None = None,
    out: str | Path | None = None,
    experiment: Experiment | None = None,
    quiet: bool = False,
) -> Run:
    """Goes on with an interrupted run, in its directory; a finished one is only loaded.

    Args:
      overrides: `key=value` of what may change, see `MAY_CHANGE`; fewer seeds need `out`.
      from_step: the checkpoint to go on from, in environment steps; later ones and later records are removed. None: the
        newest. out: a new run directory to go on in; the old one is left as it is.
      experiment: needed when the run's environment or networks were Python objects, which no file holds.

    Raises:
      ConfigError: no run, a damaged or foreign checkpoint, another process that writes there, a setting that must not change.
      Interrupted, SaveError: see `train`.
    """
    session = prepare(path, overrides, from_step, out, experiment, make_reporter(quiet))
    return load_run(path, experiment) if session is None else session.train()


def prepare(
    path: str | Path,
    overrides: Sequence[str] = (),
    from_step: int | None = None,
    out: str | Path | None = None,
    experiment: Experiment | None = None,
    reporter: Reporter | None = None,
) -> Session | None:
    """All that can be refused, then the records without what lies beyond the checkpoint; None for a finished run."""
    source = existing(path)
    if source.summary.exists():
        return None
    old, experiment = _experiments(source, overrides, experiment)
    traces: list[None] = []
    assembly = assemble(experiment, on_trace=lambda: traces.append(None))
    population, memory = make_population(assembly)
    runner.warn_of_hangs(population)
    members = _members(old, assembly.experiment, out)
    lock = Lock(source.lock)
    try:
        if stored_steps(source.checkpoints) or from_step is not None:
            use = functools.partial(_start, assembly=assembly, population=population, old=old, members=members)
            start = newest(source.checkpoints, use, from_step)
        else:
            note = f"{source.path} has no checkpoint yet: the run begins again"
            start = Start(0, None, None, History(), _resumption(source.path, 0, []), note)
        if out is None:
            carry_over.cut(source, start.steps)
            return Session(assembly, population, source, reporter or make_reporter(), traces, memory, lock, start)
        directory = create(out)
        new_lock = Lock(directory.lock)
        carry_over.copy(source, directory, start.steps, experiment, members)
    except BaseException:
        lock.release()
        raise
    lock.release()
    return Session(assembly, population, directory, reporter or make_reporter(), traces, memory, new_lock, start)


# ---- what may change


def _experiments(source: RunDirectory, overrides: Sequence[str], given: Experiment | None) -> tuple[dict[str, Any], Experiment]:
    """The settings of the run so far, as plain data, and the experiment to go on with."""
    if given is not None and overrides:
        raise ConfigError("overrides: change the experiment that you pass, or pass none")
    new = load_experiment(source.config, overrides) if given is None else given
    old = load_plain(source.config)
    refuse_changes(old, to_plain(new))
    return old, new


def refuse_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises ConfigError when settings differ that make another experiment; a setting that one side lacks is let pass."""
    before, after = _flat(old), _flat(new)
    for key in before.keys() & after.keys():
        if before[key] != after[key] and key not in MAY_CHANGE:
            why = ": learning rates and other schedules depend on the length of the run" if key == "train.total_steps" else ""
            raise ConfigError(
                f"{key}: a run goes on with what it began with, {before[key]!r}, got {after[key]!r}{why}; only"
                f" {', '.join(MAY_CHANGE)} may change; start a new run"
            )


def _flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    """{"section.key": value} of settings as plain data."""
    flat = {}
    for section, value in plain.items():
        flat |= {f"{section}.{key}": x for key, x in value.items()} if isinstance(value, Mapping) else {section: value}
    return flat


def _members(old: Mapping[str, Any], experiment: Experiment, out: Any) -> list[int]:
    """Where the members of `experiment` are among those of the run so far."""
    before, now = list(old["seeds"]), list(experiment.seeds)
    unknown = [seed for seed in now if seed not in before]
    if unknown:
        raise ConfigError(f"seeds: {', '.join(map(str, unknown))} did not run; the run has {', '.join(map(str, before))}")
    if now != before and out is None:
        raise ConfigError(f"seeds: {len(now)} of {len(before)} can go on in a directory of their own; add --out DIR")
    return [point * len(before) + before.index(seed) for point in range(len(experiment.points)) for seed in now]


# ---- the checkpoint


def _start(
    checkpoint: Checkpoint, assembly: Assembly, population: Population | Blocks, old: Mapping[str, Any], members: list[int]
) -> Start:
    """Where the run goes on. Raises ConfigError when the checkpoint belongs to another experiment or between two calls."""
    meta, plan = checkpoint.meta, assembly.plan
    try:
        refuse_changes(meta["config"], old)
    except ConfigError as error:
        raise ConfigError(f"checkpoint {checkpoint.path} is of another experiment: {error}") from None
    if meta["iteration"] % plan.iterations_per_call:
        raise ConfigError(
            f"train.calls: {plan.calls} makes calls of {plan.iterations_per_call} iterations, and none begins after the"
            f" {meta['iteration']} of checkpoint {checkpoint.path}; leave it as it was"
        )
    shapes = state_shapes(assembly.loop, *assembly.member_inputs())
    size = len(assembly.experiment.points) * len(old["seeds"])
    state = checkpoint.state(jax.tree.map(lambda x: jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype), shapes))
    if members != list(range(size)):
        state = jax.tree.map(lambda x: x[np.asarray(members)], state)
    different = differences(meta, program(assembly, population))
    total = assembly.steps(plan.iterations)
    label = f"not bit-equal to a run without interruption: {'; '.join(different)}" if different else "equal to the bit"
    note = f"goes on at {checkpoint.step:,} of {total:,} steps; {label}"
    history = read_history(checkpoint, members)
    return Start(checkpoint.step, state, meta["score"], history, _resumption(checkpoint.path, checkpoint.step, different), note)


def differences(meta: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In words, what makes the program another one than that which wrote the checkpoint."""
    before, commit = meta["provenance"], git_commit(Path(__file__).resolve().parent)
    pairs = [
        (before["versions"], versions()),
        (_that_matters(before["machine"]), _that_matters(machine())),
        (meta["program"], now),
        (before["agentgym_jax_git"] or {}, commit or {}),
    ]
    return [
        f"{name} was {old.get(name)!r} and is {new.get(name)!r}"
        for old, new in pairs
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _that_matters(machine: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: machine.get(name) for name in _MACHINE}
    found["jax_environment"] = {name: x for name, x in machine["jax_environment"].items() if "CACHE" not in name}
    return found


def _resumption(source: Path, steps: int, different: list[str]) -> dict[str, Any]:
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "from": str(source),
        "steps": steps,
        "command": sys.argv,
        "versions": versions(),
        "machine": machine(),
        "bit_equal": not different,
        "differences": different,
    }

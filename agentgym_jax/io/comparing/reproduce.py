"""A run once more from what its directory says, and how far the second agrees with the first.

*Bit-equal*: every record of metrics and evaluations, the absolute metric, and every array of the final state are the same.
*Statistically equal*: both wrote the same kinds of records at the same steps, the episodes that ended in the first iterations
are as many (checked where a call has at most two, before rounding can grow), as many seeds stayed finite, and for every swept
setting the bootstrap interval of the difference of the mean returns over seeds contains 0, for the greedy and the sampled
policy at the last point and for the absolute metric; the intervals together hold at 95 % (Bonferroni). *Different*: else.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.comparing.differences import differences, in_words, surroundings
from agentgym_jax.io.comparing.stored import POLICIES, StoredRun, read_stored
from agentgym_jax.io.config.experiment import Experiment, LogConfig
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.loggers import read_records
from agentgym_jax.io.running import runner
from agentgym_jax.io.running.progress import Reporter
from agentgym_jax.io.running.run import load_run
from agentgym_jax.io.running.run_directory import RunDirectory, damage_named, existing
from agentgym_jax.io.saving.checkpoint import is_key, named_leaves
from agentgym_jax.statistics import aggregates
from agentgym_jax.statistics.bootstrap import difference_interval

_REPLICATES = 20_000
_FEW_ITERATIONS = 2  # that two programs agree in; see docs/design.md, three classes of equality
_LABELS = ("then", "now")


@dataclasses.dataclass(frozen=True)
class Reproduction:
    """What became of a run made again."""

    verdict: str  # bit-equal, statistically equal, different
    first: str | None  # where the two part
    reasons: tuple[str, ...]  # against statistical equality
    intervals: dict[str, tuple[float, float]]  # of the difference of mean returns, where they are not bit-equal
    surroundings: tuple[str, ...]  # versions and hardware that changed


def reproduce(path: str | Path, out: str | Path | None = None, reporter: Reporter | None = None) -> Reproduction:
    """Trains a finished run again, with its own configuration and seeds, and compares; changes nothing in `path`.

    Args:
      out: the new run's directory; None: a temporary one, deleted afterwards. Loggers that the run had are left out.

    Raises:
      ConfigError: no run, an unfinished or damaged one, or one whose environment or networks were Python objects.
    """
    then, directory = read_stored(path), existing(path)
    if out is not None and Path(out).resolve().is_relative_to(directory.path.resolve()):
        raise ConfigError(f"--out: {out} is inside the run that is made again, where nothing is changed")
    experiment = load_experiment(directory.config)
    state = load_run(path).state
    experiment = dataclasses.replace(experiment, log=LogConfig())
    with tempfile.TemporaryDirectory(prefix="agentgym-reproduce-") as folder:
        run = runner.prepare(experiment, out=Path(folder) / "run" if out is None else out, reporter=reporter).train()
        if run.directory is None:
            raise ConfigError("out: a run must be written to be compared")
        return judge(then, read_stored(run.directory), state, run.state, experiment)


def judge(then: StoredRun, now: StoredRun, state: Any, new_state: Any, experiment: Experiment) -> Reproduction:
    """Compares two runs of one experiment and their final states [P, ...]."""
    first, same_shape = _records_part(then, now)
    first = first or _absolute_parts(then, now) or _states_part(state, new_state)
    changed = differences([surroundings(then.provenance), surroundings(now.provenance)])
    told = tuple(in_words(each, _LABELS) for each in changed)
    if first is None:
        return Reproduction("bit-equal", None, (), {}, told)
    reasons = [] if same_shape else ["the records are not of the same kinds and steps"]
    reasons += _first_episodes(then, now, experiment)
    intervals, against = _intervals(then, now)
    reasons += against
    return Reproduction("different" if reasons else "statistically equal", first, tuple(reasons), intervals, told)


# ---- to the bit


def _records_part(then: StoredRun, now: StoredRun) -> tuple[str | None, bool]:
    """The first number, by steps, in which the records differ, and whether both have the same records otherwise."""
    found, same_shape = [], True
    for name in ("metrics", "evaluations"):
        ours, theirs = _records(then, name), _records(now, name)
        same_shape &= [_shape(record) for record in ours] == [_shape(record) for record in theirs]
        if len(ours) != len(theirs):
            found.append((float("inf"), f"{name}.jsonl: {len(ours)} records then, {len(theirs)} now"))
        for old, new in zip(ours, theirs, strict=False):
            if old != new:
                place = f"{name}.jsonl, step {old.get('step')}, member {old.get('member')} (seed {old.get('seed')})"
                found.append((old.get("step", 0), f"{place}: {next(_parts('', old, new))}"))
                break
    return (min(found, key=lambda each: each[0])[1] if found else None), same_shape


def _records(run: StoredRun, name: str) -> list[dict[str, Any]]:
    path: Path = getattr(RunDirectory(run.path), name)
    with damage_named(path):
        return read_records(path)


def _shape(record: Any) -> Any:
    """A record without its numbers: step and member stay, since they say which record it is."""
    if isinstance(record, Mapping):
        return {name: value if name in ("step", "member", "seed") else _shape(value) for name, value in record.items()}
    return len(record) if isinstance(record, list) else None


def _parts(name: str, old: Any, new: Any) -> Iterator[str]:
    """Every place in which two pieces of data differ, in words."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in old or key not in new:
                yield f"{name}{key} is there {'then' if key in old else 'now'} alone"
            else:
                yield from _parts(f"{name}{key}.", old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _parts(f"{name}{index}.", a, b)
    elif old != new:
        yield f"{name.rstrip('.')} was {old} then and is {new} now"


def _absolute_parts(then: StoredRun, now: StoredRun) -> str | None:
    old, new = ({name: block["per_seed"] for name, block in run.summary["absolute"].items()} for run in (then, now))
    parts = next(_parts("", old, new), None)
    return parts and f"summary.json, absolute: {parts}"


def _states_part(state: Any, new_state: Any) -> str | None:
    """The first array of the final states that is not the same to the bit."""
    ours, theirs = named_leaves(state), named_leaves(new_state)
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        if name not in ours or name not in theirs:
            return f"final state: {name} is there {'then' if name in ours else 'now'} alone"
        old, new = (np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in (ours[name], theirs[name]))
        if (old.dtype, old.shape, old.tobytes()) != (new.dtype, new.shape, new.tobytes()):
            return f"final state: {name}, {old.dtype}{list(old.shape)}, is not the same"
    return None


# ---- statistically


def _first_episodes(then: StoredRun, now: StoredRun, experiment: Experiment) -> list[str]:
    """Whether as many episodes ended in the first call of each member, where it is short enough to tell."""
    if experiment.iterations // (experiment.eval.points * experiment.calls) > _FEW_ITERATIONS:
        return []
    counts = []
    for run in (then, now):
        records = _records(run, "metrics")
        counts.append([record.get("episodes") for record in records if record["step"] == records[0]["step"]])
    return [] if counts[0] == counts[1] else [f"episodes that ended in the first call: {counts[0]} then, {counts[1]} now"]


def _intervals(then: StoredRun, now: StoredRun) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """{what: interval of the difference of mean returns} and what speaks against their being equal."""
    found: dict[str, tuple[float, float]] = {}
    against = []
    sizes = [len(run.members) for run in (then, now)]
    if sizes[0] != sizes[1]:
        return found, [f"{sizes[0]} members then, {sizes[1]} now"]
    policies = (*POLICIES, "absolute")
    level = 1 - 0.05 / (len(policies) * len(then.settings))
    for policy in policies:
        scores = [run.scores("return", policy) for run in (then, now)]
        for setting, places in then.settings:
            what = " ".join([policy, *(f"{key}={value}" for key, value in setting.items())])
            old, new = (each[places][np.isfinite(each[places])] for each in scores)
            if len(old) != len(new):
                against.append(f"{what}: {len(old)} seeds with a finite return then, {len(new)} now")
            elif len(places) < 2:
                against.append(f"{what}: one seed cannot tell chance from change")
            elif len(old) >= 2:
                low, high = difference_interval(aggregates.mean, new, old, _REPLICATES, level=level)
                found[what] = (float(low), float(high))
                if not low <= 0 <= high:
                    against.append(f"{what}: the mean return changed by between {low:.4g} and {high:.4g}")
    return found, against

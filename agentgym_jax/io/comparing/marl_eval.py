"""Runs as JSON for marl-eval, the tool of Gorsane et al. 2022 (arXiv:2209.10485), and the constraints of its format.

environment → task → algorithm → `seed_<n>` → `step_<k>`: {`step_count`, `elapsed_time`, metric: E numbers} and
`absolute_metrics`: {metric: one number, the mean of its episodes}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.comparing.differences import differences, facts
from agentgym_jax.io.comparing.stored import StoredRun, by_setting
from agentgym_jax.io.html.external import check_schema

_ABSOLUTE = "absolute_metrics"
_NO_METRICS = ("step_count", "elapsed_time", "steps_per_second")
_SAME_ALGORITHM = ("environment", "evaluation", "budget", "training", "network", "algorithm")


def document(runs: Sequence[StoredRun]) -> dict[str, Any]:
    """The greedy evaluations of runs of several tasks and algorithms as one document, a member a run of it.

    An algorithm is called by the name given to its run, else by its own, with what a sweep varied behind. Seeds of one
    algorithm on one task may come from several runs. `elapsed_time` is training time at the run's mean speed, from the first
    evaluation on.

    Raises:
      ConfigError: a seed twice, one name for different settings, a number that is not finite, or what `check` refuses.
    """
    result: dict[str, Any] = {}
    first: dict[tuple[str, str, str], tuple[StoredRun, Any]] = {}
    for run, setting, places in by_setting(runs):
        env, task, algorithm = _names(run, setting)
        own = {key: value for key, value in facts(run, setting).items() if key[0] in _SAME_ALGORITHM}
        other, others = first.setdefault((env, task, algorithm), (run, own))
        found = differences([others, own])
        if found:
            raise ConfigError(
                f"{other.path} and {run.path} are both called {algorithm} on {task}, but differ in {found[0]['field']};"
                f" write NAME={run.path}"
            )
        members = result.setdefault(env, {}).setdefault(task, {}).setdefault(algorithm, {})
        for place in places:
            seed = f"seed_{run.members[place]['seed']}"
            if seed in members:
                raise ConfigError(f"{run.path}: {algorithm} on {task} has {seed} already, from another run")
            members[seed] = _member(run, place)
    check(result)
    return result


def check(document: Any) -> None:
    """Raises ConfigError, naming the place, for what marl-eval could not read.

    Beside the schema: in an environment every task has the same algorithms, and all have the same number of runs and steps
    and the same metrics, since their numbers become one array; a metric has as many numbers everywhere, or one; names differ in
    more than case, and those of algorithms have no comma.
    """
    check_schema(document)
    _check_case("the top", document, levels=4)
    for env, tasks in document.items():
        _check_alike(env, ((task, sorted(algorithms)) for task, algorithms in tasks.items()), "algorithms")
        entries = [(f"{task} > {name}", runs) for task, algorithms in tasks.items() for name, runs in algorithms.items()]
        _check_alike(env, ((place, len(runs)) for place, runs in entries), "number of runs")
        members = [(f"{place} > {name}", run) for place, runs in entries for name, run in runs.items()]
        _check_alike(env, ((place, len(_steps(run))) for place, run in members), "number of steps")
        blocks = [(f"{place} > {step}", block) for place, run in members for step, block in run.items()]
        _check_alike(env, ((place, _metrics(block)) for place, block in blocks), "metrics")
        for metric in _metrics(blocks[0][1]):
            for absolute in (False, True):
                sizes = [(f"{at} > {metric}", _size(x[metric])) for at, x in blocks if at.endswith(_ABSOLUTE) == absolute]
                _check_alike(env, sizes, "number of values")


def write(document: Mapping[str, Any], path: Path) -> None:
    """Writes a document to a new file. Raises ConfigError when there is one already, or it cannot be written."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists; choose another --out") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from None


def _names(run: StoredRun, setting: Mapping[str, Any]) -> tuple[str, str, str]:
    """Environment, task and algorithm; a task's name tells how the environment differs from its defaults."""
    env = run.config["env"]
    suite, _, name = str(run.summary["env"]).partition("/")
    changed = [f"{key}={value}" for part in ("kwargs", "params") for key, value in (env.get(part) or {}).items()]
    changed += [f"reward={env['reward']}"] if env.get("reward") else []
    changed += [_wrapper(each) for each in env.get("wrappers") or ()]
    told = [f"{key.rpartition('.')[2]}={value}" for key, value in setting.items()]
    return suite, " ".join([name or suite, *changed]), " ".join([run.name or run.summary["algorithm"], *told])


def _wrapper(given: Any) -> str:
    """`time_limit limit=5`."""
    if isinstance(given, str):
        return given
    return " ".join([given["name"], *(f"{key}={value}" for key, value in given.items() if key != "name")])


def _member(run: StoredRun, place: int) -> dict[str, Any]:
    greedy = {name: values[place] for name, values in run.evaluation["greedy"].items()}
    absolute = {name: run.scores(name, "absolute")[place] for name in greedy}
    for name, values in greedy.items():
        if not (np.all(np.isfinite(values)) and np.isfinite(absolute[name])):
            raise ConfigError(f"{run.path}: {name} of seed {run.members[place]['seed']} is not finite; leave this run out")
    seconds = run.summary["train_seconds"] / run.summary["total_steps"] * (run.steps - run.steps[0])
    steps = {
        f"step_{k}": {
            "step_count": int(run.steps[k]),
            "elapsed_time": round(float(seconds[k]), 3),
            **{name: values[k].tolist() for name, values in greedy.items()},
        }
        for k in range(len(run.steps))
    }
    return {**steps, _ABSOLUTE: {name: [float(value)] for name, value in absolute.items()}}


def _steps(run: Mapping[str, Any]) -> list[str]:
    return [name for name in run if name != _ABSOLUTE]


def _metrics(block: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in block if name not in _NO_METRICS)


def _size(values: Any) -> int:
    return len(values) if isinstance(values, list) else 1


def _check_alike(env: str, told: Iterable[tuple[str, Any]], what: str) -> None:
    """Every place tells the same as the first."""
    (first, wanted), *rest = told
    for place, own in rest:
        if own != wanted:
            raise ConfigError(f"{env} > {place}: {what} must be that of {first}, {wanted}, got {own}")


def _check_case(place: str, data: Mapping[str, Any], levels: int) -> None:
    seen: dict[str, str] = {}
    for name, inner in data.items():
        if seen.setdefault(name.lower(), name) != name:
            raise ConfigError(f"{place}: {seen[name.lower()]} and {name} differ in case alone, which marl-eval does not see")
        if levels > 1:
            _check_case(name, inner, levels - 1)

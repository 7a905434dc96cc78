"""Runs against each other: what differs, and where that leaves a fair comparison, which is better and how sure it is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from agentgym_jax.checks import ConfigError, check_choice
from agentgym_jax.io.comparing.differences import Facts, differences, facts, forbidding, in_words
from agentgym_jax.io.comparing.stored import POLICIES, StoredRun, by_setting
from agentgym_jax.io.running.learning import SEEDS_FOR_CLAIMS
from agentgym_jax.io.running.report import make_console
from agentgym_jax.io.running.statistics import over_members
from agentgym_jax.statistics.comparisons import (
    enough_runs,
    excludes_half,
    improvement_interval,
    probability_of_improvement,
)

_REPLICATES = 50_000


def compare(runs: Sequence[StoredRun], metric: str = "return", policy: str = "greedy") -> dict[str, Any]:
    """Compares runs of one environment, each swept setting as one of its own.

    Args:
      metric: a name of the evaluation. policy: greedy or sampled, at the last point, or absolute.

    Returns:
      Plain data: `runs` [{label, path, env, algorithm, seeds, …}], `differences` [{kind, field, values}], `comparable`, the
      kinds that forbid a verdict as `withheld`, `warnings`, and `pairs` [{first, second, probability, interval,
      excludes_half, verdict}], where `probability` is how likely a seed of `first` beats one of `second`. Where environment,
      evaluation or budget differ, the runs have no statistics and there are no pairs.

    Raises:
      ConfigError: fewer than two settings in all, two of one name, or a metric that a run has not measured.
    """
    check_choice("policy", policy, (*POLICIES, "absolute"))
    rows, scores, all_facts = [], [], []
    for run, setting, places in by_setting(runs):
        rows.append(_row(run, setting, len(places)))
        scores.append(run.scores(metric, policy)[places])
        all_facts.append(facts(run, setting))
    if len(rows) < 2:
        raise ConfigError("comparing needs at least two runs, or one with a sweep")
    for first, second in itertools.combinations(rows, 2):
        if first["label"] == second["label"]:
            raise ConfigError(
                f"{first['path']} and {second['path']} are both called {first['label']}; write NAME={second['path']}"
            )
    return _compared(rows, scores, all_facts, {"metric": metric, "policy": policy})


def _row(run: StoredRun, setting: Mapping[str, Any], seeds: int) -> dict[str, Any]:
    told = " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in setting.items())
    return {
        "label": f"{run.label} {told}".strip(),
        "path": str(run.path),
        "env": run.summary["env"],
        "algorithm": run.summary["algorithm"],
        "seeds": seeds,
    }


def _compared(
    rows: list[dict[str, Any]], scores: list[np.ndarray], all_facts: list[Facts], score: dict[str, str]
) -> dict[str, Any]:
    found = differences(all_facts)
    withheld = forbidding(found)
    pairs: list[dict[str, Any]] = []
    if not withheld:
        rows = [row | over_members(own, _REPLICATES) for row, own in zip(rows, scores, strict=True)]
        places = itertools.combinations(range(len(rows)), 2)
        pairs = [_pair(rows[i]["label"], rows[j]["label"], scores[i], scores[j]) for i, j in places]
    return {
        "score": score,
        "runs": rows,
        "differences": found,
        "comparable": not withheld,
        "withheld": withheld,
        "warnings": [] if withheld else _warnings(rows, pairs),
        "pairs": pairs,
    }


def _pair(first: str, second: str, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """A seed without a finite number loses against every other."""
    x, y = (np.where(np.isfinite(each), each, -np.inf) for each in (x, y))
    probability, (low, high) = float(probability_of_improvement(x, y)), improvement_interval(x, y)
    known, excludes = len(x) > 1 and len(y) > 1, excludes_half(low, high)
    if not enough_runs(len(x), len(y)):
        verdict = "too few seeds"
    else:
        verdict = "undecided" if not excludes else "better" if low > 0.5 else "worse"
    return {
        "first": first,
        "second": second,
        "probability": probability,
        "interval": [low, high] if known else None,
        "excludes_half": excludes,
        "verdict": verdict,
    }


def _warnings(rows: Sequence[Mapping[str, Any]], pairs: Sequence[Any]) -> list[str]:
    few = [f"{row['label']} has {row['seeds']}" for row in rows if row["seeds"] < SEEDS_FOR_CLAIMS]
    lost = [f"{row['label']} has {row['missing']}" for row in rows if row["missing"]]
    warnings = []
    if few:
        warnings.append(f"claims need {SEEDS_FOR_CLAIMS} seeds, with fewer the intervals are too narrow: {', '.join(few)}")
    if lost:
        warnings.append(f"seeds without a finite number are not in mean and IQM, and lose every pair: {', '.join(lost)}")
    if len(pairs) > 1:
        share = 100 * (1 - 0.95 ** len(pairs))
        warnings.append(f"{len(pairs)} pairs: among equals one would seem decided by chance in up to {share:.0f} % of cases")
    return warnings


def show(comparison: Mapping[str, Any]) -> None:
    """Prints differences, tables and warnings."""
    console, labels = make_console(), [row["label"] for row in comparison["runs"]]
    for kind, group in itertools.groupby(comparison["differences"], key=lambda each: each["kind"]):
        console.print(f"different {kind}", highlight=False, markup=False)
        for each in group:
            console.print(f"  {in_words(each, labels)}", highlight=False, markup=False, soft_wrap=True)
    if not comparison["comparable"]:
        console.print(f"no verdict over different {' and '.join(comparison['withheld'])}", highlight=False, markup=False)
        return
    console.print(_runs_table(comparison))
    console.print(_pairs_table(comparison["pairs"]))
    for warning in comparison["warnings"]:
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)


def _runs_table(comparison: Mapping[str, Any]) -> Table:
    score, env = comparison["score"], comparison["runs"][0]["env"]
    table = Table(title=f"{env}: {score['policy']} {score['metric']} over seeds", title_justify="left")
    table.add_column("run", overflow="fold")
    for heading in ("algorithm", "seeds", "mean", "95 % interval", "IQM", "95 % interval"):
        table.add_column(heading, justify="right")
    for row in comparison["runs"]:
        numbers = [x for name in ("mean", "iqm") for x in (f"{row[name]:.4g}", _ends(row["interval"][name]))]
        table.add_row(row["label"], row["algorithm"], str(row["seeds"]), *numbers)
    return table


def _pairs_table(pairs: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="probability that a seed of the first beats one of the second", title_justify="left")
    for heading in ("first", "second"):
        table.add_column(heading, overflow="fold")
    for heading in ("probability", "95 % interval", "½ excluded", "the first is"):
        table.add_column(heading, justify="right")
    for pair in pairs:
        excluded = "yes" if pair["excludes_half"] else "no"
        told = (f"{pair['probability']:.3f}", _ends(pair["interval"]), excluded, pair["verdict"])
        table.add_row(pair["first"], pair["second"], *told)
    return table


def _ends(interval: Sequence[float] | None) -> str:
    return "–" if interval is None else f"[{interval[0]:.4g}, {interval[1]:.4g}]"

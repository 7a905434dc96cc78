"""The tables of a page as data: what HTML and CSV are made of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from agentgym_jax.io.html.measures import Block, Comparison, Estimate
from agentgym_jax.io.html.results import Result
from agentgym_jax.statistics import comparisons
from agentgym_jax.statistics.aggregates import iqm
from agentgym_jax.statistics.curves import (
    area_under_curve,
    drawdown,
    final_gap,
    solved_share,
    steps_to_threshold,
    worst_seed,
)

_SHARES = (0.1, 0.25, 0.5, 1.0)


@dataclasses.dataclass(frozen=True)
class Named:
    """A cell with an algorithm's name and the sign of its lines."""

    label: str
    style: int
    external: bool = False


@dataclasses.dataclass(frozen=True)
class Forest:
    """A cell that draws an estimate between the ends of an axis that all rows share."""

    estimate: Estimate
    style: int
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Table:
    """Headings and rows of text, numbers, `Estimate`, `Named`; a column without a heading is a picture and in no CSV."""

    kind: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def leaderboard(block: Block, results: Mapping[str, Sequence[Result]], ranked_by: str, styles: Mapping[str, int]) -> Table:
    """Best IQM first. `results`: those of each algorithm in this block."""
    ends = [end for own in block.statistics.values() for end in own["IQM"] if math.isfinite(end)]
    rows = []
    for rank, (name, own) in enumerate(block.statistics.items(), 1):
        external = all(result.external for result in results[name])
        forest = Forest(own["IQM"], styles[name], min(ends), max(ends))
        worst = worst_seed(block.scores[name].mean(axis=1))[1]
        cells = (own["mean"], own["median"], own["optimality gap"], worst)
        rows.append((rank, Named(name, styles[name], external), len(block.scores[name]), own["IQM"], forest, *cells))
    own_units = "scores in the metric's own units, the optimality gap of normalised ones"
    unit = own_units if len(block.tasks) == 1 else "normalised scores"
    return Table(
        kind="leaderboard",
        caption=f"Leaderboard by the IQM of the {ranked_by}; {unit}; brackets are 95 % bootstrap intervals over seeds",
        headings=("#", "algorithm", "seeds", "IQM", "", "mean", "median", "optimality gap", "worst seed"),
        rows=tuple(rows),
    )


def improvement(block: Block, styles: Mapping[str, int]) -> Table:
    """Every pair of algorithms: how likely a run of the one beats a run of the other."""
    runs = {name: len(scores) for name, scores in block.scores.items()}
    pairs = sum(pair.probability is not None for pair in block.comparisons)
    chance = f"; of {pairs} pairs of equals one would seem decided by chance in up to {1 - 0.95**pairs:.0%} of reports"
    return Table(
        kind="probability-of-improvement",
        caption="Probability that a run of the first beats a run of the second (ties count one half)" + chance * (pairs > 1),
        headings=("first", "second", "probability", "verdict"),
        rows=tuple(
            (
                Named(pair.first, styles[pair.first]),
                Named(pair.second, styles[pair.second]),
                "–" if pair.probability is None else pair.probability,
                verdict(pair, runs),
            )
            for pair in block.comparisons
        ),
    )


def verdict(pair: Comparison, runs: Mapping[str, int]) -> str:
    """What a comparison allows one to say; nothing where both were not measured alike or a rank test could not tell."""
    if pair.probability is None:
        return f"none, since they were measured differently: {pair.why_not}"
    if not comparisons.enough_runs(runs[pair.first], runs[pair.second]):
        return "too few seeds for one"
    if pair.probability.low > 0.5:
        return f"{pair.first} is better"
    return f"{pair.second} is better" if pair.probability.high < 0.5 else "not told apart"


def progress(results: Sequence[Result], styles: Mapping[str, int]) -> Table:
    """How soon and how steadily: the IQM on the way, the area under the curve, falls; with a threshold, the way to it."""
    solved = any(result.threshold is not None for result in results)
    caption = (
        "IQM at shares of the budget; means over seeds of the area under the curve (its mean height), the largest fall and the"
        " best point minus the last"
    )
    return Table(
        kind="progress",
        caption=caption + "; seeds solved at the end and median steps to the threshold" * solved,
        headings=(
            "algorithm",
            *(f"at {share:.0%}" for share in _SHARES),
            *("area", "largest fall", "best − last"),
            *(("threshold", "solved", "steps to it") if solved else ()),
        ),
        rows=tuple(
            (
                Named(result.algorithm, styles[result.algorithm], result.external),
                *_on_the_way(result),
                float(np.mean(area_under_curve(result.curves, result.steps))),
                float(np.mean(drawdown(result.curves))),
                float(np.mean(final_gap(result.curves))),
                *(_to_threshold(result) if solved else ()),
            )
            for result in results
        ),
    )


def _on_the_way(result: Result) -> Iterator[float | str]:
    for share in _SHARES:
        reached = np.flatnonzero(result.steps <= share * result.steps[-1] * (1 + 1e-9))
        yield float(iqm(result.curves[:, reached[-1]])) if len(reached) else "–"


def _to_threshold(result: Result) -> tuple[float | str, ...]:
    if result.threshold is None:
        return "–", "–", "–"
    steps = float(np.median(steps_to_threshold(result.curves, result.steps, result.threshold)))
    share = solved_share(result.final, result.threshold)
    return result.threshold, f"{share:.0%}", round(steps) if math.isfinite(steps) else "not reached"


def protocol(results: Sequence[Result], styles: Mapping[str, int]) -> Table:
    """How every result was measured and where it comes from."""
    names = list(dict.fromkeys(name for result in results for name in result.protocol))
    rows = []
    for result in results:
        measured = [result.protocol.get(name, "–") for name in names]
        listed = ", ".join(result.seeds) if len(result.seeds) <= 12 else f"{result.seeds[0]} … {result.seeds[-1]}"
        named = Named(result.algorithm, styles[result.algorithm], result.external)
        rows.append((result.task, named, f"{len(result.seeds)}: {listed}", *measured, result.source))
    return Table(
        kind="protocol",
        caption="How each result was measured; all numbers are of the greedy policy",
        headings=("task", "algorithm", "seeds", *names, "source"),
        rows=tuple(rows),
    )


def flat(table: Table) -> tuple[list[str], list[list[object]]]:
    """Headings and rows of a table's CSV, with all digits; an estimate takes three columns."""
    kept = [column for column, heading in enumerate(table.headings) if heading]
    wide = {column for column in kept if any(isinstance(row[column], Estimate) for row in table.rows)}
    headings: list[str] = []
    for column in kept:
        name = table.headings[column]
        headings += [name, f"{name} low 95 %", f"{name} high 95 %"] if column in wide else [name]
    rows = []
    for row in table.rows:
        cells: list[object] = []
        for column in kept:
            cell = row[column].label if isinstance(row[column], Named) else row[column]
            cells += (list(cell) if isinstance(cell, Estimate) else [cell, "", ""]) if column in wide else [cell]
        rows.append(cells)
    return headings, rows

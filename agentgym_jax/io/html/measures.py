"""The numbers of the page: statistics of every task and over the tasks, each with its bootstrap interval.

Tasks are put on one scale by the extremes of all that is in the report, so those numbers change with what is compared.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agentgym_jax.io.comparing.differences import differences, forbidding, in_words
from agentgym_jax.io.html.results import Result
from agentgym_jax.statistics import aggregates, bootstrap, comparisons
from agentgym_jax.statistics.normalise import min_max

AGGREGATES = {
    "IQM": aggregates.iqm,
    "mean": aggregates.mean,
    "median": aggregates.median,
    "optimality gap": aggregates.optimality_gap,
}
NORMALISED = ("optimality gap",)  # needs a scale from 0 to 1, also on a single task


class Replicates(NamedTuple):
    """How often runs are drawn again for intervals (the defaults of rliable and marl-eval)."""

    aggregates: int = 50_000
    comparisons: int = 2000
    bands: int = 2000


USUAL = Replicates()


class Estimate(NamedTuple):
    """A number with its 95 % interval; NaN at the ends where there is only one seed."""

    value: float
    low: float = math.nan
    high: float = math.nan


class Comparison(NamedTuple):
    """How likely a run of the first beats a run of the second; `why_not` says why no verdict is given."""

    first: str
    second: str
    probability: Estimate | None
    why_not: str = ""


@dataclasses.dataclass(frozen=True)
class Block:
    """The algorithms of one task, or of several tasks together, best first."""

    name: str
    tasks: tuple[str, ...]
    scores: Mapping[str, np.ndarray]  # {algorithm: [R, T]}: in the metric's units for one task, normalised for several
    normalised: Mapping[str, np.ndarray]  # {algorithm: [R, T]} from 0 to 1
    statistics: Mapping[str, Mapping[str, Estimate]]  # {algorithm: {name of the aggregate: estimate}}
    comparisons: tuple[Comparison, ...]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Best IQM first."""
        return tuple(self.statistics)


def scores_of(results: Sequence[Result]) -> tuple[str, dict[str, np.ndarray]]:
    """What ranks the results of one task, {algorithm: [P]}: the absolute metric if all have it, else the last point."""
    if all(result.absolute is not None for result in results):
        return "absolute metric", {result.algorithm: np.asarray(result.absolute) for result in results}
    return "last evaluation", {result.algorithm: result.final for result in results}


def finite_curves(results: Sequence[Result]) -> list[Result]:
    """The results of one task with numbers throughout: a seed without a finite number has the lowest score of all there."""
    known = np.concatenate([_all_numbers(result).ravel() for result in results])
    known = known[np.isfinite(known)]
    lowest = float(known.min()) if len(known) else 0.0
    return [_filled(result, lowest) for result in results]


def _filled(result: Result, lowest: float) -> Result:
    numbers = _all_numbers(result)
    bad = [seed for seed, row in zip(result.seeds, numbers, strict=True) if not np.all(np.isfinite(row))]
    if not bad:
        return result
    note = f"without a finite {'return' if len(bad) == 1 else 'return each'}, so given the lowest score: seed {', '.join(bad)}"
    curves, absolute = (None if x is None else np.where(np.isfinite(x), x, lowest) for x in (result.curves, result.absolute))
    assert curves is not None
    return dataclasses.replace(result, curves=curves, absolute=absolute, notes=(*result.notes, note))


def _all_numbers(result: Result) -> np.ndarray:
    """[P, X + 1]: the curve and, where there is one, the absolute metric."""
    return result.curves if result.absolute is None else np.column_stack([result.curves, result.absolute])


def normalised(results: Sequence[Result]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Scores [P] and curves [P, X] of one task from 0 to 1, by the extremes of all its algorithms, seeds and points."""
    scaled = min_max({result.algorithm: _all_numbers(result)[:, None] for result in results})
    ranked_by, _ = scores_of(results)
    curves, scores = {}, {}
    for result in results:
        numbers = scaled[result.algorithm][:, 0]
        curves[result.algorithm] = numbers[:, : len(result.steps)]
        scores[result.algorithm] = numbers[:, -1 if ranked_by == "absolute metric" else len(result.steps) - 1]
    return scores, curves


def task_block(task: str, results: Sequence[Result], replicates: Replicates) -> Block:
    """The statistics of one task."""
    _, scores = scores_of(results)
    on_scale, _ = normalised(results)
    columns = {name: values[:, None] for name, values in scores.items()}
    scaled = {name: values[:, None] for name, values in on_scale.items()}
    why_not = {(a.algorithm, b.algorithm): _why_not(a, b) for a, b in itertools.permutations(results, 2)}
    return _block(task, (task,), columns, scaled, why_not, replicates)


def overall_block(tasks: Mapping[str, Sequence[Result]], replicates: Replicates) -> tuple[Block | None, list[str]]:
    """The statistics over all tasks, of the algorithms that ran on each, and what was left out.

    Every algorithm needs a rectangle of runs × tasks: where it has more seeds on some tasks, the first of them count.
    """
    names = [{result.algorithm for result in results} for results in tasks.values()]
    everywhere = sorted(set.intersection(*names))
    missing = sorted(set.union(*names) - set(everywhere))
    left_out = [f"Not on every task, so left out here: {', '.join(missing)}."] if missing else []
    if len(tasks) < 2 or not everywhere:
        return None, left_out
    by_task = [normalised(results)[0] for results in tasks.values()]
    scores = {}
    for name in everywhere:
        columns = [own[name] for own in by_task]
        runs = min(map(len, columns))
        if runs < max(map(len, columns)):
            left_out.append(f"Of {name} the first {runs} seeds of each task count, since not all tasks have more.")
        scores[name] = np.stack([column[:runs] for column in columns], axis=1)
    why_not = {}
    for a, b in itertools.permutations(everywhere, 2):
        pairs = ([next(r for r in results if r.algorithm == name) for name in (a, b)] for results in tasks.values())
        why_not[a, b] = next((reason for pair in pairs if (reason := _why_not(*pair))), "")
    return _block("all tasks", tuple(tasks), scores, scores, why_not, replicates), left_out


def _block(
    name: str,
    tasks: tuple[str, ...],
    scores: Mapping[str, np.ndarray],
    scaled: Mapping[str, np.ndarray],
    why_not: Mapping[tuple[str, str], str],
    replicates: Replicates,
) -> Block:
    statistics = {
        algorithm: {
            aggregate: estimate(function, (scaled if aggregate in NORMALISED else scores)[algorithm], replicates.aggregates)
            for aggregate, function in AGGREGATES.items()
        }
        for algorithm in scores
    }
    best_first = sorted(statistics, key=lambda algorithm: -statistics[algorithm]["IQM"].value)
    pairs = tuple(_compare(a, b, scores, why_not[a, b], replicates) for a, b in itertools.combinations(best_first, 2))
    return Block(name, tasks, scores, scaled, {algorithm: statistics[algorithm] for algorithm in best_first}, pairs)


def estimate(statistic: bootstrap.Statistic, scores: np.ndarray, replicates: int) -> Estimate:
    """`statistic` of scores [R, T] with its interval."""
    low, high = bootstrap.interval(statistic, scores, replicates)
    return Estimate(float(statistic(scores)), float(low), float(high))


def _compare(a: str, b: str, scores: Mapping[str, np.ndarray], why_not: str, replicates: Replicates) -> Comparison:
    if why_not:
        return Comparison(a, b, None, why_not)
    probability = float(comparisons.probability_of_improvement(scores[a], scores[b]))
    low, high = comparisons.improvement_interval(scores[a], scores[b], replicates.comparisons)
    return Comparison(a, b, Estimate(probability, low, high))


def _why_not(a: Result, b: Result) -> str:
    """How two results were measured differently; empty where they may be compared.

    Of a result from elsewhere only what it tells is held against the other.
    """
    both = [a.facts, b.facts]
    if a.external or b.external:
        both = [{key: value for key, value in own.items() if all(key in other for other in both)} for own in both]
    found = differences(both)
    withheld = forbidding(found)
    return "; ".join(in_words(each, (a.algorithm, b.algorithm)) for each in found if each["kind"] in withheld)

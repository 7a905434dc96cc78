"""What stands on a page and in which order; `page` writes it as HTML, `write` puts it into files."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from agentgym_jax.io.html import figures, measures, tables
from agentgym_jax.io.html.figures import Figure
from agentgym_jax.io.html.measures import Replicates
from agentgym_jax.io.html.results import Result
from agentgym_jax.io.html.sources import algorithms_of, by_task
from agentgym_jax.io.html.tables import Table
from agentgym_jax.io.running.learning import SEEDS_FOR_CLAIMS

_OVERALL = "All tasks"


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page: sentences, then what they introduce."""

    title: str
    anchor: str  # of its own on the page, and the start of its files' names
    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]


@dataclasses.dataclass(frozen=True)
class Content:
    """A whole page."""

    title: str
    metric: str
    results: tuple[Result, ...]
    styles: Mapping[str, int]  # {algorithm: its place}, for colour and pattern
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    protocol: Table


def compose(results: Sequence[Result], metric: str, title: str, replicates: Replicates) -> Content:
    """Computes everything that the page tells of these results, which are sorted by task."""
    styles = {name: place for place, name in enumerate(algorithms_of(results))}
    tasks = {task: measures.finite_curves(own) for task, own in by_task(results).items()}
    results = [result for own in tasks.values() for result in own]
    anchors = _anchors([_OVERALL, *tasks])
    sections = []
    block, left_out = measures.overall_block(tasks, replicates)
    if block is not None:
        sections.append(_overall(block, tasks, tuple(left_out), styles, replicates))
    for task, own in tasks.items():
        sections.append(_task(task, anchors[task], own, metric, styles, replicates))
    return Content(
        title=title,
        metric=metric,
        results=tuple(results),
        styles=styles,
        warnings=tuple(warnings(results)),
        sections=tuple(sections),
        protocol=tables.protocol(results, styles),
    )


def _anchors(titles: Iterable[str]) -> dict[str, str]:
    """{title: anchor}, no two alike."""
    anchors: dict[str, str] = {}
    for title in titles:
        anchor = _slug(title)
        anchors[title] = f"{anchor}-{len(anchors)}" if anchor in anchors.values() else anchor
    return anchors


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def warnings(results: Sequence[Result]) -> list[str]:
    """What keeps a reader from trusting a number, a line each."""
    told = []
    few = [result for result in results if len(result.seeds) < SEEDS_FOR_CLAIMS]
    if few:
        named = "; ".join(
            f"{task}: " + ", ".join(f"{result.algorithm} ({len(result.seeds)})" for result in own)
            for task, own in by_task(few).items()
        )
        told.append(f"Fewer than {SEEDS_FOR_CLAIMS} seeds, too few for a claim: {named}.")
    told += [f"{result.algorithm} on {result.task}: {note}." for result in results for note in result.notes]
    outside = sorted({result.source for result in results if result.external})
    if outside:
        told.append(f"Submitted from elsewhere, checked for their form only: {', '.join(outside)}.")
    return told


def _overall(
    block: measures.Block,
    tasks: Mapping[str, Sequence[Result]],
    left_out: tuple[str, ...],
    styles: Mapping[str, int],
    replicates: Replicates,
) -> Section:
    own = {name: [r for results in tasks.values() for r in results if r.algorithm == name] for name in block.algorithms}
    efficiency = figures.efficiency_curves(tasks, block, styles, replicates)
    notes = [
        f"{len(tasks)} tasks, each scaled from 0 to 1 by the lowest and the highest number of all algorithms, seeds and points"
        " in this report; adding a result changes the scale.",
        *left_out,
    ]
    if efficiency is None:
        notes.append("No curve over tasks: they were not measured at the same number of points.")
    return Section(
        title=_OVERALL,
        anchor=_slug(_OVERALL),
        notes=tuple(notes),
        tables=_tables(block, own, "score of each task", styles),
        figures=(
            figures.aggregates(block, styles),
            *([efficiency] if efficiency else []),
            figures.profile(block, styles, replicates),
        ),
    )


def _task(
    task: str, anchor: str, results: Sequence[Result], metric: str, styles: Mapping[str, int], replicates: Replicates
) -> Section:
    block = measures.task_block(task, results, replicates)
    ranked_by, _ = measures.scores_of(results)
    fresh = ranked_by == "absolute metric"
    note = "the best policy of each seed on fresh episodes" if fresh else "not all have an absolute metric"
    own = {result.algorithm: [result] for result in results}
    best_first = [own[name][0] for name in block.algorithms]
    return Section(
        title=task,
        anchor=anchor,
        notes=(f"Metric: {metric}. Score: {ranked_by} ({note}).",),
        tables=(*_tables(block, own, ranked_by, styles), tables.progress(best_first, styles)),
        figures=(
            figures.learning_curves(task, best_first, metric, styles, replicates),
            figures.profile(block, styles, replicates),
        ),
    )


def _tables(
    block: measures.Block, results: Mapping[str, Sequence[Result]], ranked_by: str, styles: Mapping[str, int]
) -> tuple[Table, ...]:
    board = tables.leaderboard(block, results, ranked_by, styles)
    return (board, tables.improvement(block, styles)) if len(block.algorithms) > 1 else (board,)

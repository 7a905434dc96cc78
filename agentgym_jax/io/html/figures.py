"""The pictures of a page as data: what SVG, PNG and CSV are made of, so that all three show the same numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from agentgym_jax.io.html.measures import Block, Estimate, Replicates, normalised
from agentgym_jax.io.html.results import Result
from agentgym_jax.statistics.curves import sample_efficiency, sample_efficiency_band
from agentgym_jax.statistics.profiles import performance_profile, profile_band

_TAUS = np.linspace(0, 1, 101)


@dataclasses.dataclass(frozen=True)
class Series:
    """One curve with its band, [X] each. `style` is the place of its algorithm among all of the page."""

    label: str
    style: int
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclasses.dataclass(frozen=True)
class Lines:
    """Curves over a common axis. `kind` names the picture and its files, `subject` the task."""

    kind: str
    subject: str
    title: str
    description: str  # what is read off the axes, for those who cannot see it
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    unit_height: bool = False  # y from 0 to 1
    marks: bool = True  # a mark at every point


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Estimates with their intervals, a row an algorithm, a panel a statistic."""

    kind: str
    subject: str
    title: str
    description: str
    rows: tuple[tuple[str, int], ...]  # (algorithm, style)
    panels: Mapping[str, tuple[Estimate, ...]]  # {statistic: one estimate a row}


Figure = Lines | Intervals


def learning_curves(task: str, results: Sequence[Result], metric: str, styles: Mapping[str, int], times: Replicates) -> Lines:
    """The IQM over seeds at every point, with its band."""
    series = []
    for result in results:
        middle, low, high = _efficiency(result.curves[:, None], times.bands)
        series.append(Series(result.algorithm, styles[result.algorithm], result.steps, middle, low, high))
    return Lines(
        kind="learning-curves",
        subject=task,
        title="Learning curves",
        description=f"{metric} of the greedy policy on {task}: IQM over seeds with 95 % bands. " + _last_points(series),
        x_label="environment steps of one seed",
        y_label=metric,
        series=tuple(series),
    )


def efficiency_curves(
    tasks: Mapping[str, Sequence[Result]], block: Block, styles: Mapping[str, int], times: Replicates
) -> Lines | None:
    """The IQM over seeds and tasks against the share of the budget; None unless all were measured at as many points."""
    by_task = [normalised(results)[1] for results in tasks.values()]
    series = []
    for name in block.algorithms:
        runs = len(block.scores[name])
        curves = [own[name][:runs] for own in by_task]
        if len({curve.shape[1] for curve in curves}) > 1:
            return None
        middle, low, high = _efficiency(np.stack(curves, axis=1), times.bands)
        x = np.arange(1, len(middle) + 1) / len(middle)
        series.append(Series(name, styles[name], x, middle, low, high))
    return Lines(
        kind="sample-efficiency",
        subject=block.name,
        title="Sample efficiency",
        description=f"Normalised score over {len(tasks)} tasks: IQM with 95 % bands. " + _last_points(series),
        x_label="share of the budget in environment steps",
        y_label="normalised score",
        series=tuple(series),
        unit_height=True,
    )


def profile(block: Block, styles: Mapping[str, int], times: Replicates) -> Lines:
    """The share of runs above every normalised score, with its band."""
    series = []
    for name in block.algorithms:
        scores = block.normalised[name]
        low, high = profile_band(scores, _TAUS, times.bands)
        series.append(Series(name, styles[name], _TAUS, performance_profile(scores, _TAUS), low, high))
    of_runs = "runs" if len(block.tasks) == 1 else f"runs and {len(block.tasks)} tasks"
    halves = "; ".join(f"{each.label}: {each.y[50]:.0%} above one half" for each in series)
    return Lines(
        kind="performance-profile",
        subject=block.name,
        title="Performance profile",
        description=f"Share of {of_runs} whose normalised score is above τ, with 95 % bands, on {block.name}. {halves}.",
        x_label="normalised score τ",
        y_label="share of runs above τ",
        series=tuple(series),
        unit_height=True,
        marks=False,
    )


def aggregates(block: Block, styles: Mapping[str, int]) -> Intervals:
    """Every aggregate over all tasks with its interval."""
    names = list(next(iter(block.statistics.values())))
    values = {name: tuple(own[name] for own in block.statistics.values()) for name in names}
    told = "; ".join(f"{name}: IQM {own['IQM'].value:.3g}" for name, own in block.statistics.items())
    return Intervals(
        kind="aggregates",
        subject=block.name,
        title="Aggregates",
        description=f"Normalised scores over {len(block.tasks)} tasks with 95 % intervals. {told}.",
        rows=tuple((name, styles[name]) for name in block.algorithms),
        panels=values,
    )


def _efficiency(curves: np.ndarray, replicates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """IQM of [R, T, X] and the ends of its band, [X] each."""
    low, high = sample_efficiency_band(curves, replicates)
    return sample_efficiency(curves), np.asarray(low), np.asarray(high)


def _last_points(series: Sequence[Series]) -> str:
    return "; ".join(f"{each.label} ends at {each.y[-1]:.4g}" for each in series) + "."


def flat(figure: Figure) -> tuple[list[str], list[list[object]]]:
    """Headings and rows of a picture's CSV, with all digits."""
    if isinstance(figure, Lines):
        rows: list[list[object]] = [
            [each.label, *(float(value) for value in point)]
            for each in figure.series
            for point in zip(each.x, each.y, each.low, each.high, strict=True)
        ]
        return ["algorithm", figure.x_label, figure.y_label, "low 95 %", "high 95 %"], rows
    rows = [
        [label, statistic, *estimates[row]]
        for statistic, estimates in figure.panels.items()
        for row, (label, _) in enumerate(figure.rows)
    ]
    return ["algorithm", "statistic", "value", "low 95 %", "high 95 %"], rows

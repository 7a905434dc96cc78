"""Pictures as SVG for a page: text in the page's font, colours by CSS variables so that they follow light and dark.

A width of 420 units and text of 13 keep letters legible when a phone shows the picture at its own width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from agentgym_jax.io.html.figures import Figure, Intervals, Lines, Series
from agentgym_jax.io.html.measures import Estimate

WIDTH, HEIGHT = 420, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 10, 44
_INNER_WIDTH, _INNER_HEIGHT = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
_DASHES = ("", "7 3", "2 3", "10 3 2 3", "5 2 2 2 2 2")
_COLOURS = 8
_ROW, _PANEL_GAP = 26, 22


def class_of(style: int) -> str:
    """The CSS class that gives an algorithm its colour."""
    return f"c{style % _COLOURS}"


def dash_of(style: int) -> str:
    """The attribute that gives an algorithm its pattern, which tells it apart without colours."""
    dash = _DASHES[(style + style // _COLOURS) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def draw(figure: Figure, identity: str) -> str:
    """The whole <svg>, titled and described; `identity` is unique on the page."""
    body, height = (_lines(figure), HEIGHT) if isinstance(figure, Lines) else _intervals(figure)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{identity}-t {identity}-d">'
        f'<title id="{identity}-t">{escape(f"{figure.title}, {figure.subject}")}</title>'
        f'<desc id="{identity}-d">{escape(figure.description)}</desc>{body}</svg>'
    )


def swatch(style: int) -> str:
    """A short piece of an algorithm's line with its mark, for a legend."""
    return (
        f'<svg class="swatch {class_of(style)}" viewBox="0 0 34 12" aria-hidden="true">'
        f'<path class="line" d="M1 6H33"{dash_of(style)}/>{mark(style, 17, 6)}</svg>'
    )


def mark(style: int, x: float, y: float, tip: str = "") -> str:
    """A circle, square, triangle or diamond around a point."""
    title = f"<title>{escape(tip)}</title>" if tip else ""
    at, kind = f"{x:.1f} {y:.1f}", style % 4
    if kind == 0:
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>'
    shape = {1: "m-2.8-2.8h5.6v5.6h-5.6z", 2: "m0-3.8l3.6 6.4h-7.2z", 3: "m0-4l4 4l-4 4l-4-4z"}[kind]
    return f'<path class="mark" d="M{at}{shape}">{title}</path>'


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers within [low, high], about `count` of them."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(size * magnitude for size in (1, 2, 2.5, 5, 10) if size * magnitude >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A number of an axis: 250k, 1.5M, 0.25, −200."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (10 if letter == "k" else 1):
            return f"{value / size:.4g}{letter}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def bounds(figure: Lines) -> tuple[float, float, float, float]:
    """x from, x to, y from, y to, with a little room above and below."""
    xs = np.concatenate([each.x for each in figure.series])
    left, right = (0.0, float(xs.max())) if xs.min() >= 0 else (float(xs.min()), float(xs.max()))
    if figure.unit_height:
        return left, right or 1.0, 0.0, 1.0
    ys = np.concatenate([part for each in figure.series for part in (each.y, each.low, each.high)])
    ys = ys[np.isfinite(ys)]
    low, high = float(ys.min()), float(ys.max())
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return left, right or 1.0, low - room, high + room


def _lines(figure: Lines) -> str:
    left, right, bottom, top = bounds(figure)

    def at(x: Any, y: Any) -> np.ndarray:
        across = _LEFT + (np.asarray(x, np.float64) - left) / (right - left) * _INNER_WIDTH
        return np.stack([across, _TOP + (top - np.asarray(y, np.float64)) / (top - bottom) * _INNER_HEIGHT], axis=-1)

    parts = [_axes(figure, at, (left, right), (bottom, top))]
    parts += [_band(each, at(each.x, each.low), at(each.x, each.high)) for each in figure.series]
    parts += [_curve(each, at(each.x, each.y), figure.marks) for each in figure.series]
    return "".join(parts)


def _axes(figure: Lines, at: Callable[..., np.ndarray], x_ends: tuple[float, float], y_ends: tuple[float, float]) -> str:
    parts, floor, wall = ['<g class="grid">'], HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for value in ticks(*y_ends):
        y = at(x_ends[0], value)[1]
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{wall}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for value in ticks(*x_ends):
        x = at(value, y_ends[0])[0]
        anchor = "end" if x > wall - 8 else "middle"
        parts.append(f'<path class="tick" d="M{x:.1f} {floor}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{floor + 17}" text-anchor="{anchor}">{short(value)}</text>')
    middle = f"{_TOP + _INNER_HEIGHT / 2:.0f}"
    parts.append(
        f'<path class="axis" d="M{_LEFT} {floor}H{wall}"/></g><g class="label" text-anchor="middle">'
        f'<text x="{_LEFT + _INNER_WIDTH / 2:.0f}" y="{HEIGHT - 8}">{escape(figure.x_label)}</text>'
        f'<text x="12" y="{middle}" transform="rotate(-90 12 {middle})">{escape(figure.y_label)}</text></g>'
    )
    return "".join(parts)


def _band(series: Series, low: np.ndarray, high: np.ndarray) -> str:
    if len(low) < 2 or not np.all(np.isfinite(low)) or not np.all(np.isfinite(high)):
        return ""
    return f'<path class="band {class_of(series.style)}" d="{_path(np.concatenate([high, low[::-1]]))}z"/>'


def _curve(series: Series, points: np.ndarray, marks: bool) -> str:
    parts = [f'<g class="{class_of(series.style)}">']
    if len(points) > 1:
        parts.append(f'<path class="line" d="{_path(points)}"{dash_of(series.style)}/>')
    if (marks and len(points) <= 40) or len(points) == 1:
        for point, x, y, low, high in zip(points, series.x, series.y, series.low, series.high, strict=True):
            interval = f" [{low:.4g}, {high:.4g}]" if math.isfinite(low) else ""
            parts.append(mark(series.style, *point, tip=f"{series.label} at {x:,.4g}: {y:.4g}{interval}"))
    return "".join([*parts, "</g>"])


def _path(points: np.ndarray) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def span(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """The ends of an axis that holds these estimates and their intervals, with some room."""
    ends = [end for each in estimates for end in each if math.isfinite(end)]
    room = 0.08 * (max(ends) - min(ends)) or 0.05
    return min(ends) - room, max(ends) + room


def _intervals(figure: Intervals) -> tuple[str, int]:
    """Two panels beside each other; returns the height too."""
    names = min(118, 16 + 7 * max(len(label) for label, _ in figure.rows))
    width = (WIDTH - names - 8 - _PANEL_GAP) / 2
    height = 20 + _ROW * len(figure.rows)
    parts = []
    for place, (statistic, estimates) in enumerate(figure.panels.items()):
        left, top = names + place % 2 * (width + _PANEL_GAP), 4 + place // 2 * (height + 36)
        parts += _panel(figure.rows, statistic, estimates, (left, top), width)
        if not place % 2:
            parts += _names(figure.rows, names - 10, top)
    return "".join(parts), 4 + (len(figure.panels) + 1) // 2 * (height + 36) - 8


def _names(rows: Sequence[tuple[str, int]], right: float, top: float) -> Iterator[str]:
    for row, (label, _) in enumerate(rows):
        shown = label if len(label) <= 15 else label[:14] + "…"
        yield f'<text class="name" x="{right}" y="{top + 24 + _ROW * (row + 0.5):.1f}" text-anchor="end">{escape(shown)}</text>'


def _panel(
    rows: Sequence[tuple[str, int]], statistic: str, estimates: Sequence[Estimate], corner: tuple[float, float], width: float
) -> Iterator[str]:
    (left, top), bottom = corner, corner[1] + 20 + _ROW * len(rows)
    low, high = span(estimates)

    def across(value: float) -> float:
        return left + (value - low) / (high - low) * width

    yield f'<g class="label"><text x="{left:.1f}" y="{top + 12}">{escape(statistic)}</text></g><g class="grid">'
    for value in ticks(low, high, 4):
        yield f'<path d="M{across(value):.1f} {top + 20}V{bottom}"/>'
        yield f'<text x="{across(value):.1f}" y="{bottom + 15}" text-anchor="middle">{short(value)}</text>'
    yield "</g>"
    for row, ((label, style), each) in enumerate(zip(rows, estimates, strict=True)):
        y = top + 20 + _ROW * (row + 0.5)
        tip = f"{label}, {statistic}: {told(each)}"
        yield f'<g class="{class_of(style)}">{bar(each.low, each.high, across, y)}{mark(style, across(each.value), y, tip)}</g>'


def bar(low: float, high: float, across: Callable[[float], float], y: float) -> str:
    """The line of an interval; nothing where there is none."""
    return f'<path class="bar" d="M{across(low):.1f} {y:.1f}H{across(high):.1f}"/>' if math.isfinite(low + high) else ""


def told(estimate: Sequence[float]) -> str:
    """An estimate in words: 0.83 [0.71, 0.94]."""
    value, low, high = estimate
    return f"{value:.4g} [{low:.4g}, {high:.4g}]" if math.isfinite(low) else f"{value:.4g}"

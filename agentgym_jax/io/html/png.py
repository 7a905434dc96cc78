"""The pictures of a page as PNG, for slides and papers: same numbers, colours and patterns, drawn by matplotlib."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from agentgym_jax.io.html import svg
from agentgym_jax.io.html.figures import Figure, Intervals, Lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_COLOURS = ("#0b6bb8", "#c24a00", "#00785a", "#a03c78", "#8a6400", "#5b4bd0", "#4a5560", "#a8322f")  # the page's, in light
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)), (0, (4, 1.5, 1.5, 1.5, 1.5, 1.5)))
_MARKS = ("o", "s", "^", "D")


def png(figure: Figure) -> bytes:
    """A picture's file, 150 dots an inch."""
    buffer = io.BytesIO()
    canvas = _lines(figure) if isinstance(figure, Lines) else _intervals(figure)
    canvas.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def _canvas(width: float, height: float) -> Canvas:
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(width, height), layout="constrained")


def _style(style: int) -> dict[str, Any]:
    dash = _DASHES[(style + style // len(_COLOURS)) % len(_DASHES)]
    return {"color": _COLOURS[style % len(_COLOURS)], "linestyle": dash, "marker": _MARKS[style % len(_MARKS)], "markersize": 4}


def _lines(figure: Lines) -> Canvas:
    from matplotlib.ticker import FuncFormatter

    canvas = _canvas(5.6, 3.6)
    axes = canvas.subplots()
    for each in figure.series:
        style = _style(each.style)
        style["marker"] = style["marker"] if figure.marks else ""
        axes.plot(each.x, each.y, label=each.label, linewidth=1.8, **style)
        axes.fill_between(each.x, each.low, each.high, color=style["color"], alpha=0.16, linewidth=0)
    left, right, bottom, top = svg.bounds(figure)
    axes.set(title=f"{figure.title}, {figure.subject}", xlabel=figure.x_label, ylabel=figure.y_label)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: svg.short(value)))
    axes.grid(color="#e8ebee")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)
    return canvas


def _intervals(figure: Intervals) -> Canvas:
    rows = len(figure.rows)
    canvas = _canvas(2.2 * len(figure.panels) + 1.5, 0.35 * rows + 1.2)
    panels = canvas.subplots(1, len(figure.panels), sharey=True, squeeze=False)[0]
    for axes, (statistic, estimates) in zip(panels, figure.panels.items(), strict=True):
        for row, ((_, style), estimate) in enumerate(zip(figure.rows, estimates, strict=True)):
            look = _style(style)
            if math.isfinite(estimate.low):
                axes.plot([estimate.low, estimate.high], [row, row], color=look["color"], linewidth=4, alpha=0.4)
            axes.plot(estimate.value, row, color=look["color"], marker=look["marker"], markersize=6)
        axes.set(title=statistic, xlim=svg.span(estimates), ylim=(rows - 0.5, -0.5))
        axes.set_yticks(range(rows), [label for label, _ in figure.rows])
        axes.grid(axis="x", color="#e8ebee")
        axes.spines[["top", "right"]].set_visible(False)
    return canvas

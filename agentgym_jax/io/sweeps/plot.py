"""A metric against swept settings: a panel a setting, a point a member, the IQM of each value with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentgym_jax.io.running.statistics import iqm_band
from agentgym_jax.io.sweeps import table as sweep_table
from agentgym_jax.io.sweeps.groups import value_in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONG = 28  # letters of a value's name in a picture


def plot(table: Sequence[dict[str, Any]], keys: Sequence[str], metric: str) -> Figure:
    """`metric` against each of `keys`, over all other settings and seeds. Raises ConfigError for an unknown column."""
    scores = np.asarray(sweep_table.column(table, metric), np.float64)
    figure, panels = _panels(len(keys))
    for axes, key in zip(panels, keys, strict=True):
        draw(axes, key, list(sweep_table.column(table, key)), scores)
        axes.set_ylabel(metric)
    panels[0].legend(fontsize="small")
    return figure


def trials(rows: Sequence[dict[str, Any]], keys: Sequence[str], metric: str, minimise: bool = False) -> Figure:
    """The values of a search's trials in their order with the best so far, then against each of `keys`."""
    ended = [row for row in rows if row["value"] is not None]
    complete = [row for row in ended if row["state"] == "COMPLETE"]
    figure, panels = _panels(1 + len(keys))
    for marker, label, own in (("o", "complete", complete), ("x", "pruned", [row for row in ended if row not in complete])):
        x, y = [row["trial"] for row in own], [row["value"] for row in own]
        panels[0].plot(x, y, marker, color="C0", alpha=0.5, linewidth=0, label=label)
    best = (np.minimum if minimise else np.maximum).accumulate([row["value"] for row in complete]) if complete else []
    panels[0].plot([row["trial"] for row in complete], best, color="C1", drawstyle="steps-post", label="best so far")
    panels[0].set_xlabel("trial")
    panels[0].xaxis.get_major_locator().set_params(integer=True)
    panels[0].grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    for axes, key in zip(panels[1:], keys, strict=True):
        draw(axes, key, [row[key] for row in ended], np.array([row["value"] for row in ended], np.float64))
    for axes in panels:
        axes.set_ylabel(metric)
    return figure


def _panels(count: int) -> tuple[Figure, list[Any]]:
    """A figure with so many axes, at most three side by side."""
    from matplotlib.figure import Figure

    across = min(3, count)
    figure = Figure(figsize=(4.6 * across, 3.7 * -(-count // across)), layout="constrained")
    panels = list(figure.subplots(-(-count // across), across, squeeze=False).flat)
    for axes in panels[count:]:
        axes.set_axis_off()
    return figure, panels[:count]


def draw(axes: Any, key: str, values: list[Any], scores: np.ndarray) -> None:
    """One panel: the scores [P] of members with these values of one setting."""
    numbers = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values)
    own = sorted(set(values)) if numbers else list(dict.fromkeys(values))
    places = np.array(own, np.float64) if numbers else np.arange(len(own), dtype=np.float64)
    index = np.array([own.index(value) for value in values])
    apart = np.where(index[:, None] == np.arange(len(own))[None], scores[:, None], math.nan)  # [P, values]
    axes.plot(places[index], scores, "o", color="C0", alpha=0.4, markersize=4, linewidth=0, label="each member")
    if len(own) < len(values):
        middle, low, high = iqm_band(apart)
        known = np.isfinite(middle)
        x, line = places[known], "-" if numbers else "none"  # nothing lies between two choices
        axes.plot(x, middle[known], color="C0", linestyle=line, linewidth=2.2, marker="o", label="IQM")
        name = "its 95 % interval"
        if numbers:
            axes.fill_between(x, low[known], high[known], color="C0", alpha=0.2, linewidth=0, label=name)
        else:
            axes.vlines(x, low[known], high[known], color="C0", alpha=0.35, linewidth=6, label=name)
    if numbers and is_logarithmic(places):
        axes.set_xscale("log")
    if not numbers:
        names = [value_in_words(value) for value in own]
        axes.set_xticks(places, [name if len(name) <= _LONG else f"{name[: _LONG - 1]}…" for name in names], fontsize="small")
        axes.set_xlim(-0.5, len(own) - 0.5)
    axes.set_xlabel(key)
    axes.grid(alpha=0.3)


def is_logarithmic(values: np.ndarray) -> bool:
    """Whether numbers in rising order lie more evenly on a logarithmic axis, over a factor of 5 at least."""
    if len(values) < 2 or values[0] <= 0 or values[-1] / values[0] < 5:
        return False
    plain, logarithmic = np.diff(values), np.diff(np.log(values))
    return len(values) == 2 or float(np.std(logarithmic) / np.mean(logarithmic)) < float(np.std(plain) / np.mean(plain))

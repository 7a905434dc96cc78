"""What matches tell a person: a table, heat maps, and files that a script can read."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from agentgym_jax.io.loggers import finite
from agentgym_jax.io.running.report import shown_in_notebooks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from agentgym_jax.io.matching.matches import Matches

_SETTINGS = ("env", "episodes", "seed", "strength", "greedy", "compile_seconds", "play_seconds")
_LONGEST = 28  # characters of a player's name beside a heat map


def records(matches: Matches) -> list[dict[str, Any]]:
    """A row a pairing: {group: player, name: mean, name.low and name.high: its 95 % interval}."""
    numbers = {name: (matches.mean(name), *matches.interval(name)) for name in matches.results}
    rows: list[dict[str, Any]] = []
    for place, players in matches.pairings():
        row: dict[str, Any] = dict(players)
        for name, values in numbers.items():
            row |= {f"{name}{end}": float(x[place]) for end, x in zip(("", ".low", ".high"), values, strict=True)}
        rows.append(row)
    return rows


def shown_names(matches: Matches) -> list[str]:
    """What a person wants to see of the results: returns and wins of the groups, then the environment's own metrics."""
    returns = list(dict.fromkeys(matches.returns().values()))
    wins = [f"win.{group}" for group in matches.groups if f"win.{group}" in matches.results]
    known = {*returns, *wins, "return", "agent_return", "cut"}
    cut = ["cut"] if np.any(matches.results["cut"]) else []
    return [*returns, *wins, *(name for name in matches.results if name not in known), *cut]


def table(matches: Matches) -> Table:
    """A row a pairing: who plays which group, and the means with their 95 % intervals."""
    chosen, rows = shown_names(matches), records(matches)
    how = "greedy" if matches.greedy else "sampled"
    title = f"{matches.env}: {how}, {matches.episodes} episodes each, seed {matches.seed}, strength {matches.strength:g}"
    made = Table(title=title, title_justify="left")
    for group in matches.groups:
        made.add_column(group, overflow="fold")
    for name in chosen:
        made.add_column(in_words(name), justify="right")
    compared = [name for name in chosen if name in matches.returns().values() or name.startswith("win.")]
    for row in rows:
        means = (_with_interval(row, name) if name in compared else f"{row[name]:.3g}" for name in chosen)
        made.add_row(*(row[group] for group in matches.groups), *means)
    return made


def in_words(name: str) -> str:
    """A result's name for a heading."""
    return name.replace("group_return.", "return of ").replace("win.", "win rate of ")


def _with_interval(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}.low"], row[f"{name}.high"]
    return f"{row[name]:.3g}\n[{low:.3g}, {high:.3g}]" if low < high else f"{row[name]:.3g}"


def plot(matches: Matches) -> Figure:
    """A heat map a group's return, and win rate where there is one: rows the first group's players, columns the others'."""
    from matplotlib.figure import Figure

    wins = [f"win.{group}" for group in matches.groups if f"win.{group}" in matches.results]
    names = [*dict.fromkeys(matches.returns().values()), *wins]
    first, *rest = matches.groups
    columns = [" / ".join(map(_short, names)) for names in _combinations([matches.players[group] for group in rest])]
    rows = [_short(name) for name in matches.players[first]]
    across = max(1, math.ceil(len(names) / 2)) if wins else len(names)
    size = (across * (2.6 + 0.75 * len(columns)), math.ceil(len(names) / across) * (2.0 + 0.42 * len(rows)))
    figure = shown_in_notebooks(Figure)(figsize=size, layout="constrained")
    panels = figure.subplots(math.ceil(len(names) / across), across, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        _heat_map(axes, matches.mean(name).reshape(len(rows), -1), name.startswith("win."))
        axes.set_title(in_words(name), fontsize="medium")
        axes.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor", fontsize="small")
        axes.set_yticks(range(len(rows)), rows, fontsize="small")
        axes.set_xlabel(", ".join(rest))
        axes.set_ylabel(first)
    for axes in panels[len(names) :]:
        axes.remove()
    figure.suptitle(f"{matches.env}: means of {matches.episodes} episodes")
    return figure


def _heat_map(axes: Any, values: np.ndarray, rate: bool) -> None:
    """One map with its numbers written in, dark on light and light on dark."""
    known = values[np.isfinite(values)]
    low, high = (0.0, 1.0) if rate else (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    image = axes.imshow(values, cmap="viridis", vmin=low, vmax=high if high > low else low + 1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        dark = (value - low) / max(high - low, 1e-9) < 0.6
        text = f"{value:.2f}" if rate else f"{value:.3g}"
        axes.text(column, row, text, ha="center", va="center", fontsize="small", color="white" if dark else "black")
    axes.figure.colorbar(image, ax=axes)


def _combinations(names: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """All combinations of the other groups' players, the last varying fastest; one empty one without other groups."""
    combined: list[tuple[str, ...]] = [()]
    for each in names:
        combined = [(*before, name) for before in combined for name in each]
    return combined


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"


def write(matches: Matches, folder: Path) -> None:
    """matches.json (settings, players, a row a pairing), matches.csv (the rows) and heat_map.png."""
    rows = records(matches)
    settings = {name: getattr(matches, name) for name in _SETTINGS}
    content = {**settings, "players": matches.players, "pairings": rows}
    (folder / "matches.json").write_text(json.dumps(finite(content), indent=2, allow_nan=False) + "\n")
    with open(folder / "matches.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    plot(matches).savefig(folder / "heat_map.png", dpi=120)

"""The table of a sweep: a row a member, with its settings, its seed and everything that was measured at the end."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from agentgym_jax.checks import check_choice
from agentgym_jax.io.running.statistics import iqm
from agentgym_jax.io.saving.durable import write_atomically
from agentgym_jax.io.sweeps.groups import Group, value_in_words
from agentgym_jax.io.sweeps.varied import to_plain

Row = dict[str, Any]


def rows(index: int, group: Group, keys: Sequence[str], summary: Mapping[str, Any]) -> list[Row]:
    """The rows of one group from the summary of its run; `keys` are all swept keys, in the order of their columns.

    `greedy.return`, `sampled.length`, … are means over the episodes of the last evaluation, `absolute.return`, … those of the
    best policy; `steps` are environment steps of the member, `train_seconds` those of its whole group.
    """
    experiment, result = group.experiment, []
    for member, settings in enumerate(experiment.members):
        label = dict(settings) if experiment.sweep else settings["seed"]
        row = {"group": index, "member": member}
        row |= {key: group.settings[key] if key in group.settings else settings[key] for key in keys}
        row |= {"seed": settings["seed"]}
        for policy, metrics in {**summary["evaluation"], "absolute": summary["absolute"]}.items():
            row |= {f"{policy}.{name}": _number(values["per_seed"][member]) for name, values in metrics.items()}
        row |= {"steps": summary["total_steps"], "train_seconds": summary["train_seconds"]}
        result.append(row | {"diverged": label in summary["diverged"]})
    return result


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def names(table: Sequence[Row]) -> list[str]:
    """The columns of all rows; what other groups did not measure comes at the end."""
    return list(dict.fromkeys(name for row in table for name in row))


def column(table: Sequence[Row], name: str) -> np.ndarray:
    """One column [P], NaN where a group did not measure it. Raises ConfigError for a name that there is not."""
    check_choice("metric", name, names(table))
    values = [row.get(name, math.nan) for row in table]
    simple = all(isinstance(value, int | float | bool) for value in values)
    return np.array(values) if simple else np.array([*values, None], object)[:-1]  # lists stay entries


def ranked(table: Sequence[Row], by: str, columns: Sequence[str], title: str, least: bool = False, most: int = 10) -> Table:
    """The best rows by one column, for a terminal; rows without a number there are left out."""
    shown = Table(title=title, title_justify="left")
    for name in (*columns, by):
        shown.add_column(name, justify="right", overflow="fold")
    scores = np.asarray([math.nan if row.get(by) is None else row[by] for row in table], np.float64)
    known = [int(index) for index in np.argsort(scores if least else -scores, kind="stable") if math.isfinite(scores[index])]
    for index in known[:most]:
        shown.add_row(*(value_in_words(table[index].get(name)) for name in columns), f"{scores[index]:.4g}")
    return shown


def over_seeds(table: Sequence[Row], keys: Sequence[str], metric: str) -> list[Row]:
    """A row a setting of `keys`: the IQM of the metric over its seeds, and their number."""
    apart: dict[str, list[int]] = {}
    for index, row in enumerate(table):
        apart.setdefault(repr([row[key] for key in keys]), []).append(index)
    scores = np.asarray(column(table, metric), np.float64)
    own = [(table[members[0]], scores[members]) for members in apart.values()]
    return [{key: row[key] for key in keys} | {"seeds": len(x), metric: iqm(x[np.isfinite(x)])} for row, x in own]


def write(table: Sequence[Row], folder: Path) -> None:
    """table.csv and table.json, each replaced at once, so that none is ever half written."""
    columns = names(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in table)
    write_atomically(folder / "table.csv", text.getvalue())
    plain = [{name: _json(value) for name, value in row.items()} for row in table]
    write_atomically(folder / "table.json", json.dumps(plain, indent=1, allow_nan=False) + "\n")


def _cell(value: Any) -> Any:
    value = to_plain(value)
    return json.dumps(value) if isinstance(value, list | dict) else "" if value is None else value


def _json(value: Any) -> Any:
    value = to_plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value

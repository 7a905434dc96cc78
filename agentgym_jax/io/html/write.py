"""From run directories to a report's folder: index.html, and every picture and table as a file beside it."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentgym_jax.io.html import figures, tables
from agentgym_jax.io.html.content import Content, compose
from agentgym_jax.io.html.measures import USUAL, Replicates
from agentgym_jax.io.html.page import render
from agentgym_jax.io.html.png import png
from agentgym_jax.io.html.sources import read_all
from agentgym_jax.io.running.run_directory import create

TITLE = "Results"


def write_report(
    runs: Sequence[str | Path],
    out: str | Path,
    metric: str = "return",
    title: str = TITLE,
    overwrite: bool = False,
    replicates: Replicates = USUAL,
) -> Path:
    """Reads runs, sweeps and results from elsewhere, and writes the report's folder; returns the page.

    Args:
      runs: run directories, sweep directories (with `group-*` inside), .json files in marl-eval's schema; `NAME=` in front
        names one.
      out: the folder; one that holds anything is refused, or moved aside with `overwrite`.
      metric: what the greedy policy is judged by: `return`, `success`, `length`, … replicates: of the bootstrap.

    Raises:
      ConfigError: what cannot be read or compared, before the folder is touched.
    """
    content = compose(read_all(runs, metric), metric, title, replicates)
    files = dict(_files(content))
    folder = create(out, overwrite).path
    for name, data in files.items():
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
    return folder / "index.html"


def _files(content: Content) -> Iterable[tuple[str, bytes]]:
    yield "index.html", render(content, time.strftime("%-d %B %Y")).encode()
    yield f"tables/{content.protocol.kind}.csv", _csv(*tables.flat(content.protocol))
    for section in content.sections:
        for figure in section.figures:
            yield f"figures/{section.anchor}_{figure.kind}.png", png(figure)
            yield f"figures/{section.anchor}_{figure.kind}.csv", _csv(*figures.flat(figure))
        for table in section.tables:
            yield f"tables/{section.anchor}_{table.kind}.csv", _csv(*tables.flat(table))


def _csv(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue().encode()

"""`agentgym report`: what runs have reached, as one page to look at and files beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import clear_errors


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", help="Run or sweep directories, or .json files in marl-eval's schema; NAME=RUN gives a name."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the report: index.html, figures/, tables/.")],
    metric: Annotated[str, typer.Option(help="What counts: return, success, length, ...")] = "return",
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Results",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Move an existing folder aside.")] = False,
) -> None:
    """Compare runs on one HTML page that needs neither network nor scripts, with PNG and CSV beside it."""
    with clear_errors():
        from agentgym_jax.io.html.write import write_report

        page = write_report(runs, out, metric, title, overwrite)
    print(page)

"""`agentgym export`: runs in the format of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import clear_errors


def export(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Finished run directories, or NAME=RUN.")],
    out: Annotated[Path, typer.Option(help="The file to write; an existing one is refused.")],
    format: Annotated[str, typer.Option(help="marl-eval: the JSON of that tool.")] = "marl-eval",
) -> None:
    """Write the evaluations of runs, of several tasks and algorithms, into one file for another tool."""
    with clear_errors():
        from agentgym_jax.checks import check_choice
        from agentgym_jax.io.comparing.marl_eval import document, write
        from agentgym_jax.io.comparing.stored import read_named

        check_choice("--format", format, ("marl-eval",))
        merged = document(read_named(runs))
        write(merged, out)
    for env, tasks in merged.items():
        for task, algorithms in tasks.items():
            print(f"{env} > {task}: " + ", ".join(f"{name} ({len(members)} runs)" for name, members in algorithms.items()))
    print(f"written to {out}")

"""`agentgym compare`: what differs between runs, and where that is fair, which is better."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from agentgym_jax.cli.common import clear_errors


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Finished run directories, or NAME=RUN.")],
    metric: Annotated[str, typer.Option(help="Which number of the evaluation.")] = "return",
    policy: Annotated[str, typer.Option(help="greedy or sampled, at the last point; absolute: the best policy's.")] = "greedy",
    as_json: Annotated[bool, typer.Option("--json", help="Print plain data instead of tables.")] = False,
) -> None:
    """Name every difference between runs; compare them where environment, evaluation and budget are the same.

    Exit code 1 when these differ, so that there is no verdict.
    """
    with clear_errors():
        from agentgym_jax.io.comparing.compare import compare, show
        from agentgym_jax.io.comparing.stored import read_named
        from agentgym_jax.io.loggers import finite

        comparison = compare(read_named(runs), metric, policy)
    if as_json:
        print(json.dumps(finite(comparison), indent=2, allow_nan=False))
    else:
        show(comparison)
    if not comparison["comparable"]:
        raise typer.Exit(1)

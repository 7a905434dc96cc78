"""`agentgym match`: policies against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, import_files, prepare_jax


def match(
    env: Annotated[str, typer.Argument(help="An environment's id, or the name or file of a config.")],
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="Run directories; RUN:SEED for another seed than the first.")
    ] = None,
    episodes: Annotated[int, typer.Option(help="Episodes of every pairing, the same starts for all.")] = 32,
    seed: Annotated[int, typer.Option(help="Of starts, noise and actions; a run's `eval.seed` repeats its starts.")] = 0,
    strength: Annotated[float, typer.Option(help="With which probability scripts act by their rules, else at random.")] = 1.0,
    sampled: Annotated[bool, typer.Option("--sampled", help="Runs act with their noise instead of by their mode.")] = False,
    scripts: Annotated[bool, typer.Option("--scripts/--no-scripts", help="Whether the environment's scripts play.")] = True,
    out: Annotated[Path | None, typer.Option(help="Where to write; default runs/match_<environment>-<time>.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Move an existing folder aside.")] = False,
    imports: Imports = None,
) -> None:
    """Play every policy in every group against every other, scripts and random play included."""
    with clear_errors():
        prepare_jax()
        import_files(imports)

        from agentgym_jax.io.matching.matches import match as play
        from agentgym_jax.io.running import report
        from agentgym_jax.io.running.run_directory import default_path

        out = out or default_path("match", env.rpartition("/")[2].removesuffix(".yaml"))
        matches = play(env, runs or [], episodes, seed, strength, not sampled, scripts, out, overwrite)
    console = report.make_console()
    console.print(matches.table())
    console.print(f"matches.json, matches.csv and heat_map.png are in {matches.directory}", highlight=False, markup=False)

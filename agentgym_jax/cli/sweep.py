"""`agentgym sweep`: all members of an experiment's sweep, group after group, and one table over them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, read_plain


def sweep(
    config: Annotated[str, typer.Argument(help="A shipped name such as gymnax/cartpole_ppo_sweep, or a file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change: sweep.algorithm.gamma=[0.9,0.99].")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="A count (16) or a list (3,7,9).")] = None,
    out: Annotated[Path | None, typer.Option(help="The sweep's directory; default runs/<suite>_<config>-<time>.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print groups, members, steps and memory.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Skip what is finished in --out, and go on there.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Move an existing directory aside.")] = False,
    metric: Annotated[str, typer.Option(help="A column of the table: what the printed rows are sorted by.")] = "greedy.return",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the results.")] = False,
    imports: Imports = None,
) -> None:
    """Train every combination of an experiment's section `sweep`; members that share everything static are one compile."""
    with clear_errors():
        plain = read_plain(config, overrides, seeds, imports)

        from agentgym_jax.io.config.load import from_plain
        from agentgym_jax.io.running import report
        from agentgym_jax.io.running.run_directory import default_path
        from agentgym_jax.io.saving.background import SaveError
        from agentgym_jax.io.sweeps import drive as sweeping

        experiment = sweeping.read(from_plain(plain))
        if dry_run:
            print("\n".join(sweeping.outline(experiment)))
            return
        if resume and out is None:
            raise ValueError("--resume: needs --out, the directory to go on in")
        suite = report.env_name(experiment.env.id).partition("/")[0]
        out = out or default_path(suite, Path(config).stem)
        try:
            result = sweeping.sweep(experiment, out=out, resume=resume, overwrite=overwrite, quiet=quiet)
            report.make_console().print(sweeping.best_table(result, metric))
        except SaveError as error:
            print(f"agentgym: {error}", file=sys.stderr)
            raise typer.Exit(1) from None
    print(f"{len(result.table)} rows in {out / 'table.csv'}; pictures in {out / 'sweep.png'}")

"""`agentgym train`: from an experiment file to a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, read_plain, run_to_its_end


def train(
    config: Annotated[str, typer.Argument(help="A shipped name such as gymnax/cartpole_ppo, or a .yaml or .json file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change: algorithm.gamma=0.98.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help="A count (16) or a list (3,7,9).")] = None,
    out: Annotated[Path | None, typer.Option(help="The run directory; default runs/<suite>_<config>-<time>.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Move an existing run directory aside.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the results.")] = False,
    imports: Imports = None,
) -> None:
    """Train all seeds of an experiment in one compiled program and measure them."""
    with clear_errors():
        plain = read_plain(config, overrides, seeds, imports)

        from agentgym_jax.io.config.load import from_plain
        from agentgym_jax.io.running import progress, report
        from agentgym_jax.io.running.run_directory import default_path
        from agentgym_jax.io.running.runner import prepare

        experiment = from_plain(plain)
        suite = report.env_name(experiment.env.id).partition("/")[0]
        out = out or default_path(suite, Path(config).stem)
        session = prepare(experiment, out=out, overwrite=overwrite, reporter=progress.make_reporter(quiet))
    run_to_its_end(session, imports)

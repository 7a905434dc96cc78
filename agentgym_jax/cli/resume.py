"""`agentgym resume`: an interrupted run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, import_files, prepare_jax, run_to_its_end


def resume(
    run: Annotated[Path, typer.Argument(help="The run directory.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="What may change, such as train.calls=2; see docs/resume.md."),
    ] = None,
    from_step: Annotated[int | None, typer.Option("--from", help="The checkpoint, in steps; default the newest.")] = None,
    out: Annotated[Path | None, typer.Option(help="Go on in a new directory; needed where fewer seeds go on.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the results.")] = False,
    imports: Imports = None,
) -> None:
    """Go on with a run that was stopped or killed, from its newest checkpoint."""
    from agentgym_jax.io.running.run_directory import existing

    with clear_errors():
        directory = existing(run)
        if directory.summary.exists():
            print(f"{run} is finished; nothing to resume")
            return
        prepare_jax(directory.cpu_devices())
        import_files(imports)

        from agentgym_jax.io.running import progress
        from agentgym_jax.io.saving.resume import prepare

        reporter = progress.make_reporter(quiet)
        session = prepare(run, overrides or [], from_step, out, reporter=reporter)
    if session is not None:
        run_to_its_end(session, imports)

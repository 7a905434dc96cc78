"""`agentgym reproduce`: a run once more, and whether it is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, import_files, prepare_jax


def reproduce(
    run: Annotated[Path, typer.Argument(help="A finished run directory; nothing in it is changed.")],
    out: Annotated[Path | None, typer.Option(help="Keep the new run in this directory; default: it is deleted.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the verdict.")] = False,
    imports: Imports = None,
) -> None:
    """Train a run again from its own directory and say: bit-equal, statistically equal or different (exit code 1)."""
    from agentgym_jax.io.running.run_directory import existing

    with clear_errors():
        prepare_jax(existing(run).cpu_devices())
        import_files(imports)

        from agentgym_jax.io.comparing.reproduce import reproduce
        from agentgym_jax.io.running.progress import make_reporter

        result = reproduce(run, out, make_reporter(quiet))
    print(f"{run}: {result.verdict}")
    if result.first is not None:
        print(f"first difference: {result.first}")
    for what, (low, high) in result.intervals.items():
        print(f"{what}: mean return now minus then between {low:.4g} and {high:.4g}")
    for reason in result.reasons:
        print(f"different because {reason}")
    for changed in result.surroundings:
        print(f"changed: {changed}")
    if result.verdict == "different":
        raise typer.Exit(1)

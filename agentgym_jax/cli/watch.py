"""`agentgym watch`: an environment or a run's policy as an animated picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, import_files, prepare_jax


def watch(
    target: Annotated[str, typer.Argument(metavar="ENV|RUN", help="An environment's id, or a run directory (RUN:SEED).")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="For an environment: env.kwargs.agents=5.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The GIF; default: named after the target, in this folder.")] = None,
    seed: Annotated[int, typer.Option(help="Of starts, chance and actions.")] = 0,
    greedy: Annotated[bool, typer.Option("--greedy/--sampled", help="How a run acts: by its mode, or with its noise.")] = True,
    episodes: Annotated[int, typer.Option(help="How many, one after another.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    imports: Imports = None,
) -> None:
    """Play an environment with random legal actions, or a run's policy, and write an animated GIF."""
    with clear_errors():
        prepare_jax()
        import_files(imports)

        from agentgym_jax.io.watch import watch as play

        watched = play(target, out, seed, greedy, episodes, overrides or [], overwrite)
    print(watched.line())

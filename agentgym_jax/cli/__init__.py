"""The `agentgym` command. A command a file; nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys

import typer

from agentgym_jax.cli.compare import compare
from agentgym_jax.cli.evaluate import evaluate
from agentgym_jax.cli.export import export
from agentgym_jax.cli.info import info
from agentgym_jax.cli.listing import algorithms, envs
from agentgym_jax.cli.match import match
from agentgym_jax.cli.probe import probe
from agentgym_jax.cli.report import report
from agentgym_jax.cli.reproduce import reproduce
from agentgym_jax.cli.resume import resume
from agentgym_jax.cli.sweep import sweep
from agentgym_jax.cli.train import train
from agentgym_jax.cli.tune import tune
from agentgym_jax.cli.watch import watch

app = typer.Typer(
    name="agentgym",
    help="Single- and multi-agent reinforcement learning in JAX.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("envs")(envs)
app.command("algorithms")(algorithms)
app.command("info")(info)
app.command("train")(train)
app.command("resume")(resume)
app.command("eval")(evaluate)
app.command("match")(match)
app.command("sweep")(sweep)
app.command("tune")(tune)
app.command("probe")(probe)
app.command("report")(report)
app.command("watch")(watch)
app.command("compare")(compare)
app.command("reproduce")(reproduce)
app.command("export")(export)


def main() -> None:
    """Runs the command line of this process and ends it with the command's exit code."""
    try:
        app()
    except KeyboardInterrupt as stop:
        sys.exit(getattr(stop, "exit_code", 130))

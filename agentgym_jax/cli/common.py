"""What the commands share: one line for bad input, a user's own modules, virtual devices."""

from __future__ import annotations

import contextlib
import importlib.util
import shlex
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_jax import _runtime
from agentgym_jax.checks import ConfigError

if TYPE_CHECKING:
    from agentgym_jax.io.running.session import Session

Imports = Annotated[
    list[Path] | None,
    typer.Option("--import", metavar="FILE", help="Run a Python file that registers environments, algorithms or networks."),
]


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """What is wrong with the input becomes one line on stderr and exit code 2; Ctrl-C exit code 130, SIGTERM 143."""
    try:
        yield
    except (ValueError, ImportError) as error:
        print(f"agentgym: {' '.join(str(error).split())}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt as stop:  # a session's own says by which signal
        raise typer.Exit(getattr(stop, "exit_code", 130)) from None


def import_files(files: list[Path] | None) -> None:
    """Runs each file as a module of its own. An error inside shows its traceback, since that code is the user's."""
    for file in files or []:
        if not file.is_file():
            raise ConfigError(f"--import: {file} does not exist")
        name = f"agentgym_import_{file.stem}"
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ConfigError(f"--import: {file} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        sys.path.insert(0, str(file.resolve().parent))
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit):
            traceback.print_exc()
            raise ConfigError(f"--import: {file} failed, see above") from None
        finally:
            sys.path.pop(0)


def prepare_jax(devices: int = 1) -> None:
    """The compilation cache, and several virtual CPU devices if asked for; must come before jax's first array."""
    _runtime.use_compilation_cache()
    if devices > 1:
        _runtime.use_cores(devices)


def read_plain(config: str, overrides: list[str] | None, seeds: str | None, imports: list[Path] | None) -> dict[str, Any]:
    """An experiment file with overrides and seeds as plain data; jax has its devices for them, the user's files have run."""
    from agentgym_jax.io.config.files import load_plain
    from agentgym_jax.io.config.seeds import parse_seeds, wanted_devices

    plain = load_plain(config, overrides or [])
    if seeds is not None:
        plain["seeds"] = parse_seeds(seeds)
    prepare_jax(devices=wanted_devices(plain, _runtime.cores()))
    import_files(imports)
    return plain


def run_to_its_end(session: Session, imports: list[Path] | None) -> None:
    """Trains, shows the results, and ends the process with the exit code of a signal, or 1 where a checkpoint failed."""
    from agentgym_jax.io.running import report
    from agentgym_jax.io.running.interrupt import Interrupted
    from agentgym_jax.io.saving.background import SaveError

    session.resume_command += "".join(f" --import {shlex.quote(str(file))}" for file in imports or [])
    try:
        run = session.train(ends_process=True)
    except Interrupted as stop:
        raise typer.Exit(stop.exit_code) from None
    except SaveError as error:
        print(f"agentgym: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    report.show(run.summary, run.directory)

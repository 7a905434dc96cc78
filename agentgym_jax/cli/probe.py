"""`agentgym probe`: what an algorithm of one's own gets wrong, on environments with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.checks import ConfigError
from agentgym_jax.cli.common import clear_errors, import_files, prepare_jax


def probe(
    algorithm: Annotated[str, typer.Argument(help="A Python file that registers algorithms, or a registered name.")],
    steps: Annotated[int, typer.Option(help="Environment steps on each probe.", min=1)] = 32_768,
) -> None:
    """Train an algorithm on the probe environments and say in words what it got wrong."""
    with clear_errors():
        prepare_jax()
        names = _names(algorithm)

        from agentgym_jax.io.running.probing import probe_algorithm
    wrong = False
    for name in names:
        for verdict in probe_algorithm(name, steps):
            print(f"{name}  {verdict.probe:20} {verdict.state:8} {verdict.text}", flush=True)
            wrong |= verdict.state == "wrong"
    if wrong:
        raise typer.Exit(1)


def _names(algorithm: str) -> list[str]:
    """The algorithms that the file registers, or the one of this name."""
    from agentgym_jax.algorithms.registry import algorithm_names, get_algorithm

    if not algorithm.endswith(".py"):
        get_algorithm(algorithm)
        return [algorithm]
    before = set(algorithm_names())
    import_files([Path(algorithm)])
    names = [name for name in algorithm_names() if name not in before]
    if not names:
        raise ConfigError(f"{algorithm} registers no algorithm; call agentgym_jax.register_algorithm(name, entry) in it")
    return names

"""`agentgym envs` and `agentgym algorithms`: what there is."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, import_files


def envs(
    id: Annotated[str | None, typer.Argument(help="Tell about this environment.")] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings of it, such as env.kwargs.size=5.")] = None,
    imports: Imports = None,
) -> None:
    """List the environments (at once, since no library is imported), or tell about one: rules, spaces, numbers, scripts."""
    from envs_jax import registry

    with clear_errors():
        import_files(imports)
        if id is None:
            print("\n".join(registry.ids()))
            return
        from agentgym_jax.io.describe import describe

        print("\n".join(describe(id, overrides or [])))


def algorithms(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this algorithm and their defaults.")] = None,
    imports: Imports = None,
) -> None:
    """List the algorithms, or the settings of one."""
    with clear_errors():
        import_files(imports)
        from agentgym_jax.algorithms.registry import algorithm_names
        from agentgym_jax.io.config.algorithm_section import default_settings, from_number

        if name is None:
            print("\n".join(algorithm_names()))
            return
        config, hyper = default_settings(name)
    for title, settings in (("static: another value compiles anew", config), ("numbers: can be swept and scheduled", hyper)):
        print(f"# {title}")
        for field in dataclasses.fields(settings):
            print(f"algorithm.{field.name}={from_number(getattr(settings, field.name))}")

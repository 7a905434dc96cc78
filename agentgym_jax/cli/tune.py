"""`agentgym tune`: a search for the settings that score best, and the experiment file with them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax import _runtime
from agentgym_jax.cli.common import Imports, clear_errors, import_files, prepare_jax


def tune(
    config: Annotated[str, typer.Argument(help="A shipped name such as gymnax/cartpole_ppo_tune, or a file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change: train.total_steps=100_000.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials in all, rounded up to whole batches.")] = 32,
    batch: Annotated[int, typer.Option(help="Trials that are one compiled population.")] = 8,
    seeds: Annotated[str, typer.Option(help="Training seeds of a trial: a count, from 1,000,000 upwards, or a list.")] = "1",
    eval_seed: Annotated[int | None, typer.Option(help="Of the validation episodes; default eval.seed + 1,000,000.")] = None,
    metric: Annotated[str, typer.Option(help="greedy, sampled or absolute, a dot, and what is measured.")] = "greedy.return",
    minimise: Annotated[bool, typer.Option("--minimise", help="Less is better.")] = False,
    pruner: Annotated[str, typer.Option(help="median, halving or none.")] = "median",
    sampler_seed: Annotated[int, typer.Option(help="Of what is tried.")] = 0,
    storage: Annotated[str | None, typer.Option(help="A URL of optuna's; default the file study.db in --out.")] = None,
    out: Annotated[Path | None, typer.Option(help="The directory; default runs/<suite>_<config>-<time>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the study in --out, up to --trials in all.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Move an existing directory aside.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
    imports: Imports = None,
) -> None:
    """Search an experiment's section `search`; every batch of trials is one compiled population."""
    from agentgym_jax.io.config.files import load_plain
    from agentgym_jax.io.config.seeds import count_members, parse_seeds, wanted_devices

    with clear_errors():
        plain = load_plain(config, overrides or [])
        own = parse_seeds(seeds)
        members = max(1, batch) * count_members({"seeds": own})
        prepare_jax(devices=wanted_devices({**plain, "seeds": members, "sweep": {}}, _runtime.cores()))
        import_files(imports)

        from agentgym_jax.io.config.load import from_plain
        from agentgym_jax.io.running import report
        from agentgym_jax.io.running.run_directory import default_path
        from agentgym_jax.io.search import drive as tuning

        experiment = from_plain(plain)
        if resume and out is None:
            raise ValueError("--resume: needs --out, the directory to go on in")
        suite = report.env_name(experiment.env.id).partition("/")[0]
        out = out or default_path(suite, Path(config).stem)
        try:
            found = tuning.tune(
                experiment, trials, out, resume, overwrite, quiet, storage=storage, batch=batch, seeds=own, metric=metric,
                minimise=minimise, pruner=pruner, seed=sampler_seed, eval_seed=eval_seed,
            )  # fmt: skip
        except KeyboardInterrupt as stop:
            print(f"stopped; --out {out} --resume goes on with what is finished", file=sys.stderr)
            raise typer.Exit(getattr(stop, "exit_code", 130)) from None
    report.make_console().print(tuning.trials_table(found, metric, minimise))
    best = "no trial was finished" if found.experiment is None else f"agentgym train {out / 'best.yaml'}"
    print(f"{len(found.trials)} trials in {out / 'trials.csv'}; {best}")

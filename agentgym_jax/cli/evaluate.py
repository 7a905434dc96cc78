"""`agentgym eval`: the last evaluation of a run once more, from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_jax.cli.common import Imports, clear_errors, import_files, prepare_jax


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run directory; nothing in it is changed.")], imports: Imports = None
) -> None:
    """Restore a run's newest checkpoint, play its evaluation again and compare with what was recorded."""
    from agentgym_jax.io.running.run_directory import existing

    with clear_errors():
        prepare_jax(existing(run).cpu_devices())
        import_files(imports)

        from agentgym_jax.io.running import report
        from agentgym_jax.io.running.reevaluate import differences, evaluate_again
        from agentgym_jax.io.running.run import load_run

        loaded = load_run(run)
    results = evaluate_again(loaded)
    report.show_evaluation(results, loaded)
    if loaded.total_steps not in loaded.evaluation_steps:
        print(f"no evaluation was recorded at the {loaded.total_steps:,} steps of the checkpoint, which lies between two")
        return
    different = differences(results, loaded.last_evaluation)
    if different:
        print(f"differs from the recorded evaluation at {loaded.total_steps:,} steps in {', '.join(different)}")
        raise typer.Exit(1)
    print(f"equal to the recorded evaluation at {loaded.total_steps:,} steps, to the bit")

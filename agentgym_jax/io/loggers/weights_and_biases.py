"""One run of Weights & Biases for all members. Needs the extra `wandb`; `WANDB_MODE=offline` keeps everything on the disk."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_jax.io.loggers.base import evaluation_means, label


class WeightsAndBiases:
    """The names of a member's curves begin with its label; x is environment steps.

    `directory` is the run directory: the files of W&B go into `wandb/` there, with the run's id, by which a resumed run goes on
    with the same curves (W&B itself drops the steps that it has already).
    """

    def __init__(self, project: str, directory: Path, config: Mapping[str, Any], steps: int | None = None):
        import wandb  # type: ignore[reportMissingImports]  # an extra

        kept = directory / "wandb" / "id.txt"
        if steps is None or not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(secrets.token_hex(4) + "\n")
        self._run = wandb.init(
            project=project,
            name=directory.name,
            config=dict(config),
            dir=str(directory),
            id=kept.read_text().strip(),
            resume="allow",
        )

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        self._run.log({f"{label(member)}/train/{name}": value for name, value in values.items()}, step=step)

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        means = evaluation_means(results)
        self._run.log({f"{label(member)}/evaluation/{name}": mean for name, mean in means.items()}, step=step)

    def flush(self) -> None:
        """W&B sends by itself."""

    def close(self) -> None:
        self._run.finish()

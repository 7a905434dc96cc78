"""The loggers that an experiment asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.load import to_plain
from agentgym_jax.io.loggers.base import Logger
from agentgym_jax.io.loggers.console import Console
from agentgym_jax.io.loggers.json_lines import JsonLines
from agentgym_jax.io.loggers.tensorboard import TensorBoard
from agentgym_jax.io.loggers.weights_and_biases import WeightsAndBiases
from agentgym_jax.io.running.run_directory import RunDirectory


def make_loggers(
    experiment: Experiment, directory: RunDirectory, members: Sequence[Mapping[str, Any]], steps: int | None = None
) -> list[Logger]:
    """JSON lines and what `log.loggers`, `log.tensorboard` and `log.wandb` ask for.

    `steps`: environment steps of the checkpoint that a resumed run goes on from, None for a new run. TensorBoard's files are
    cut back to there; whoever resumes has cut the JSON lines already, and they are appended to.
    """
    loggers: list[Logger] = []
    try:
        for name in experiment.log.active:
            loggers.append(_make(name, experiment, directory, members, steps))
    except BaseException:
        for logger in loggers:
            logger.close()
        raise
    return loggers


def _make(name: str, experiment: Experiment, directory: RunDirectory, members: Any, steps: int | None) -> Logger:
    if name == "tensorboard":
        return TensorBoard(directory.tensorboard, members, steps)
    if name == "wandb":
        assert experiment.log.wandb is not None, "LogConfig sees to it"
        return WeightsAndBiases(experiment.log.wandb, directory.path, to_plain(experiment), steps)
    return Console(members) if name == "console" else JsonLines(directory.metrics, directory.evaluations)

"""Records of a run while it goes on: JSON lines always, others by `log.loggers`. The x of everything is environment steps."""

from agentgym_jax.io.loggers.base import Logger, evaluation_means, label
from agentgym_jax.io.loggers.console import Console
from agentgym_jax.io.loggers.json_lines import JsonLines
from agentgym_jax.io.loggers.make import make_loggers
from agentgym_jax.io.loggers.records import call_means, finite, read_records
from agentgym_jax.io.loggers.tensorboard import TensorBoard
from agentgym_jax.io.loggers.weights_and_biases import WeightsAndBiases

__all__ = [
    "Console", "JsonLines", "Logger", "TensorBoard", "WeightsAndBiases", "call_means", "evaluation_means", "finite", "label",
    "make_loggers", "read_records",
]  # fmt: skip

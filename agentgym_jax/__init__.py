"""agentgym_jax: single- and multi-agent reinforcement learning in JAX, a whole population in one compiled program.

>>> experiment = agentgym_jax.load_experiment("gymnax/cartpole_ppo", overrides=["algorithm.gamma=0.98"])
>>> run = agentgym_jax.train(experiment, seeds=16, out="runs/cartpole")

Names are resolved on first use, so importing this package imports neither jax nor anything heavy. It appends one XLA flag
(see `agentgym_jax._runtime`), so import it before jax makes its first array.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agentgym_jax import _runtime

_runtime.append_flag()
__version__ = "0.1.0"

_HOMES = {
    "agentgym_jax._runtime": ("use_compilation_cache", "use_cores"),
    "agentgym_jax.algorithms.registry": ("algorithm_names", "get_algorithm", "register_algorithm"),
    "agentgym_jax.io.running.assemble": ("assemble", "make_train"),
    "agentgym_jax.io.config.load": ("load_experiment",),
    "agentgym_jax.io.config.experiment": ("EnvConfig", "EvalConfig", "Experiment", "LogConfig", "TrainConfig"),
    "agentgym_jax.io.html.write": ("write_report",),
    "agentgym_jax.io.saving.resume": ("resume",),
    "agentgym_jax.io.matching.matches": ("Matches", "match"),
    "agentgym_jax.io.running.run": ("Run", "load_run"),
    "agentgym_jax.io.running.runner": ("train",),
    "agentgym_jax.io.sweeps.drive": ("sweep",),
    "agentgym_jax.io.search.drive": ("tune",),
    "agentgym_jax.models.config": ("NetworkConfig",),
    "agentgym_jax.ops.schedules": ("Schedule",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME), "register_environment"]

if TYPE_CHECKING:
    from agentgym_jax._runtime import use_compilation_cache, use_cores
    from agentgym_jax.algorithms.registry import algorithm_names, get_algorithm, register_algorithm
    from agentgym_jax.io.config.experiment import EnvConfig, EvalConfig, Experiment, LogConfig, TrainConfig
    from agentgym_jax.io.config.load import load_experiment
    from agentgym_jax.io.html.write import write_report
    from agentgym_jax.io.matching.matches import Matches, match
    from agentgym_jax.io.running.assemble import assemble, make_train
    from agentgym_jax.io.running.run import Run, load_run
    from agentgym_jax.io.running.runner import train
    from agentgym_jax.io.saving.resume import resume
    from agentgym_jax.io.search.drive import tune
    from agentgym_jax.io.sweeps.drive import sweep
    from agentgym_jax.models.config import NetworkConfig
    from agentgym_jax.ops.schedules import Schedule
    from envs_jax.registry import register as register_environment


def __getattr__(name: str) -> Any:
    if name == "register_environment":
        return importlib.import_module("envs_jax.registry").register
    if name not in _HOME:
        raise AttributeError(f"module 'agentgym_jax' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""What one environment is, in words: for who is about to write its section of an experiment file."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from agentgym_jax.io.config.env_numbers import numbers_of
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.running.assemble import make_env
from envs_jax.core import Env
from envs_jax.wrappers import Wrapper

_OWN = "envs_jax.multi."
_RULES = (_OWN, "envs_jax.adapters.jumanji.", "envs_jax.adapters.jaxmarl.")  # there a file is one environment, or one kind


def describe(id: str, overrides: Sequence[str] = ()) -> list[str]:
    """Lines about an environment: its own description, what agents see and do, its arguments, its numbers, and who can play
    its groups.

    `overrides` are those of its section, `env.kwargs.num_prey=2`. Raises ValueError for what cannot be built.
    """
    experiment = load_experiment({"env": {"id": id}}, list(overrides))
    env = make_env(experiment.env)
    base = env.unwrapped if isinstance(env, Wrapper) else env
    lines = [f"# {experiment.env.id}", *_rules(type(base)), "# what an algorithm knows of it", *_known(env)]
    if arguments := _arguments(type(base)):
        lines += ["", "# arguments, with their defaults", *arguments]
    numbers = numbers_of(env.default_params)
    if numbers:
        lines += ["", "# numbers: can be set, changed over the run (single floats), and held out in eval.params"]
    for name, value in numbers.items():
        low, high = env.ranges.get(name, (-np.inf, np.inf))
        within = "" if np.isinf(low) else f"  # {low:g} to {high:g}" if np.isfinite(high) else f"  # at least {low:g}"
        lines.append(f"env.params.{name}={_short(value)}{within}")
    if env.scripts:
        lines += ["", "# scripts: for the wrapper `opponent` and for matches"]
    return lines + [f"{group}: {', '.join(scripts)}" for group, scripts in env.scripts.items()]


def _rules(kind: type[Env]) -> list[str]:
    """The docstrings of its class, of its file where that tells the rules, and of the own classes that it builds on."""
    file = inspect.getdoc(inspect.getmodule(kind)) if kind.__module__.startswith(_RULES) else None
    bases = [base.__doc__ for base in kind.__mro__[1:] if base.__module__.startswith(_OWN)]
    texts = [file, inspect.getdoc(kind), *(inspect.cleandoc(text) for text in bases if text)]
    return [line for text in texts if text for line in (*text.splitlines(), "")]


def _arguments(kind: type[Env]) -> list[str]:
    """`env.kwargs.name=default` of every argument that has one."""
    parameters = inspect.signature(kind).parameters.values()
    return [f"env.kwargs.{each.name}={each.default}" for each in parameters if each.default is not each.empty]


def _short(value: Any) -> Any:
    """A number or nested lists of them, in six digits: 0.1, not 0.10000000149."""
    return jax.tree.map(lambda x: float(f"{x:.6g}") if isinstance(x, float) else x, np.asarray(value).tolist())


def _known(env: Env) -> list[str]:
    """One line a property of the specification."""
    spec = env.spec
    told = {
        "agents": "one, without an agent axis" if spec.num_agents is None else spec.num_agents,
        "groups": ", ".join(f"{group.name} ({group.size})" for group in spec.groups),
        "observation": spec.observation_space,
        "action": spec.action_space,
        "world": spec.world_space or ("" if spec.num_agents is None else "all agents' observations side by side"),
        "reward": "" if spec.num_agents is None else spec.reward,
        "metrics": ", ".join(f"{name} ({how})" for name, how in spec.metrics),
        "episode limit": spec.episode_limit or "none",
        "train.reset auto": env.reset_mode,
        "version": spec.version,
    }
    return [f"{name}: {value}" for name, value in told.items() if value != ""]

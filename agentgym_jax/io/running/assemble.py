"""Experiment -> everything that runs: environment, algorithm, plan and loop. What does not fit is refused here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config.env_numbers import env_numbers
from agentgym_jax.io.config.experiment import EnvConfig, Experiment
from agentgym_jax.io.matching.players import frozen_opponent
from agentgym_jax.io.sweeps import varied as sweep
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.rollout.resets import MODES
from agentgym_jax.training import train as training
from agentgym_jax.training.loop import Loop, Plan, local_sizes, make_loop
from agentgym_jax.training.parallel import across_devices
from envs_jax import registry
from envs_jax.core import Env, EnvSpec
from envs_jax.spaces import Box
from envs_jax.wrappers import AgentAxis, ScaleActions, TeamReward, apply_wrappers

DEFAULT_CAP = 1000


@dataclasses.dataclass(frozen=True)
class Assembly:
    """The parts of an experiment, put together."""

    experiment: Experiment
    env: Env  # with the configured wrappers, in its natural shapes: what `run.policy` sees
    params: Any
    spec: EnvSpec  # as the trainer sees it: an agent axis, actions in [−1, 1]
    algorithm: Algorithm
    plan: Plan
    loop: Loop
    hyper: Any  # strong float32 arrays
    hypers: tuple[Any, ...]  # the same at every swept point

    def steps(self, iterations: int) -> int:
        """Environment steps of one member after this many iterations, warm-up included."""
        return (iterations + self.algorithm.warmup) * self.plan.num_envs * self.plan.rollout_length

    def member_inputs(self) -> tuple[jax.Array, Any]:
        """The root key and the numbers of every member, leaves [P, ...], on the population axis of `experiment.members`."""
        seeds = self.experiment.seeds
        keys = jnp.stack([jax.random.key(seed) for _ in self.hypers for seed in seeds])
        each = [hyper for hyper in self.hypers for _ in seeds]
        return keys, jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)


def assemble(experiment: Experiment, on_trace: Callable[[], None] = lambda: None) -> Assembly:
    """Builds all parts. `on_trace` is called whenever `advance` is traced.

    Raises ValueError, in one line, when environment, wrappers, algorithm, networks and sizes do not fit together.
    """
    if not isinstance(experiment, Experiment):
        raise ConfigError(f"needs an Experiment, got {experiment!r}; load_experiment(name) reads one")
    static = sweep.static_keys(experiment.sweep, experiment.hyper)
    if static:
        raise ConfigError(f"sweep.{static[0]} changes what is compiled, and a run is one program; use `agentgym sweep`")
    if experiment.search:
        raise ConfigError("search: is for `agentgym tune`, a run has one setting; train the best.yaml that it writes")
    env = make_env(experiment.env)
    numbers = env_numbers(env, experiment)
    trainer_env = with_agent_axis(env)
    spec = trainer_env.spec
    entry = get_algorithm(experiment.name)
    network, config = experiment.network, experiment.algorithm
    models = dict(network) if isinstance(network, Mapping) else entry.networks(network, spec, config)
    plan, across = make_plan(experiment, trainer_env), across_devices(experiment.train.shards)
    algorithm = entry.make(spec, config, models, local_sizes(plan, across), across)
    loop = make_loop(trainer_env, numbers.tasks, algorithm, plan, on_trace, across, numbers.held_out)
    hypers = tuple(as_hyper(sweep.at_point(experiment.hyper, point)) for point in experiment.points)
    return Assembly(experiment, env, numbers.params, spec, algorithm, plan, loop, as_hyper(experiment.hyper), hypers)


def make_train(experiment: Experiment) -> Callable[[Any, jax.Array], training.TrainResult]:
    """The whole run of one member as a pure function `train(hyper, key) -> TrainResult`, one XLA program under `jit`.

    Raises ConfigError with `train.shards` above 1: only `train` spreads a member over devices.
    """
    if isinstance(experiment, Experiment) and experiment.train.shards > 1:
        raise ConfigError(f"train.shards: make_train is for one device, got {experiment.train.shards}; use agentgym_jax.train")
    return training.make_train(assemble(experiment).loop)


def make_env(config: EnvConfig) -> Env:
    """The environment with its wrappers, in its natural shapes."""
    env = config.id if isinstance(config.id, Env) else _registered(config)
    if not isinstance(env, Env):
        raise ConfigError(f"env.id: the factory of {config.id} gave {env!r}, which is no Env")
    for entry in config.wrappers:
        env = apply_wrappers(env, [frozen_opponent(entry, env, config.id)])
    return TeamReward(env) if config.reward == "team" else env


def _registered(config: EnvConfig) -> Env:
    try:
        return registry.make(config.id, **config.kwargs)
    except TypeError as error:
        if not config.kwargs:
            raise
        raise ConfigError(f"env.kwargs: {config.id} does not take {dict(config.kwargs)}: {error}") from None


def with_agent_axis(env: Env) -> Env:
    """The environment as the trainer wants it: actions of a Box in [−1, 1], and always an agent axis."""
    if isinstance(env.spec.action_space, Box):
        env = ScaleActions(env)
    return AgentAxis(env) if env.spec.num_agents is None else env


def make_plan(experiment: Experiment, env: Env) -> Plan:
    """The static sizes of the run."""
    train, evaluation = experiment.train, experiment.eval
    reset = env.reset_mode if train.reset == "auto" else train.reset
    if reset not in MODES:
        raise ConfigError(f"reset_mode of the environment must be {' or '.join(MODES)}, got {reset!r}")
    return Plan(
        num_envs=train.num_envs,
        rollout_length=train.rollout_length,
        iterations=experiment.iterations,
        points=evaluation.points,
        calls=experiment.calls,
        reset=reset,
        episodes=evaluation.episodes,
        cap=evaluation.cap or env.spec.episode_limit or DEFAULT_CAP,
        seed=evaluation.seed,
    )

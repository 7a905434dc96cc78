"""One experiment: what is trained, how, for how long and how it is measured. Frozen and hashable; no file is needed.

Defaults live here, in the algorithm's two dataclasses and in `NetworkConfig`; a YAML file holds what differs.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Mapping
from typing import Any

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.checks import ConfigError, check_choice, check_divides, check_size
from agentgym_jax.io.config import check
from agentgym_jax.io.config.algorithm_section import check_ranges, default_settings, float_leaves, name_of
from agentgym_jax.io.config.frozen import FrozenMap, freeze
from agentgym_jax.io.config.seeds import as_seeds
from agentgym_jax.io.search import space as search
from agentgym_jax.io.sweeps import varied as sweep
from agentgym_jax.io.sweeps.groups import groups
from agentgym_jax.models.config import NetworkConfig
from envs_jax import registry
from envs_jax.core import Env

LOGGERS = ("json", "tensorboard", "wandb", "console")
_MOST_CALLS = 32
_MOST_ITERATIONS = 2**27 - 1  # gradient steps are counted in int32, and an iteration may have many


def _set(config: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(config, name, value)


@dataclasses.dataclass(frozen=True)
class EnvConfig:
    """Which environment, and how it is built."""

    id: Any  # a registered id, see `agentgym envs`, or an `Env` object of your own
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)  # constructor arguments: sizes, time limits, names
    params: dict[str, Any] = dataclasses.field(default_factory=dict)  # its numbers that differ; one may be a schedule
    reward: str | None = None  # `team`: the sum over agents, given to all; None: as the environment declares
    wrappers: tuple[Any, ...] = ()  # names, or {name: ..., argument: value}, applied in order

    def __post_init__(self):
        if not isinstance(self.id, Env):
            _set(self, id=registry.resolve(self.id))
        elif self.kwargs:
            raise ConfigError("env.kwargs: needs an id; an Env object is built already")
        for name in ("kwargs", "params"):
            _set(self, **{name: FrozenMap(check.instance(f"env.{name}", getattr(self, name), Mapping))})
        if self.reward is not None:
            check_choice("env.reward", self.reward, ("team",))
        if not isinstance(self.wrappers, list | tuple):
            raise ConfigError(f"env.wrappers: must be a list, got {self.wrappers!r}")
        _set(self, wrappers=freeze(tuple(self.wrappers)))


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """The length and the shape of training."""

    total_steps: int = 500_000  # environment steps of one member, ≥ 1; rounded up to whole iterations and points
    num_envs: int = 4  # N ≥ 1 environments of one member (PureJaxRL's CartPole: 4)
    rollout_length: int = 128  # T ≥ 1 steps of each environment in an iteration (PureJaxRL's CartPole: 128)
    reset: str = "auto"  # fresh: a new start each; pool: drawn from prepared starts; auto: as the environment says
    calls: int | None = None  # calls of `advance` between two evaluations; None: the largest divisor ≤ 32
    population: str = "auto"  # members of a device: map (one after another), vmap; auto: map on CPU, vmap elsewhere
    block: int | None = None  # ≥ 1 members at a time, the others wait on the host; None: as many as the memory holds
    shards: int = 1  # ≥ 1 devices that share the environments of each member; must divide num_envs, and what a minibatch takes

    def __post_init__(self):
        for name in ("total_steps", "num_envs", "rollout_length"):
            _set(self, **{name: check.whole(f"train.{name}", getattr(self, name))})
        _set(self, shards=check.whole("train.shards", self.shards))
        check_divides("train.shards", self.shards, "train.num_envs", self.num_envs)
        check_size("train.num_envs · train.rollout_length", self.num_envs * self.rollout_length)
        check_choice("train.reset", self.reset, ("auto", "fresh", "pool"))
        check_choice("train.population", self.population, ("auto", "vmap", "map"))
        for name in ("calls", "block"):
            if getattr(self, name) is not None:
                _set(self, **{name: check.whole(f"train.{name}", getattr(self, name))})


@dataclasses.dataclass(frozen=True)
class EvalConfig:
    """How training is measured (Gorsane et al. 2022: 32 episodes an interval, ten times as many at the end)."""

    points: int = 10  # ≥ 1 evaluations, evenly over the run; the last is at its end
    episodes: int = 32  # E ≥ 1 episodes a point, greedy and sampled each; 10 E for the absolute metric
    cap: int | None = None  # steps after which an episode is cut and counted as such; None: the environment's limit, or 1000
    seed: int = 0  # of the evaluation's own keys, the same at every point
    params: tuple[Any, ...] = ()  # held-out numbers of the environment, a mapping each, dealt to the E environments in turn
    threshold: float | None = None  # the greedy return at which a seed counts as solved; changes nothing but the summary

    def __post_init__(self):
        for name in ("points", "episodes"):
            _set(self, **{name: check.whole(f"eval.{name}", getattr(self, name))})
        _set(self, seed=check.whole("eval.seed", self.seed, least=0))
        if self.cap is not None:
            _set(self, cap=check.whole("eval.cap", self.cap))
        if self.threshold is not None:
            _set(self, threshold=check.number("eval.threshold", self.threshold))
        if not isinstance(self.params, list | tuple) or not all(isinstance(each, Mapping) for each in self.params):
            raise ConfigError(f"eval.params: must be a list of mappings, [{{name: number}}, ...], got {self.params!r}")
        _set(self, params=freeze(tuple(self.params)))
        check_divides("eval.params (their number)", max(len(self.params), 1), "eval.episodes", self.episodes)
        for name in ("points", "episodes", "seed", "cap"):
            check_size(f"eval.{name}", getattr(self, name) or 0)


@dataclasses.dataclass(frozen=True)
class LogConfig:
    """What is written beside the records that every run has."""

    loggers: tuple[str, ...] = ("json",)  # of json (always there), tensorboard, wandb, console; the next two keys add theirs
    tensorboard: bool = False  # event files for TensorBoard, a folder a member
    wandb: str | None = None  # the Weights & Biases project to log to; needs the extra `wandb`
    checkpoint: Any = "point"  # point: at each evaluation; end: after the last; n ≥ 1: after every n calls, and at the end
    keep: int = 2  # ≥ 1 newest checkpoints stay, and the one with the best mean greedy return beside them

    def __post_init__(self):
        if not isinstance(self.loggers, list | tuple):
            raise ConfigError(f"log.loggers: must be a list of {', '.join(LOGGERS)}, got {self.loggers!r}")
        for name in self.loggers:
            check_choice("log.loggers", name, LOGGERS)
        _set(self, loggers=tuple(self.loggers))
        check.flag("log.tensorboard", self.tensorboard)
        if self.wandb is not None:
            check.instance("log.wandb", self.wandb, str)
        elif "wandb" in self.loggers:
            raise ConfigError("log.wandb: log.loggers names wandb, which needs a project; write log.wandb: my-project")
        if self.wandb is not None and importlib.util.find_spec("wandb") is None:
            raise ConfigError("log.wandb: the package wandb is not installed; pip install agentgym-jax[wandb]")
        if isinstance(self.checkpoint, str):
            check_choice("log.checkpoint", self.checkpoint, ("point", "end"))
        else:
            _set(self, checkpoint=check.whole("log.checkpoint", self.checkpoint))
        _set(self, keep=check.whole("log.keep", self.keep))

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the loggers that run, each once."""
        added = {"json": True, "tensorboard": self.tensorboard, "wandb": self.wandb is not None, "console": False}
        return tuple(name for name in LOGGERS if added[name] or name in self.loggers)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Everything that a run depends on.

    `env`: an id, an `Env` object or an `EnvConfig`. `algorithm`: a registered name or a config object, whose numbers come
    from `hyper` (None: that algorithm's defaults). `network`: a `NetworkConfig`, or {role: Model}. Raises ValueError for
    whatever cannot work and can be known without building the environment.
    """

    env: Any
    algorithm: Any = "ppo"
    hyper: Any = None
    network: Any = NetworkConfig()
    train: TrainConfig = TrainConfig()
    eval: EvalConfig = EvalConfig()
    log: LogConfig = LogConfig()
    seeds: Any = 1  # a count (0 … n − 1) or a list; each is the one root of all randomness of its member
    sweep: Any = FrozenMap()  # {"algorithm.learning_rate": [...]}: every combination is trained; `train` takes numbers alone
    search: Any = FrozenMap()  # {"algorithm.learning_rate": {"log_uniform": [...]}}: what `agentgym tune` may choose
    name: str = ""  # the registered name of `algorithm`; found by itself where it is empty

    def __post_init__(self):
        if not isinstance(self.env, EnvConfig):
            _set(self, env=EnvConfig(self.env))
        name, config = name_of(self.algorithm, self.name)
        default_config, default_hyper = default_settings(name)
        hyper = check.instance("hyper", default_hyper if self.hyper is None else self.hyper, get_algorithm(name).hyper)
        _set(self, name=name, algorithm=default_config if config is None else config, hyper=float_leaves(hyper))
        if isinstance(self.network, Mapping):
            _set(self, network=FrozenMap(self.network))
        else:
            check.instance("network", self.network, NetworkConfig)
        for field, kind in (("train", TrainConfig), ("eval", EvalConfig), ("log", LogConfig)):
            check.instance(field, getattr(self, field), kind)
        _set(self, seeds=as_seeds(self.seeds), sweep=sweep.checked(self.sweep, self))
        together = groups(self)  # builds, and so checks, the experiment of every group
        for point in self.points if together[0].experiment is self else ():
            check_ranges(sweep.at_point(self.hyper, point), get_algorithm(name).ranges)
        _set(self, search=search.checked(self.search, self))
        if self.iterations > _MOST_ITERATIONS:
            most = _MOST_ITERATIONS * self.train.num_envs * self.train.rollout_length
            raise ConfigError(f"train.total_steps: must be at most {most:,} with these sizes, got {self.train.total_steps:,}")
        self.calls  # noqa: B018  a number of calls that does not divide is refused here

    @property
    def points(self) -> tuple[FrozenMap, ...]:
        """The swept settings: every combination, the last key varying fastest; one empty setting without a sweep."""
        return sweep.points(self.sweep)

    @property
    def members(self) -> tuple[FrozenMap, ...]:
        """What tells the P members apart, in their order on the population axis: {"seed": …, swept key: …}."""
        return tuple(FrozenMap({"seed": seed, **point}) for point in self.points for seed in self.seeds)

    @property
    def iterations(self) -> int:
        """Iterations of the run: the budget in steps, rounded up to whole iterations and evaluation points."""
        steps = self.train.num_envs * self.train.rollout_length
        return self.eval.points * math.ceil(self.train.total_steps / (steps * self.eval.points))

    @property
    def calls(self) -> int:
        """Calls of `advance` between two evaluations."""
        between = self.iterations // self.eval.points
        if self.train.calls is None:
            return max(calls for calls in range(1, min(_MOST_CALLS, between) + 1) if between % calls == 0)
        check_divides("train.calls", self.train.calls, "iterations between two evaluations", between)
        return self.train.calls

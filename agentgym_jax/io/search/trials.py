"""The trials of a search: what they may be, who sits where in a population, and what is told of them."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.seeds import as_seeds
from agentgym_jax.io.config.settings import with_settings
from agentgym_jax.io.running.history import History
from agentgym_jax.io.search import space as search
from agentgym_jax.io.sweeps.groups import value_in_words
from agentgym_jax.io.sweeps.ranges import ZIP

_APART = 1_000_000  # between what is searched on and what is reported
PRUNERS = ("median", "halving", "none")


def optuna() -> Any:
    """The library that chooses, quietened. Raises ConfigError where it is not installed."""
    if importlib.util.find_spec("optuna") is None:
        raise ConfigError("tune: the package optuna is not installed; pip install agentgym-jax[tune]")
    import optuna as library

    library.logging.set_verbosity(library.logging.WARNING)
    return library


def for_validation(experiment: Experiment, seeds: Any, eval_seed: int | None) -> Experiment:
    """The experiment as its trials run: on seeds and evaluation episodes on which its result is never reported.

    `seeds`: a count, taken from 1,000,000 upwards, or a list. `eval_seed`: None adds 1,000,000 to `eval.seed`. Raises
    ConfigError where they overlap with those of the experiment.
    """
    own = as_seeds(seeds)
    if not isinstance(seeds, list | tuple):
        own = tuple(_APART + seed for seed in own)
    both = sorted(set(own) & set(experiment.seeds))
    if both:
        told = ", ".join(map(str, both))
        raise ConfigError(f"tune: seed {told} is among `seeds`, on which the result is reported; search on others")
    if eval_seed is None:
        eval_seed = (experiment.eval.seed + _APART) % 2**31
    if check.whole("tune: eval_seed", eval_seed, least=0) == experiment.eval.seed:
        raise ConfigError(f"tune: eval_seed {eval_seed} is `eval.seed`, on which the result is reported; search on another")
    evaluation = dataclasses.replace(experiment.eval, seed=eval_seed)
    return dataclasses.replace(experiment, search={}, seeds=own, eval=evaluation)


@dataclasses.dataclass(frozen=True)
class Space:
    """What is searched, for optuna and back."""

    search: Mapping[str, Any]
    static: tuple[str, ...]  # keys that a batch shares, since they change what is compiled
    traced: tuple[str, ...]  # keys that tell the members of a batch apart

    @staticmethod
    def of(experiment: Experiment) -> Space:
        numbers = {key for key, space in experiment.search.items() if search.is_number(key, space, experiment.hyper)}
        static, traced = (tuple(k for k in experiment.search if (k in numbers) is wanted) for wanted in (False, True))
        return Space(experiment.search, static, traced)

    def distributions(self, library: Any) -> dict[str, Any]:
        """{key: optuna's distribution}; what its database cannot hold goes by its text."""
        return {key: self._distribution(library.distributions, *space.items()) for key, space in self.search.items()}

    def _distribution(self, known: Any, item: tuple[str, Any]) -> Any:
        kind, values = item
        if kind == "choice":
            return known.CategoricalDistribution([_name(value) for value in values])
        make = known.IntDistribution if kind.endswith("int") else known.FloatDistribution
        return make(*values, log=kind.startswith("log_"))

    def settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """{key: value} of an experiment, from what optuna calls them."""
        found = {}
        for key, space in self.search.items():
            named = {_name(value): value for value in space.get("choice", ())}
            found[key] = named[params[key]] if named else params[key]
        return found

    def population(self, base: Experiment, batch: Sequence[Mapping[str, Any]]) -> Experiment:
        """The experiment whose swept points are these trials, which share what is static."""
        each = [self.settings(params) for params in batch]
        numbers = {key: tuple(settings[key] for settings in each) for key in self.traced}
        return with_settings(base, {key: each[0][key] for key in self.static}, sweep={ZIP: numbers} if numbers else {})


def _name(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else value_in_words(value)


class Batch:
    """The trials that are members of one population, from asking to telling."""

    def __init__(self, study: Any, trials: Sequence[Any], metric: str, seeds: int, points: int):
        """Each trial has `seeds` members, side by side; there are `points` evaluations."""
        self.study, self.trials, self.seeds, self.points = study, list(trials), seeds, points
        self.policy, _, self.name = metric.partition(".")
        self.pruned: set[int] = set()
        self._diverged: set[int] = set()

    def measured(self, history: History) -> bool:
        """Reports the newest evaluation to optuna, and tells it whom its pruner gives up; whether any trial is left.

        The last evaluation ends all trials, so nobody is pruned there.
        """
        point = len(history.evaluation_steps)
        results = history.evaluation()["sampled" if self.policy == "sampled" else "greedy"]
        self._diverged = {member // self.seeds for member in history.diverged}
        for index, score in enumerate(self._scores(results[self.name][:, -1])):
            if index in self.pruned:
                continue
            self.trials[index].report(score, point)
            if point < self.points and self.trials[index].should_prune():
                self.pruned.add(index)
                self._give_up(index)
        return len(self.pruned) < len(self.trials)

    def finished(self, run: Any) -> None:
        """Tells optuna the scores of all that are left."""
        last = run.absolute if self.policy == "absolute" else run.last_evaluation[self.policy]
        for index, score in enumerate(self._scores(last[self.name])):
            if index in self.pruned:
                continue
            if index in self._diverged or not math.isfinite(score):
                self.trials[index].set_user_attr("diverged", True)
                self._give_up(index)
            else:
                self.study.tell(self.trials[index], score)

    def _give_up(self, index: int) -> None:
        from optuna.trial import TrialState

        self.study.tell(self.trials[index], state=TrialState.PRUNED)

    def _scores(self, episodes: np.ndarray) -> list[float]:
        """The mean over the seeds of each trial, from episodes [trials · seeds, E]."""
        means = np.mean(episodes, axis=-1, dtype=np.float64).reshape(len(self.trials), self.seeds)
        return np.mean(means, axis=-1).tolist()


def ask(study: Any, space: Space, count: int, waiting: list[dict[str, Any]]) -> list[Any]:
    """`count` new trials that agree in everything static, which is drawn for the first. Takes from `waiting` first."""
    distributions, trials = space.distributions(optuna()), []
    for _ in range(count):
        fixed = waiting.pop(0) if waiting else {key: trials[0].params[key] for key in space.static} if trials else {}
        if fixed:
            study.enqueue_trial(fixed)
        trials.append(study.ask(distributions))
    return trials


def left_behind(study: Any) -> list[dict[str, Any]]:
    """Gives up the trials that a stopped process left half done, and returns what they were, to be tried again."""
    from optuna.trial import TrialState

    while study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        study.tell(study.ask(), state=TrialState.FAIL)
    running = study.get_trials(states=(TrialState.RUNNING,))
    for trial in running:
        study.tell(trial.number, state=TrialState.FAIL)
    complete = max((len(trial.params) for trial in running), default=0)
    return [trial.params for trial in running if len(trial.params) == complete]


def make_sampler(library: Any, seed: int) -> Any:
    """TPE (Bergstra et al. 2011), which takes trials that still run for bad ones, so that those of a batch differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", library.exceptions.ExperimentalWarning)
        return library.samplers.TPESampler(seed=seed, constant_liar=True)


def make_pruner(library: Any, name: str) -> Any:
    """`median`: worse than the median of finished trials at the same evaluation; `halving`: successive halving."""
    pruners = library.pruners
    made = {"median": pruners.MedianPruner, "halving": pruners.SuccessiveHalvingPruner, "none": pruners.NopPruner}
    return made[name]()

"""Learners of Q-values with tiny networks, of every kind, and batches for them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.algorithms import qlearning
from agentgym_jax.algorithms.qlearning import QConfig, QHyper
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.types import Batch, Clock, Sizes
from tests.algorithms.value_windows import MIXED, models_of, spec_of, windows
from tests.support import compiled

CLOCK = Clock(jnp.int32(2), jnp.int32(10))
COUNT, WINDOW = 12, 6  # windows of a batch, steps of a recurrent one
# Plain gradient descent by 1, so that a step is the gradient; priorities that are the errors.
PLAIN = QHyper(learning_rate=1.0, gamma=0.9, tau=0.25, reward_scale=1.5, max_grad_norm=1e9, momentum=0.0)
PLAIN = PLAIN.replace(priority_exponent=1.0, priority_epsilon=0.0, importance_exponent=0.7)


@dataclasses.dataclass(frozen=True)
class Case:
    """Who learns what; `config` as pairs."""

    agents: int = 2
    reward: str = "individual"
    recurrent: bool = False
    config: tuple[tuple[str, Any], ...] = ()

    @property
    def settings(self) -> QConfig:
        sizes = {"learning_starts": 1, "capacity": 8 * COUNT * WINDOW, "batch_size": COUNT}
        usual = {"prioritised": True, "optimiser": "sgd", "target_period": 1}
        return QConfig(**(MIXED | sizes | usual | dict(self.config)))

    @property
    def length(self) -> int:
        return WINDOW if self.recurrent else self.settings.n_steps


def case(agents: int = 2, reward: str = "individual", recurrent: bool = False, **config: Any) -> Case:
    """A case with these settings of `QConfig`."""
    return Case(agents, reward, recurrent, tuple(config.items()))


CASES = {
    "dqn": case(agents=1),
    "one network, 3 steps, huber": case(agents=1, double=False, n_steps=3, loss="huber"),
    "iql, individual, 3 steps": case(agents=3, n_steps=3),
    "iql, team, 3 steps": case(agents=3, reward="team", n_steps=3),
    "vdn": case(reward="team", mixer="sum"),
    "qmix, 3 steps": case(agents=3, reward="team", mixer="hypernet", n_steps=3),
    "qmix, one network": case(reward="team", mixer="hypernet", double=False),
    "recurrent, individual": case(recurrent=True),
    "recurrent, team, 3 steps, burn-in": case(reward="team", recurrent=True, n_steps=3, burn_in=2),
    "recurrent vdn, one network": case(reward="team", recurrent=True, mixer="sum", double=False),
    "recurrent qmix, 2 steps, burn-in": case(reward="team", recurrent=True, mixer="hypernet", n_steps=2, burn_in=2),
}


def algorithm_of(case: Case, **kwargs: Any):
    """The learner of a case with tiny networks."""
    models = models_of(case.settings.mixer, case.agents, case.recurrent)
    sizes = Sizes(num_envs=COUNT, rollout_length=WINDOW)
    return qlearning.make(spec_of(case.agents, case.reward), case.settings, models, sizes, **kwargs)


def moved(params: Any, seed: int) -> Any:
    """Other parameters, no bias at its kink at zero."""
    draw = np.random.default_rng(seed)
    return jax.tree.map(lambda x: x + jnp.float32(draw.normal(size=x.shape)), params)


@functools.cache
def learning(case: Case):
    """A compiled `learn`, (learner, hyper, batch) -> learner, scalars, feedback; and a learner whose target lags behind."""
    algorithm = algorithm_of(case)

    @compiled
    def begin(key):
        learner = algorithm.init(key, as_hyper(PLAIN))
        return learner.replace(params=moved(learner.params, 1), target=moved(learner.params, 2))

    learn = compiled(lambda learner, hyper, batch: algorithm.learn(learner, hyper, batch, jax.random.key(9), CLOCK))
    return learn, begin(jax.random.key(0))


def batch_of(case: Case, survivor: bool = False) -> Batch:
    """What its memory might draw."""
    batch = windows(case.length, COUNT, case.agents, case.reward, case.recurrent, survivor)
    left = {} if case.settings.mixer == "hypernet" else {"world": None, "next_world": None}
    return dataclasses.replace(batch, steps=batch.steps.replace(action_mask=None, **left))  # what is recorded

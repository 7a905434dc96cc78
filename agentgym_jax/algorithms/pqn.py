"""Parallelised Q-network: Q-learning from the newest rollout of many environments, without replay or target network.

PQN (Gallici et al. 2024, arXiv:2407.04811) minimises ½ (G − Q(o, a))² over several epochs of minibatches, where G are
λ-returns of the greedy policy: G = r + γ ((1 − λ) max_a Q(o', a) + λ G'), computed once before the epochs. Layer norm
(`network.layer_norm`) takes the place of the target network. With a mixer it learns one value of a team (PQN-VDN with the sum).

Details that matter:
  * each step's own next observation is valued, so a time limit is bootstrapped and no episode's end leaks;
  * illegal actions are taken neither at random nor greedily, and no target's maximum sees them;
  * recurrent networks learn from whole windows, from the hidden state that acted.

Logged: loss, td_error (mean |δ|), q_mean, target_mean, explained_variance, epsilon, grad_norm, learning_rate.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.algorithms import optim
from agentgym_jax.algorithms.action_values import MIXERS, ActionValues, action_values
from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.algorithms.group_steps import GroupSteps
from agentgym_jax.algorithms.minibatches import Minibatches, check_passes, make_minibatches
from agentgym_jax.checks import check_choice, check_whole
from agentgym_jax.memory.latest import latest
from agentgym_jax.models.base import apply_next, is_recurrent
from agentgym_jax.ops import losses, returns
from agentgym_jax.ops.schedules import Schedule, resolve
from agentgym_jax.ops.teams import newcomers
from agentgym_jax.types import Across, Batch, Clock, Sizes
from envs_jax.core import EnvSpec


@dataclasses.dataclass(frozen=True)
class PQNConfig:
    """What is static: each field changes the compiled program."""

    mixer: str = "none"  # none | sum (PQN-VDN) | hypernet
    mixer_embed: int = 32  # ≥ 1, width of QMIX's mixing network
    mixer_hidden: int = 64  # ≥ 0, width of its hypernetworks, 0: linear
    epochs: int = 4  # passes over each rollout, ≥ 1 (PQN's CartPole: 4)
    minibatches: int = 16  # parts of each pass, ≥ 1; must divide the rows that are shuffled (PQN's CartPole: 16)
    minibatch_by: str = "auto"  # step: rows of T·N; environment: whole windows of N; auto: environment when recurrent
    permutation: str = "affine"  # affine: fast; exact: uniformly random, by sorting
    optimiser: str = "radam"  # adam, adamw, radam, sgd or rmsprop (PQN: radam)
    group_steps: Any = dataclasses.field(default_factory=dict)  # {group: {learning_rate: factor, period: k}}

    def __post_init__(self):
        check_passes(self)
        check_choice("algorithm.mixer", self.mixer, MIXERS)
        check_choice("algorithm.optimiser", self.optimiser, optim.NAMES)
        check_whole("algorithm.mixer_embed", self.mixer_embed)
        check_whole("algorithm.mixer_hidden", self.mixer_hidden, least=0)
        object.__setattr__(self, "group_steps", GroupSteps(self.group_steps))


@struct.dataclass
class PQNHyper:
    """What is only a number: traced, so sweeping it compiles nothing. Each may be a schedule."""

    learning_rate: Any = 5e-4  # ≥ 0 (PQN's MinAtar)
    gamma: Any = 0.99  # discount, 0 … 1
    trace_decay: Any = 0.65  # λ, 0 … 1 (PQN's MinAtar: 0.65)
    epsilon: Any = Schedule(1.0, 0.05, over=0.1)  # probability of a random action, 0 … 1 (PQN's MinAtar)
    reward_scale: Any = 1.0  # multiplies rewards in the loss (PQN's CartPole: 0.1)
    max_grad_norm: Any = 10.0  # global gradient norm, ≥ 0 (PQN: 10)
    optimiser_epsilon: Any = 1e-8  # of adam, adamw, radam and rmsprop
    weight_decay: Any = 1e-4  # of adamw
    momentum: Any = 0.9  # of sgd, 0 … 1


RANGES = optim.RANGES | {
    "gamma": (0.0, 1.0),
    "trace_decay": (0.0, 1.0),
    "epsilon": (0.0, 1.0),
}

_RECORD = "observation action reward discount alive next_alive last reset next_action_mask next_observation"


@struct.dataclass
class PQNLearner:
    params: Any  # {network, mixer}
    optimiser: optim.OptimiserState


@struct.dataclass
class Rows:
    """What the loss reads of every step, [T, N, ...] before minibatches are gathered."""

    observation: Any
    reset: jax.Array
    action: jax.Array
    alive: jax.Array
    world: Any
    target: jax.Array  # [T, N, A'], A' = 1 for a mixed team
    weight: jax.Array  # float32 [T, N, A']


@dataclasses.dataclass(frozen=True)
class PQN:
    """The static parts of one learner; its methods are the pure functions of the `Algorithm`."""

    config: PQNConfig
    values: ActionValues
    minibatches: Minibatches
    across: Across

    def init(self, key: jax.Array, hyper: PQNHyper) -> PQNLearner:
        params = self.values.init(key)
        return PQNLearner(params, optim.init(self.config.optimiser, resolve(hyper, jnp.float32(0.0)), params))

    def learn(self, learner: PQNLearner, hyper: PQNHyper, batch: Batch, key: jax.Array, clock: Clock):
        now = resolve(hyper, clock.progress).replace(learning_rate=hyper.learning_rate)
        rows, values = self._rows(learner.params, now, batch)

        def minibatch(learner, index):
            rows_, carry = self.minibatches.gather(rows, batch.carry, index)
            gradient, scalars = jax.grad(self._loss, has_aux=True)(learner.params, rows_, carry)
            params, optimiser, more = optim.apply_gradient(
                self.config.optimiser,
                now,
                learner.optimiser,
                learner.params,
                self.across.mean(gradient),
                clock,
                self.minibatches.steps,
                self.config.group_steps,
            )
            return PQNLearner(params, optimiser), scalars | more

        learner, scalars = jax.lax.scan(minibatch, learner, self.minibatches.order(key))
        scalars = {name: jnp.mean(x) for name, x in scalars.items()} | {"epsilon": now.epsilon}
        scalars["explained_variance"] = losses.explained_variance(values, rows.target, rows.weight, self.across)
        return learner, scalars, ()

    def _rows(self, params: Any, hyper: PQNHyper, batch: Batch) -> tuple[Rows, jax.Array]:
        """The whole rollout with its λ-returns, and the values of what was done, by the parameters that acted."""
        steps, network = batch.steps, self.values.model
        values, after = network.apply(params["network"], batch.carry, steps.observation, steps.reset)
        new = newcomers(steps.alive, steps.discount, steps.next_alive)
        following = apply_next(network, params["network"], after, steps.next_observation, new)
        best = self.values.best(
            params, following, following, steps.next_action_mask, steps.next_alive, steps.next_world
        )
        paid = self.values.outcome(steps)
        scaled = (hyper.reward_scale * paid.reward, hyper.gamma * paid.discount)
        target = returns.lambda_returns(*scaled, best, paid.cut, hyper.trace_decay)
        seen = (steps.observation, steps.reset, steps.action, steps.alive, steps.world)
        chosen = self.values.chosen(params, values, steps.action, steps.alive, steps.world)
        return Rows(*seen, target=target, weight=paid.weight), chosen

    def _loss(self, params: Any, rows: Rows, carry: Any):
        values, _ = self.values.model.apply(params["network"], carry, rows.observation, rows.reset)
        value = self.values.chosen(params, values, rows.action, rows.alive, rows.world)
        error = jnp.where(rows.weight > 0, value - rows.target, 0.0)  # what dead rows hold may be anything
        loss = losses.weighted_mean(0.5 * jnp.square(error), rows.weight, self.across)
        scalars = {
            "loss": loss,
            "td_error": losses.weighted_mean(jnp.abs(error), rows.weight, self.across),
            "q_mean": losses.weighted_mean(value, rows.weight, self.across),
            "target_mean": losses.weighted_mean(rows.target, rows.weight, self.across),
        }
        return loss, scalars


def make(spec: EnvSpec, config: PQNConfig, models: dict[str, Any], sizes: Sizes, across: Across = Across()) -> Algorithm:
    """PQN or PQN-VDN as an `Algorithm`.

    Args:
      spec: with an agent axis. models: {network, mixer} as `action_values.networks` gives them.

    Raises:
      ConfigError: sizes do not divide, or a setting is for another kind of network.
    """
    values = action_values(spec, config, models)
    config.group_steps.check(spec, values.init)
    learner = PQN(config, values, make_minibatches(config, is_recurrent(values.model), sizes), across)
    record = frozenset(_RECORD.split()) | ({"world", "next_world"} if values.needs_world else frozenset())
    return Algorithm(learner.init, values.carry, values.behave, learner.learn, latest(), record)

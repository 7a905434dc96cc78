"""Q-learning from replay, for one agent or many.

DQN (Mnih et al. 2015) minimises (r + γ max_a Q'(o', a) − Q(o, a))², with Q' a slowly moving copy of Q. Double learning (van
Hasselt et al. 2016, arXiv:1509.06461) lets Q choose the action that Q' values; dueling networks (`network.dueling`), n-step
returns and prioritised replay (Schaul et al. 2016, arXiv:1511.05952) are options. With several agents it is IQL without a
mixer, VDN (Sunehag et al. 2018) with the sum and QMIX (Rashid et al. 2018) with a monotonic hypernetwork. A recurrent network
learns from whole recorded windows, from the hidden state that acted (Kapturowski et al. 2019, R2D2).

Details that matter:
  * the value of a step's own next observation bootstraps, through a time limit too, never a shift over an episode's end;
  * illegal actions are taken neither at random nor greedily, and no target's maximum sees them;
  * the target network includes the mixer;
  * a dead agent's row weighs nothing; its team goes on (see `action_values`).

Logged: loss, td_error (mean |δ|), q_mean, target_mean, epsilon, buffer_fill, grad_norm, learning_rate.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.algorithms import optim
from agentgym_jax.algorithms.action_values import MIXERS, ActionValues, action_values
from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.algorithms.group_steps import GroupSteps
from agentgym_jax.checks import ConfigError, check_choice, check_divides, check_flag, check_whole
from agentgym_jax.memory.replay import replay, slots_of
from agentgym_jax.models.base import apply_next, is_recurrent
from agentgym_jax.ops import losses, returns
from agentgym_jax.ops.schedules import Schedule, resolve
from agentgym_jax.ops.teams import newcomers
from agentgym_jax.types import Across, Batch, Clock, Sizes, Transition
from envs_jax.core import EnvSpec


@dataclasses.dataclass(frozen=True)
class QConfig:
    """What is static: each field changes the compiled program."""

    mixer: str = "none"  # none (DQN, IQL) | sum (VDN) | hypernet (QMIX)
    mixer_embed: int = 32  # ≥ 1, width of QMIX's mixing network (QMIX, JaxMARL: 32)
    mixer_hidden: int = 64  # ≥ 0, width of its hypernetworks, 0: linear (EPyMARL: 64)
    double: bool = True  # the online network chooses the action that the target network values (JaxMARL, rejax: true)
    n_steps: int = 1  # ≥ 1 rewards of a target before it bootstraps
    prioritised: bool = False  # draw windows in proportion to their errors
    capacity: int = 10_240  # environment steps in the memory; a multiple of num_envs · rollout_length (PureJaxRL: 10,000)
    batch_size: int = 128  # ≥ 1 windows of a gradient step (PureJaxRL: 128)
    updates: int = 1  # ≥ 1 gradient steps of an iteration (PureJaxRL: 1)
    learning_starts: int = 10_000  # ≥ 1 environment steps before the first gradient step (PureJaxRL: 10,000)
    target_period: int = 50  # ≥ 1 gradient steps between two moves of the target network by `tau` (PureJaxRL: 500 steps = 50)
    burn_in: int = 0  # ≥ 0 leading steps of a recurrent window that only set the hidden state
    loss: str = "squared"  # squared | huber
    optimiser: str = "adam"  # adam, adamw, radam, sgd or rmsprop
    group_steps: Any = dataclasses.field(default_factory=dict)  # {group: {learning_rate: factor, period: k}}

    def __post_init__(self):
        check_choice("algorithm.mixer", self.mixer, MIXERS)
        check_choice("algorithm.loss", self.loss, ("squared", "huber"))
        check_choice("algorithm.optimiser", self.optimiser, optim.NAMES)
        for name in ("mixer_embed", "n_steps", "capacity", "batch_size", "updates", "learning_starts", "target_period"):
            check_whole(f"algorithm.{name}", getattr(self, name))
        for name in ("mixer_hidden", "burn_in"):
            check_whole(f"algorithm.{name}", getattr(self, name), least=0)
        for name in ("double", "prioritised"):
            check_flag(f"algorithm.{name}", getattr(self, name))
        object.__setattr__(self, "group_steps", GroupSteps(self.group_steps))


@struct.dataclass
class QHyper:
    """What is only a number: traced, so sweeping it compiles nothing. Each may be a schedule."""

    learning_rate: Any = 2.5e-4  # ≥ 0 (PureJaxRL)
    gamma: Any = 0.99  # discount, 0 … 1
    epsilon: Any = Schedule(1.0, 0.05, over=0.5)  # probability of a random action, 0 … 1 (PureJaxRL: over half of the run)
    tau: Any = 1.0  # how far the target network moves, 0 … 1; 1 copies
    reward_scale: Any = 1.0  # multiplies rewards in the loss (JaxMARL's SMAX: 10)
    max_grad_norm: Any = 10.0  # global gradient norm, ≥ 0 (JaxMARL: 10)
    priority_exponent: Any = 0.6  # α of prioritised replay, 0 … 1
    priority_epsilon: Any = 1e-3  # ≥ 0, added to errors, so that none is never drawn again
    importance_exponent: Any = Schedule(0.4, 1.0)  # β of prioritised replay, 0 … 1
    optimiser_epsilon: Any = 1e-5  # of adam, adamw, radam and rmsprop
    weight_decay: Any = 1e-4  # of adamw
    momentum: Any = 0.9  # of sgd, 0 … 1


RANGES = optim.RANGES | {
    "gamma": (0.0, 1.0),
    "epsilon": (0.0, 1.0),
    "tau": (0.0, 1.0),
    "priority_exponent": (0.0, 1.0),
    "priority_epsilon": (0.0, math.inf),
    "importance_exponent": (0.0, 1.0),
}

_RECORD = "observation action reward discount alive next_alive last reset next_action_mask next_observation"
_MOST = 0.9  # a window's priority: this much of its largest error, the rest of its mean (R2D2, section 2.3)


@struct.dataclass
class QLearner:
    params: Any  # {network, mixer}
    target: Any  # the same, behind
    optimiser: optim.OptimiserState


@dataclasses.dataclass(frozen=True)
class QLearning:
    """The static parts of one learner; its methods are the pure functions of the `Algorithm`."""

    config: QConfig
    values: ActionValues
    slots: int  # rollouts that the memory holds
    warmup: int
    recurrent: bool
    across: Across

    def init(self, key: jax.Array, hyper: QHyper) -> QLearner:
        params = self.values.init(key)
        optimiser = optim.init(self.config.optimiser, resolve(hyper, jnp.float32(0.0)), params)
        return QLearner(params, jax.tree.map(jnp.copy, params), optimiser)

    def learn(self, learner: QLearner, hyper: QHyper, batch: Batch, key: jax.Array, clock: Clock):
        del key
        now = resolve(hyper, clock.progress).replace(learning_rate=hyper.learning_rate)
        weight = self._importance(now, batch)
        gradient, (scalars, errors) = jax.grad(self._loss, has_aux=True)(learner.params, learner.target, now, batch, weight)
        params, optimiser, more = optim.apply_gradient(
            self.config.optimiser,
            now,
            learner.optimiser,
            learner.params,
            self.across.mean(gradient),
            clock,
            self.config.updates,
            self.config.group_steps,
        )
        scalars |= more | {"epsilon": now.epsilon, "buffer_fill": self._fill(clock)}
        target = self._moved(learner.target, params, now.tau, optimiser.count)
        feedback = jnp.power(errors + now.priority_epsilon, now.priority_exponent) if self.config.prioritised else ()
        return QLearner(params, target, optimiser), scalars, feedback

    def _fill(self, clock: Clock) -> jax.Array:
        return jnp.minimum((clock.iteration + 1 + self.warmup) / jnp.float32(self.slots), 1.0)

    def _importance(self, hyper: QHyper, batch: Batch) -> jax.Array:
        """Weights [B] against the bias of prioritised draws: probability^−β over the largest."""
        if not self.config.prioritised:
            return jnp.ones(batch.steps.last.shape[1], jnp.float32)
        weight = jnp.power(batch.probability, -hyper.importance_exponent)
        return weight / self.across.max(jnp.max(weight))

    def _moved(self, target: Any, params: Any, tau: Any, count: jax.Array) -> Any:
        """The target network: every `target_period` gradient steps it moves by τ towards the online one."""
        part = jnp.where(count % self.config.target_period == 0, tau, 0.0)
        # Both forms agree where τ is 1, but only `where` copies to the bit.
        return jax.tree.map(lambda old, new: jnp.where(part == 1.0, new, old + part * (new - old)), target, params)

    def _loss(self, params: Any, target: Any, hyper: QHyper, batch: Batch, importance: jax.Array):
        values, fixed, steps = self.values, jax.lax.stop_gradient, batch.steps
        carry = target_carry = batch.carry
        if self.config.burn_in:
            head, steps = (jax.tree.map(lambda x, part=part: x[part], steps) for part in self._parts)
            carry, target_carry = (fixed(self._reached(own, batch.carry, head)) for own in (params, target))
        rows = steps.last.shape[0] if self.recurrent else 1  # a feed-forward window teaches its first row alone
        learnt = jax.tree.map(lambda x: x[:rows], steps)
        action_values, after = values.model.apply(params["network"], carry, learnt.observation, learnt.reset)
        value = values.chosen(params, action_values, learnt.action, learnt.alive, learnt.world)
        goal = fixed(self._target(params, target, hyper, steps, after, target_carry, rows))
        weight = values.outcome(learnt).weight
        error = jnp.where(weight > 0, value - goal, 0.0)  # what dead rows hold may be anything
        each = jnp.square(error) / 2 if self.config.loss == "squared" else losses.huber(error)
        loss = losses.weighted_mean(each * importance[None, :, None], weight, self.across)
        size = fixed(jnp.abs(error))
        scalars = {
            "loss": loss,
            "td_error": losses.weighted_mean(size, weight, self.across),
            "q_mean": losses.weighted_mean(value, weight, self.across),
            "target_mean": losses.weighted_mean(goal, weight, self.across),
        }
        return loss, (scalars, _priority(size, weight))

    @property
    def _parts(self) -> tuple[slice, slice]:
        """The burn-in of a window and what follows it."""
        return slice(None, self.config.burn_in), slice(self.config.burn_in, None)

    def _reached(self, params: Any, carry: Any, steps: Transition) -> Any:
        """The hidden state behind these steps."""
        _, after = self.values.model.apply(params["network"], carry, steps.observation, steps.reset)
        return jax.tree.map(lambda x: x[-1], after)

    def _target(self, params, target, hyper: QHyper, steps: Transition, after: Any, target_carry: Any, rows: int) -> jax.Array:
        """n-step targets of the first `rows` rows, [S, B, A']; those near the window's end have fewer steps."""
        paid, length = self.values.outcome(steps), steps.last.shape[0]
        start = jnp.arange(rows, dtype=jnp.int32)
        at = jnp.minimum(start[None, :] + jnp.arange(self.config.n_steps)[:, None], length - 1)
        cut = paid.cut.at[-1].set(True)  # nothing is known of what follows the window
        gathered = (hyper.reward_scale * paid.reward[at], hyper.gamma * paid.discount[at], cut[at])
        value, weight, last = returns.n_step(*gathered)
        row = jnp.minimum(start[:, None, None] + last, length - 1)  # whose next observation bootstraps
        return value + weight * self._following(params, target, steps, after, target_carry, row)

    def _following(self, params, target, steps: Transition, after: Any, target_carry: Any, row: jax.Array) -> jax.Array:
        """The values [S, B, A'] of the next observations of rows [S, B, A']."""
        network, double = self.values.model, self.config.double
        seen = (steps.next_observation, steps.next_action_mask, steps.next_alive, steps.next_world)
        new = newcomers(steps.alive, steps.discount, steps.next_alive)
        # Where all agents bootstrap from the same row it alone goes through feed-forward networks. Independent learners of a
        # team may have rows of their own, and a dead one's value is the mean of its mates at the same time.
        early = not self.recurrent and (self.values.mixer is not None or self.values.spec.reward != "team")
        if early:
            seen, new = jax.tree.map(lambda x: _rows(x, row), (seen, new))
        observation, mask, alive, world = seen
        if self.recurrent:
            _, target_after = network.apply(target["network"], target_carry, steps.observation, steps.reset)
            theirs = apply_next(network, target["network"], target_after, observation, new)
            by = apply_next(network, params["network"], after, observation, new) if double else theirs
        else:
            theirs, _ = network.apply(target["network"], target_carry, observation, new)
            by = network.apply(params["network"], target_carry, observation, new)[0] if double else theirs
        best = self.values.best(target, theirs, by, mask, alive, world)
        return best if early else _rows(best, row)


def _rows(x: jax.Array, row: jax.Array) -> jax.Array:
    """x [L, B, A, ...] at rows [S, B, A]; rows [S, B, 1] are for all agents, and for a world [L, B, W]."""
    index = jnp.broadcast_to(row, (*row.shape[:2], x.shape[2]))
    index = index.reshape(*index.shape, *[1] * (x.ndim - index.ndim))
    return jnp.take_along_axis(x, index, axis=0)


def _priority(size: jax.Array, weight: jax.Array) -> jax.Array:
    """One error a window, [B], from |δ| [S, B, A'] of the rows that weigh."""
    size = jnp.where(weight > 0, size, 0.0)
    mean = jnp.sum(size, axis=(0, 2)) / jnp.maximum(jnp.sum(weight, axis=(0, 2)), 1.0)
    return _MOST * jnp.max(size, axis=(0, 2)) + (1.0 - _MOST) * mean


def make(spec: EnvSpec, config: QConfig, models: dict[str, Any], sizes: Sizes, across: Across = Across()) -> Algorithm:
    """DQN, IQL, VDN or QMIX as an `Algorithm`.

    Args:
      spec: with an agent axis. models: {network, mixer} as `action_values.networks` gives them.

    Raises:
      ConfigError: sizes do not fit together, or a setting is for another kind of network.
    """
    values = action_values(spec, config, models)
    config.group_steps.check(spec, values.init)
    recurrent = is_recurrent(values.model)
    if config.burn_in and not recurrent:
        raise ConfigError("algorithm.burn_in: only a recurrent network has a state to warm up; set network.torso: gru")
    if recurrent and config.n_steps > sizes.rollout_length - config.burn_in:
        raise ConfigError(
            f"algorithm.n_steps: {config.n_steps} is more than the {sizes.rollout_length - config.burn_in} steps of a window"
            " (train.rollout_length less algorithm.burn_in)"
        )
    check_divides("train.shards", across.size, "algorithm.batch_size", config.batch_size)
    everywhere = Sizes(sizes.num_envs * across.size, sizes.rollout_length)
    slots = slots_of(everywhere, config.capacity)
    first = max(
        -(-config.learning_starts // (everywhere.num_envs * sizes.rollout_length)), -(-config.n_steps // sizes.rollout_length)
    )
    memory = replay(
        sizes,
        slots * sizes.num_envs * sizes.rollout_length,
        config.batch_size // across.size,
        length=config.n_steps,
        whole=recurrent,
        burn_in=config.burn_in,
        prioritised=config.prioritised,
        warmup=first - 1,
        updates=config.updates,
    )
    learner = QLearning(config, values, slots, first - 1, recurrent, across)
    record = frozenset(_RECORD.split()) | ({"world", "next_world"} if values.needs_world else frozenset())
    return Algorithm(learner.init, values.carry, values.behave, learner.learn, memory, record, warmup=first - 1)

"""Proximal policy optimisation, for one agent or many.

PPO (Schulman et al. 2017, arXiv:1707.06347) maximises E[min(ρ A, clip(ρ, 1 ± ε) A)] with ρ = π(a|o) / π_old(a|o), advantages by
GAE, a clipped value loss and an entropy bonus, over several epochs of minibatches. With several agents it is IPPO (de Witt
et al. 2020, arXiv:2011.09533) when each critic sees its agent's observation, and MAPPO (Yu et al. 2022, arXiv:2103.01955)
when one central critic sees the world state.

Details that matter (Huang et al. 2022, "The 37 implementation details of PPO"):
  * values and next values come from one pass after the rollout; the value of a step's own next observation bootstraps
    through a time limit, so no episode's end leaks into another's return;
  * advantages are standardised in each minibatch over living agents; a dead agent's row weighs nothing;
  * a team's value is one number: dead rows take the mean of the living (see `ops.teams`);
  * gradients are clipped by global norm, Adam has ε = 1e-5, weights start orthogonal;
  * recurrent networks are trained on whole windows from the carry that acted.

Logged: policy_loss, value_loss, entropy, approx_kl (Schulman's k3 estimate), clip_fraction, explained_variance, value_mean,
advantage_std, grad_norm, learning_rate, and first_ratio_error: max |ρ − 1| on the first minibatch, 0 up to rounding when the
loss sees what the policy saw.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.algorithms import optim
from agentgym_jax.algorithms.advantages import ADVANTAGES, Advantages
from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.algorithms.group_steps import GroupSteps
from agentgym_jax.algorithms.minibatches import Minibatches, check_passes, make_minibatches
from agentgym_jax.algorithms.normalise import normalised
from agentgym_jax.checks import ConfigError, check_choice, check_flag
from agentgym_jax.memory.latest import latest
from agentgym_jax.models.actor_critic import Outputs, central_values, local_values, separate, shared
from agentgym_jax.models.base import Model, apply_next, apply_once, is_recurrent
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.networks import policy_model, policy_value_model, value_model
from agentgym_jax.ops import losses
from agentgym_jax.ops.distributions import Distribution, distribution
from agentgym_jax.ops.schedules import resolve
from agentgym_jax.ops.teams import newcomers, rows_with_value, team_values
from agentgym_jax.types import Across, Batch, Clock, Sizes, Transition
from envs_jax.core import Box, EnvSpec


@dataclasses.dataclass(frozen=True)
class PPOConfig:
    """What is static: each field changes the compiled program."""

    epochs: int = 4  # passes over each rollout, ≥ 1 (PureJaxRL: 4)
    minibatches: int = 4  # parts of each pass, ≥ 1; must divide the rows that are shuffled (PureJaxRL: 4)
    minibatch_by: str = "auto"  # step: rows of T·N; environment: whole windows of N; auto: environment when recurrent
    permutation: str = "affine"  # affine: fast; exact: uniformly random, by sorting
    distribution: str = "normal"  # of continuous actions: normal (clipped to the box) or tanh_normal (squashed into it)
    critic: str = "local"  # local: an agent's observation (IPPO); central: the world state (MAPPO)
    advantages: str = "gae"  # or a registered name
    normalise_advantages: bool = True  # standardise them in each minibatch
    clip_value: bool = True  # clip the value's move by the same ε
    optimiser: str = "adam"  # adam, adamw, radam, sgd or rmsprop
    normalise_observations: bool = False  # by running mean and variance of what was seen
    normalise_rewards: bool = False  # by the running deviation of the discounted return
    group_steps: Any = dataclasses.field(default_factory=dict)  # {group: {learning_rate: factor, period: k}}

    def __post_init__(self):
        check_passes(self)
        check_choice("algorithm.distribution", self.distribution, ("normal", "tanh_normal"))
        check_choice("algorithm.critic", self.critic, ("local", "central"))
        check_choice("algorithm.advantages", self.advantages, ADVANTAGES)
        check_choice("algorithm.optimiser", self.optimiser, optim.NAMES)
        for name in ("normalise_advantages", "clip_value", "normalise_observations", "normalise_rewards"):
            check_flag(f"algorithm.{name}", getattr(self, name))
        object.__setattr__(self, "group_steps", GroupSteps(self.group_steps))


@struct.dataclass
class PPOHyper:
    """What is only a number: traced, so sweeping it compiles nothing. Each may be a schedule."""

    learning_rate: Any = 2.5e-4  # ≥ 0 (PureJaxRL)
    gamma: Any = 0.99  # discount, 0 … 1
    gae_lambda: Any = 0.95  # trace decay of GAE, 0 … 1
    clip: Any = 0.2  # ε of ratio and value, ≥ 0
    entropy: Any = 0.01  # weight of the entropy bonus, ≥ 0
    value: Any = 0.5  # weight of the value loss, ≥ 0
    max_grad_norm: Any = 0.5  # global gradient norm, ≥ 0
    optimiser_epsilon: Any = 1e-5  # of adam, adamw, radam and rmsprop
    weight_decay: Any = 1e-4  # of adamw
    momentum: Any = 0.9  # of sgd, 0 … 1


# What each number may be, ends included; checked before anything compiles, never inside a program.
RANGES = optim.RANGES | {
    "gamma": (0.0, 1.0),
    "gae_lambda": (0.0, 1.0),
    "clip": (0.0, math.inf),
    "entropy": (0.0, math.inf),
    "value": (0.0, math.inf),
}


@struct.dataclass
class PPOLearner:
    params: Any
    optimiser: optim.OptimiserState


@struct.dataclass
class Rows:
    """What the loss reads of every step, [T, N, A, ...] before minibatches are gathered."""

    inputs: Any  # {observation, world}
    reset: jax.Array
    action_mask: Any
    sample: jax.Array
    log_prob: jax.Array
    old_value: jax.Array
    advantage: jax.Array
    target: jax.Array
    weight: jax.Array  # float32: 1 where the agent could act
    value_weight: jax.Array  # float32: 1 where the row teaches a value


RECORD = frozenset(
    "observation action reward discount alive next_alive last reset action_mask next_observation extras".split()
)


def no_auxiliary(outputs: Outputs, rows: Rows, hyper: Any) -> tuple[Any, dict[str, Any]]:
    """The auxiliary loss of plain PPO: none. A replacement returns a loss [] and scalars to log."""
    del outputs, rows, hyper
    return 0.0, {}


@dataclasses.dataclass(frozen=True)
class PPO:
    """The static parts of one PPO; its methods are the pure functions of the `Algorithm`."""

    spec: EnvSpec
    config: PPOConfig
    model: Model  # actor and critic as one, see models/actor_critic.py
    distribution: Distribution
    across: Across
    advantages: Advantages
    auxiliary: Callable[..., tuple[Any, dict[str, Any]]]
    minibatches: Minibatches

    # ---- acting

    def init(self, key: jax.Array, hyper: PPOHyper) -> PPOLearner:
        params = self.model.init(key)
        return PPOLearner(params, optim.init(self.config.optimiser, resolve(hyper, jnp.float32(0.0)), params))

    def carry(self, batch_shape: tuple[int, ...]) -> Any:
        return self.model.carry((*batch_shape, self.spec.agents))

    def act(self, learner, hyper, carry, timestep, world, reset, key, clock, explore):
        del hyper, clock
        inputs = {"observation": timestep.observation, "world": world}
        outputs, carry = apply_once(self.model, learner.params, carry, inputs, reset)
        policy = self.distribution.mask(outputs.policy, timestep.action_mask)
        sample = self.distribution.sample(policy, key) if explore else self.distribution.mode(policy)
        sample = jax.lax.stop_gradient(sample)  # the environment's answer is data, not a function of the parameters
        extras = {"log_prob": self.distribution.log_prob(policy, sample)}
        if isinstance(self.spec.action_space, Box):
            extras["sample"] = sample  # before clipping or squashing, so that its density never has to be inverted
        return carry, self.distribution.action(sample), extras

    # ---- learning

    def learn(self, learner: PPOLearner, hyper: PPOHyper, batch: Batch, key: jax.Array, clock: Clock):
        now = resolve(hyper, clock.progress).replace(learning_rate=hyper.learning_rate)
        rows = self._rows(learner, now, batch)
        key_order, key_loss = jax.random.split(key)
        order = self.minibatches.order(key_order)

        def minibatch(learner, inputs):
            index, key = inputs
            rows_, carry = self.minibatches.gather(rows, batch.carry, index)
            gradient, scalars = jax.grad(self._loss, has_aux=True)(learner.params, now, rows_, carry, key)
            params, optimiser, more = optim.apply_gradient(
                self.config.optimiser,
                now,
                learner.optimiser,
                learner.params,
                self.across.mean(gradient),
                clock,
                len(order),
                self.config.group_steps,
            )
            return PPOLearner(params, optimiser), scalars | more

        learner, scalars = jax.lax.scan(minibatch, learner, (order, jax.random.split(key_loss, len(order))))
        return learner, self._report(rows, scalars), ()

    def _rows(self, learner: PPOLearner, hyper: PPOHyper, batch: Batch) -> Rows:
        """Values, advantages and targets of the whole rollout, by the parameters that acted."""
        steps = batch.steps
        team = self.spec.reward == "team"
        inputs = {"observation": steps.observation, "world": self._world(steps.world)}
        following = {"observation": steps.next_observation, "world": self._world(steps.next_world)}
        outputs, carries = self.model.apply(learner.params, batch.carry, inputs, steps.reset)
        values = outputs.value
        new = newcomers(steps.alive, steps.discount, steps.next_alive)
        next_values = apply_next(self.model, learner.params, carries, following, new).value
        if team:
            steps = steps.replace(discount=jnp.broadcast_to(jnp.max(steps.discount, -1, keepdims=True), steps.discount.shape))
            if values.ndim == steps.reward.ndim:
                values, next_values = team_values(values, steps.alive), team_values(next_values, steps.next_alive)
        policy = self.distribution.mask(outputs.policy, steps.action_mask)
        advantage, target = self.advantages(steps, values, next_values, policy, hyper)
        return Rows(
            inputs=inputs,
            reset=steps.reset,
            action_mask=steps.action_mask,
            sample=self._sample(steps),
            log_prob=steps.extras["log_prob"],
            old_value=self._chosen(outputs.value, self._sample(steps)),  # a row's own: the loss compares it with itself
            advantage=advantage,
            target=target,
            weight=jnp.where(steps.alive, 1.0, 0.0),
            value_weight=jnp.where(rows_with_value(steps.alive) if team else steps.alive, 1.0, 0.0),
        )

    def _world(self, world: Any) -> Any:
        return () if world is None else world

    def _chosen(self, values: jax.Array, sample: jax.Array) -> jax.Array:
        """Values [..., A]; those of the chosen actions where the critic values every action."""
        if values.ndim == 3:
            return values
        return jnp.take_along_axis(values, sample[..., None], axis=-1)[..., 0]

    def _sample(self, steps: Transition) -> jax.Array:
        return steps.extras["sample"] if isinstance(self.spec.action_space, Box) else steps.action

    def _loss(self, params, hyper, rows: Rows, carry, key):
        outputs, _ = self.model.apply(params, carry, rows.inputs, rows.reset)
        policy = self.distribution.mask(outputs.policy, rows.action_mask)
        log_ratio = self.distribution.log_prob(policy, rows.sample) - rows.log_prob
        log_ratio = jnp.where(rows.weight > 0, log_ratio, 0.0)  # a dead row's ratio may overflow, and 0 · inf is NaN
        advantage = rows.advantage
        if self.config.normalise_advantages:
            advantage = losses.standardise(advantage, rows.weight, self.across)

        def mean(x):
            return losses.weighted_mean(x, rows.weight, self.across)

        policy_loss = mean(losses.clipped_surrogate(log_ratio, advantage, hyper.clip))
        clip = hyper.clip if self.config.clip_value else jnp.float32(jnp.inf)
        value = self._chosen(outputs.value, rows.sample)
        value_errors = losses.clipped_value_loss(value, rows.old_value, rows.target, clip)
        value_loss = losses.weighted_mean(value_errors, rows.value_weight, self.across)
        entropy = mean(self.distribution.entropy(policy, key))
        auxiliary, more = self.auxiliary(outputs, rows, hyper)
        ratio = jnp.exp(log_ratio)
        scalars = {
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "entropy": entropy,
            "approx_kl": mean(ratio - 1.0 - log_ratio),
            "clip_fraction": mean(jnp.where(jnp.abs(ratio - 1.0) > hyper.clip, 1.0, 0.0)),
            "ratio_error": self.across.max(jax.lax.stop_gradient(jnp.max(jnp.abs(ratio - 1.0) * rows.weight))),
        }
        return policy_loss + hyper.value * value_loss - hyper.entropy * entropy + auxiliary, scalars | more

    def _report(self, rows: Rows, scalars: dict[str, jax.Array]) -> dict[str, jax.Array]:
        """Means over gradient steps, and what is known of the whole rollout; float32 [] each."""
        first = scalars.pop("ratio_error")[0]
        scalars = {name: jnp.mean(x) for name, x in scalars.items()}
        value, weight = rows.old_value, rows.value_weight
        scalars["explained_variance"] = losses.explained_variance(value, rows.target, weight, self.across)
        scalars["value_mean"] = losses.weighted_mean(value, weight, self.across)
        mean = losses.weighted_mean(rows.advantage, rows.weight, self.across)
        spread = losses.weighted_mean(jnp.square(rows.advantage - mean), rows.weight, self.across)
        return scalars | {"advantage_std": jnp.sqrt(spread + 1e-16), "first_ratio_error": first}


def networks(network: NetworkConfig, spec: EnvSpec, config: PPOConfig) -> dict[str, Model]:
    """The default models: {actor, critic}, or {network} with a shared trunk.

    Models of one's own keep these contracts: actor gives distribution parameters from observations [T, B, A, ...], critic
    gives values [T, B, A] from observations, or from worlds [T, B, 1, W] when it is central.
    """
    if network.trunk == "shared":
        return {"network": policy_value_model(network, spec)}
    if config.critic == "local":
        return {"actor": policy_model(network, spec), "critic": local_values(value_model(network, spec, 1))}
    team = spec.reward == "team"
    critic = value_model(network, spec, 1 if team else spec.agents, central=True)
    return {"actor": policy_model(network, spec), "critic": central_values(critic, spec.agents, team)}


def make(
    spec: EnvSpec,
    config: PPOConfig,
    models: dict[str, Model],
    sizes: Sizes,
    across: Across = Across(),
    advantages: Advantages | None = None,
    auxiliary: Callable[..., tuple[Any, dict[str, Any]]] = no_auxiliary,
) -> Algorithm:
    """PPO, IPPO or MAPPO as an `Algorithm`.

    Args:
      spec: with an agent axis (`num_agents` a number). models: as `networks` gives them.
      advantages: replaces the function that `config.advantages` names. auxiliary: see `no_auxiliary`.

    Raises:
      ConfigError: sizes do not divide, or critic and networks do not fit together.
    """
    central = config.critic == "central"
    if "network" in models and central:
        raise ConfigError("network.trunk: a shared trunk sees one agent's observation; a central critic needs `separate`")
    model = shared(models["network"]) if "network" in models else separate(models["actor"], models["critic"], central)
    ppo = PPO(
        spec=spec,
        config=config,
        model=model,
        distribution=distribution(spec.action_space, config.distribution, spec.own_actions),
        across=across,
        advantages=advantages or ADVANTAGES[config.advantages],
        auxiliary=auxiliary,
        minibatches=make_minibatches(config, is_recurrent(model), sizes),
    )
    config.group_steps.check(spec, model.init)
    record = RECORD | ({"world", "next_world"} if central else frozenset())
    algorithm = Algorithm(ppo.init, ppo.carry, ppo.act, ppo.learn, latest(), record)
    if config.normalise_observations or config.normalise_rewards:
        return normalised(algorithm, spec, config.normalise_observations, config.normalise_rewards, across=across)
    return algorithm

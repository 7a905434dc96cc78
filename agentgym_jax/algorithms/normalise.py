"""Running normalisation around any algorithm, in the manner of an optax chain.

The statistics that acted are the ones learned with: `observe` changes them last, so a policy ratio is 1 on the first minibatch.
Only per-feature moments live in the learner. The running discounted return of reward normalisation (Engstrom et al. 2020,
"Implementation matters", section 3) lives in the carry, and advances over the recorded rewards, since `act` never sees the
reward that ends an episode. At least one iteration of warm-up fills the statistics before the first decision rests on them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.models.networks import world_space
from agentgym_jax.ops.schedules import value_at
from agentgym_jax.ops.statistics import Moments, no_moments, standard_deviation, update_moments
from agentgym_jax.types import Across, Trajectory, Transition
from envs_jax.core import Box, EnvSpec

LIMIT = 10.0  # normalised observations and rewards are clipped to ±LIMIT, as in OpenAI's baselines


@struct.dataclass
class NormalisedLearner:
    inner: Any
    observation: Moments | None  # of one agent's features, shared by all agents; [A, F] where they form groups
    world: Moments | None  # None where the algorithm never looks at the world state
    reward: Moments | None  # of the discounted return


@struct.dataclass
class NormalisedCarry:
    inner: Any
    discounted_return: jax.Array  # float32 [N, A]


def standardised(x: Any, moments: Moments | None) -> Any:
    """(x − mean) / deviation, clipped; `x` itself where there are no moments or nothing was recorded."""
    if moments is None or x is None or isinstance(x, tuple):
        return x
    axes = (1,) * (x.ndim - moments.mean.ndim)
    mean, deviation = (m.reshape(axes + m.shape) for m in (moments.mean, standard_deviation(moments)))
    return jnp.clip((x - mean) / deviation, -LIMIT, LIMIT)


def normalised(
    algorithm: Algorithm, spec: EnvSpec, observations: bool = True, rewards: bool = True, across: Across = Across()
) -> Algorithm:
    """The algorithm with observations (and world states) and rewards normalised by running statistics.

    Args:
      spec: with an agent axis. observations, rewards: which of the two. The carry is never empty afterwards.

    Raises:
      ConfigError: observations are not one array of numbers.
    """
    if observations and not isinstance(spec.observation_space, Box):
        raise ConfigError(f"algorithm.normalise_observations: needs a Box observation, not {spec.observation_space}")
    wrapped = _Normalised(algorithm, spec, observations, rewards, across)
    return algorithm._replace(
        init=wrapped.init,
        carry=wrapped.carry,
        act=wrapped.act,
        learn=wrapped.learn,
        observe=wrapped.observe,
        record=algorithm.record | {"observation", "reward", "alive", "reset"},
        warmup=max(algorithm.warmup, 1),
    )


class _Normalised:
    def __init__(self, algorithm: Algorithm, spec: EnvSpec, observations: bool, rewards: bool, across: Across):
        self.inner, self.spec, self.across = algorithm, spec, across
        self.observations, self.rewards = observations, rewards
        self.has_world = "world" in algorithm.record

    def init(self, key, hyper) -> NormalisedLearner:
        agents = (self.spec.agents,) if self.spec.groups else ()  # one column means something else to each group
        observation = no_moments((*agents, *self.spec.observation_space.shape)) if self.observations else None
        world = no_moments(world_space(self.spec).shape) if self.observations and self.has_world else None
        reward = no_moments(()) if self.rewards else None
        return NormalisedLearner(self.inner.init(key, hyper), observation, world, reward)

    def carry(self, batch_shape) -> NormalisedCarry:
        zeros = jnp.zeros((*batch_shape, self.spec.agents), jnp.float32)
        return NormalisedCarry(self.inner.carry(batch_shape), zeros)

    def act(self, learner, hyper, carry, timestep, world, reset, key, clock, explore):
        timestep = timestep.replace(observation=standardised(timestep.observation, learner.observation))
        world = standardised(world, learner.world)
        inner, action, extras = self.inner.act(
            learner.inner, hyper, carry.inner, timestep, world, reset, key, clock, explore
        )
        return carry.replace(inner=inner), action, extras

    def learn(self, learner, hyper, batch, key, clock):
        carry = batch.carry.inner if isinstance(batch.carry, NormalisedCarry) else batch.carry
        batch = batch.replace(steps=self._steps(learner, batch.steps), carry=carry)
        inner, scalars, feedback = self.inner.learn(learner.inner, hyper, batch, key, clock)
        if learner.reward is not None:
            scalars = scalars | {"reward_deviation": standard_deviation(learner.reward)}
        return learner.replace(inner=inner), scalars, feedback

    def _steps(self, learner: NormalisedLearner, steps: Transition) -> Transition:
        reward = steps.reward
        if learner.reward is not None:
            reward = jnp.clip(reward / standard_deviation(learner.reward), -LIMIT, LIMIT)
        return steps.replace(
            observation=standardised(steps.observation, learner.observation),
            next_observation=standardised(steps.next_observation, learner.observation),
            world=standardised(steps.world, learner.world),
            next_world=standardised(steps.next_world, learner.world),
            reward=reward,
        )

    def observe(self, learner, hyper, trajectory: Trajectory, carry: NormalisedCarry, clock):
        """Takes the rollout's raw numbers into the statistics, dead agents' rows left out."""
        steps = trajectory.steps
        weight = jnp.where(steps.alive, 1.0, 0.0)
        inner_trajectory = trajectory.replace(carry=trajectory.carry.inner)
        inner, inner_carry = self.inner.observe(learner.inner, hyper, inner_trajectory, carry.inner, clock)
        learner, carry = learner.replace(inner=inner), carry.replace(inner=inner_carry)
        if self.observations:
            update = partial(update_moments, across=self.across)
            update = jax.vmap(update, in_axes=(0, 2, 2)) if self.spec.groups else update
            learner = learner.replace(observation=update(learner.observation, steps.observation, weight))
        if self.observations and self.has_world:
            anybody = jnp.max(weight, axis=-1)
            learner = learner.replace(world=update_moments(learner.world, steps.world, anybody, self.across))
        if self.rewards:
            gamma = value_at(hyper.gamma, clock.progress)
            running, returns = _discounted_returns(trajectory.carry.discounted_return, steps, gamma)
            carry = carry.replace(discounted_return=running)
            learner = learner.replace(reward=update_moments(learner.reward, returns, weight, self.across))
        return learner, carry


def _discounted_returns(before: jax.Array, steps: Transition, gamma: Any) -> tuple[jax.Array, jax.Array]:
    """The running return G ← r + γ G of every step, cut where an agent starts: the last one, and all [T, N, A]."""

    def step(running, inputs):
        reward, start = inputs
        running = reward + gamma * jnp.where(start, 0.0, running)
        return running, running

    return jax.lax.scan(step, before, (steps.reward, steps.reset))

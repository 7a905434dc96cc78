"""A trained policy outside the trainer, in the environment's own shapes and units."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.io.running.assemble import Assembly
from agentgym_jax.types import Clock
from envs_jax.core import TimeStep
from envs_jax.spaces import Box


@dataclasses.dataclass(frozen=True)
class Policy:
    """One member's policy: pure, to be jitted and vmapped as you like, and equal to training's own acting.

    carry = policy.init(batch_shape=())
    carry, action = policy(carry, observation, key, action_mask=None, reset=False)

    Observations and actions are those of the experiment's environment with its wrappers: [*batch, ...] for one agent,
    [*batch, A, ...] for several; actions of a Box are in the environment's own range. `reset` (bool, or [*batch]) says that
    `observation` starts an episode.
    """

    assembly: Assembly
    learner: Any
    hyper: Any
    greedy: bool = True

    def init(self, batch_shape: tuple[int, ...] = ()) -> Any:
        """The memory of agents that have seen nothing, leaves [*batch, A, ...]; without leaves when feed-forward."""
        return self.assembly.algorithm.carry(tuple(batch_shape))

    def __call__(
        self, carry: Any, observation: Any, key: jax.Array, action_mask: Any = None, reset: Any = False
    ) -> tuple[Any, jax.Array]:
        """The memory after this observation, and the action. `key` is read when the policy is not greedy."""
        spec = self.assembly.env.spec
        single, agents = spec.num_agents is None, self.assembly.spec.num_agents
        space = jax.tree.leaves(spec.observation_space)[0]
        batch = jax.tree.leaves(observation)[0].shape
        batch = batch[: len(batch) - len(space.shape) - (0 if single else 1)]
        rows = math.prod(batch)

        def trainer(x: Any) -> jax.Array:
            x = jnp.asarray(x)
            x = x.reshape(rows, *x.shape[len(batch) :])
            return x[:, None] if single else x

        ones = jnp.ones((rows, agents), jnp.float32)
        timestep = TimeStep(
            observation=jax.tree.map(trainer, observation),
            reward=jnp.zeros_like(ones),
            discount=ones,
            alive=ones > 0,
            last=jnp.zeros(rows, bool),
            action_mask=() if action_mask is None or isinstance(action_mask, tuple) else trainer(action_mask),
            metrics={name: jnp.zeros(rows, jnp.float32) for name, _ in spec.metrics},
        )
        starts = jnp.broadcast_to(jnp.broadcast_to(jnp.asarray(reset), batch).reshape(rows)[:, None], (rows, agents))
        flat = jax.tree.map(lambda x: x.reshape(rows, *x.shape[len(batch) :]), carry)
        clock = Clock(jnp.int32(1), jnp.int32(1))  # the end of training
        flat, action, _ = self.assembly.algorithm.act(
            self.learner, self.hyper, flat, timestep, (), starts, key, clock, not self.greedy
        )
        action = self._own_units(action[:, 0] if single else action)
        carry = jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), flat)
        return carry, action.reshape(*batch, *action.shape[1:])

    def _own_units(self, action: jax.Array) -> jax.Array:
        """[−1, 1] to the bounds of the environment's Box, as the trainer's wrapper maps it."""
        space = self.assembly.env.spec.action_space
        if not isinstance(space, Box):
            return action
        low, high = (jnp.broadcast_to(jnp.asarray(bound, jnp.float32), action.shape) for bound in space.bounds())
        action = jnp.clip(action, -1.0, 1.0)
        return low * (0.5 - 0.5 * action) + high * (0.5 + 0.5 * action)

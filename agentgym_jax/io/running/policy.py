"""A trained policy outside the trainer, in the environment's own shapes and units."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.io.running.assemble import Assembly
from agentgym_jax.types import Clock
from envs_jax.core import EnvSpec, TimeStep
from envs_jax.spaces import Box, mask_size


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
        """The memory after this observation, and the action. `key` is read when the policy is not greedy.

        Raises ValueError for an observation or a mask of another shape than the environment's.
        """
        spec = self.assembly.env.spec
        single, agents = spec.num_agents is None, self.assembly.spec.num_agents
        batch = _batch_of(spec, observation, action_mask)
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


def _batch_of(spec: EnvSpec, observation: Any, action_mask: Any) -> tuple[int, ...]:
    """The axes that lead an observation, and its mask if there is one. Raises ValueError where others follow than in `spec`."""
    agents = () if spec.num_agents is None else (spec.num_agents,)
    own = [(*agents, *space.shape) for space in jax.tree.leaves(spec.observation_space)]
    seen = [jnp.shape(x) for x in jax.tree.leaves(observation)]
    batch = seen[0][: max(len(seen[0]) - len(own[0]), 0)] if seen else ()
    if seen != [(*batch, *shape) for shape in own]:
        raise ValueError(f"policy: observation is {_shapes(seen)}, the environment shows {_shapes(own)} behind axes of a batch")
    legal = (*batch, *agents, mask_size(spec.action_space))
    if action_mask is not None and not isinstance(action_mask, tuple) and jnp.shape(action_mask) != legal:
        raise ValueError(f"policy: action_mask is {list(jnp.shape(action_mask))}, to this observation belongs {list(legal)}")
    return batch


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes) or "without arrays"

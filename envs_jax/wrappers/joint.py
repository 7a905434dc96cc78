"""Several agents as one: a single policy that sees what all see and decides for all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.names import unknown
from envs_jax.spaces import Box, Discrete, MultiDiscrete, Space
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.columns import joined

_FORMS = ("factorised", "product")
_LARGEST = 4096  # actions of one joint choice: a policy has a logit for each


class Joint(Wrapper):
    """A single-agent environment in place of one with several agents: control is fully centralised.

    It observes all agents' observations side by side on their last axis, without the padding of groups, or with `world` the
    state of the world. `actions` is `factorised`, a MultiDiscrete with all agents' heads one after the other, or `product`, one
    Discrete of all combinations in which the first head changes fastest. Boxes are laid side by side. An agent without any
    legal action, a dead one for example, is given action 0 and does not restrict the others.

    The reward is the team's, or the sum of individual ones. The discount is 0 only at a true end. Metrics are unchanged. Raises
    ValueError for single-agent environments, an unknown form of actions, more than 4096 of them, a Box with `product`, `world`
    where none is declared, and observations that are trees or actions that are no vector.
    """

    def __init__(self, env: Env, actions: str = "factorised", world: bool = False):
        spec = env.spec
        if spec.num_agents is None:
            raise ValueError("joint needs an environment with several agents; this one is single-agent")
        if actions not in _FORMS:
            raise unknown("actions of wrapper joint", actions, _FORMS)
        if not isinstance(world, bool):
            raise ValueError(f"joint.world must be true or false, got {world!r}")
        if world and spec.world_space is None:
            raise ValueError("joint.world: this environment declares no world state; leave it out to see all observations")
        self._world, self._product = world, actions == "product"
        self._seen = _each(spec, "observation_space")
        own = _each(spec, "action_space")
        self._sizes = tuple(size for space in own for size in _parts(space))
        self._place = _places(own, spec.action_space)
        self._entries = _entries(own, spec.action_space)
        observation: Any = spec.world_space if world else _side_by_side(self._seen)
        super().__init__(
            env,
            dataclasses.replace(
                spec,
                observation_space=observation,
                action_space=self._action_space(own),
                num_agents=None,
                groups=(),
                reward="individual",
            ),
        )

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        state, reward = self.env.advance(key, state, self._of_agents(action), params)
        return state, reward[0] if self.env.spec.reward == "team" else jnp.sum(reward)

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        seen = self.env.world(state, params) if self._world else self._together(timestep.observation)
        return timestep.replace(
            observation=seen,
            reward=jnp.float32(0),
            discount=1.0 - timestep.terminated.astype(jnp.float32),
            alive=jnp.bool_(True),
            action_mask=() if isinstance(timestep.action_mask, tuple) else self._legal(timestep.action_mask),
        )

    def _action_space(self, own: Sequence[Space]) -> Space:
        if isinstance(own[0], Box):
            if self._product:
                raise ValueError(f"joint.actions: product needs Discrete actions, got {own[0]}; use factorised")
            return joined(own)
        if not self._product:
            return MultiDiscrete(self._sizes)
        if math.prod(self._sizes) > _LARGEST:
            raise ValueError(
                f"joint.actions: product would have {math.prod(self._sizes):,} actions, more than {_LARGEST}; use factorised"
            )
        return Discrete(math.prod(self._sizes))

    def _together(self, observation: jax.Array) -> jax.Array:
        """All agents' own columns side by side; whole numbers [A] are so already."""
        if isinstance(self._seen[0], Discrete):
            return observation
        rows = [observation[agent, ..., : space.shape[-1]] for agent, space in enumerate(self._seen)]
        return jnp.concatenate(rows, axis=-1)

    def _of_agents(self, action: jax.Array) -> jax.Array:
        """The joint action as the environment wants it, [A, ...]; what an agent does not have is 0."""
        if self._product:
            strides = np.cumprod([1, *self._sizes[:-1]])
            action = jnp.stack([action // int(s) % n for s, n in zip(strides, self._sizes, strict=True)])
        spread = jnp.where(self._place < 0, jnp.zeros((), action.dtype), action[np.maximum(self._place, 0)])
        return spread.reshape(len(self._seen), *self.env.spec.action_space.shape)

    def _legal(self, mask: jax.Array) -> jax.Array:
        """The agents' masks [A, n] as one: heads side by side, or every combination of what is legal."""
        heads = jnp.split(mask.reshape(-1)[self._entries], np.cumsum(self._sizes)[:-1])
        heads = [head | ((jnp.arange(head.size) == 0) & ~jnp.any(head)) for head in heads]
        if not self._product:
            return jnp.concatenate(heads)
        legal = heads[0]
        for head in heads[1:]:
            legal = (head[:, None] & legal[None, :]).reshape(-1)
        return legal


def _each(spec: EnvSpec, kind: str) -> list[Space]:
    """The own space of every agent: that of its group, or the one that all have."""
    if not spec.groups:
        return [getattr(spec, kind)] * spec.agents
    return [getattr(group, kind) for group in spec.groups for _ in range(group.size)]


def _parts(space: Space) -> tuple[int, ...]:
    """The choices of every head of an action space; a 1 for every dimension of a Box."""
    if isinstance(space, Box):
        if len(space.shape) != 1:
            raise ValueError(f"joint needs actions that are one vector, got {space}")
        return (1,) * space.shape[0]
    return (space.n,) if isinstance(space, Discrete) else space.nvec


def _places(own: Sequence[Space], widest: Space) -> np.ndarray:
    """int [A, heads]: where in the joint action an agent's heads or dimensions stand, −1 for those that it does not have."""
    counts = [len(_parts(space)) for space in own]
    rows = np.full((len(own), len(_parts(widest))), -1)
    for agent, (start, count) in enumerate(zip(np.cumsum([0, *counts[:-1]]), counts, strict=True)):
        rows[agent, :count] = np.arange(start, start + count)
    return rows


def _entries(own: Sequence[Space], widest: Space) -> np.ndarray:
    """Which entries of all agents' masks [A · n] belong to heads that the agents have, in order."""
    starts = np.cumsum([0, *_parts(widest)])
    heads = [(agent, head, n) for agent, space in enumerate(own) for head, n in enumerate(_parts(space))]
    return np.concatenate([agent * starts[-1] + starts[head] + np.arange(n) for agent, head, n in heads])


def _side_by_side(spaces: Sequence[Any]) -> Space:
    """The space of all agents' observations together."""
    if all(isinstance(space, Box) and space.shape for space in spaces):
        return joined(spaces)
    if all(isinstance(space, Discrete | MultiDiscrete) for space in spaces):
        return MultiDiscrete(tuple(n for space in spaces for n in _parts(space)))
    raise ValueError(f"joint needs observations that are one array, got {spaces[0]}; apply `flatten` before it")

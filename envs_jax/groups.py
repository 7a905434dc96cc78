"""Some groups of an environment's agents as they are among themselves: what they see at their own width, and how they act."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import EnvSpec, TimeStep
from envs_jax.names import unknown
from envs_jax.scripts import Script
from envs_jax.spaces import Box, Discrete, MultiDiscrete, Space


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """The agents of some groups of `whole`.

    `spec` is that of an environment with these agents alone: its spaces are the widest among them, and it has no groups when
    one is left. `agents` are their places on the whole agent axis, int [k].
    """

    whole: EnvSpec
    spec: EnvSpec
    agents: np.ndarray

    def view(self, timestep: TimeStep) -> TimeStep:
        """The whole environment's TimeStep as these agents see it, [k, ...] at their own width."""
        rows = {name: getattr(timestep, name)[self.agents] for name in ("reward", "discount", "alive")}
        seen = jax.tree.map(lambda x, space: _cut(x[self.agents], space), timestep.observation, self.spec.observation_space)
        mask = timestep.action_mask
        if not isinstance(mask, tuple):
            mask = mask[self.agents][:, self._entries()]
        return timestep.replace(observation=seen, action_mask=mask, **rows)

    def actions(self, action: jax.Array) -> jax.Array:
        """All agents' action [A, ...] as these agents' own, [k, ...]."""
        return _cut(action[self.agents], self.spec.action_space)

    def into(self, action: jax.Array, others: jax.Array) -> jax.Array:
        """`others` [A, ...] with these agents' action [k, ...]; what of the widest action they do not have is 0."""
        missing = [(0, 0), *((0, all_ - own) for all_, own in zip(others.shape[1:], action.shape[1:], strict=True))]
        return others.at[self.agents].set(jnp.pad(action, missing))

    def follow(
        self, script: Script, carry: Any, key: jax.Array, timestep: TimeStep, reset: jax.Array, strength: Any
    ) -> tuple[Any, jax.Array]:
        """A step of a script that plays these agents: its memory afterwards, and their action [k, ...].

        `timestep` and `reset` [A] are the whole environment's. Each agent does what the script says with the probability
        `strength`, else a uniformly random legal action.
        """
        key_script, key_random, key_strength = jax.random.split(key, 3)
        own = self.view(timestep)
        seen, starts = (timestep, reset) if script.sees_all else (own, reset[self.agents])
        carry, chosen = script.act(carry, key_script, seen.observation, seen.action_mask, starts)
        by_script = jax.random.bernoulli(key_strength, strength, self.agents.shape)
        by_script = by_script.reshape(-1, *(1 for _ in chosen.shape[1:]))
        return carry, jnp.where(by_script, chosen, self.spec.sample_actions(key_random, own))

    def _entries(self) -> np.ndarray:
        """Which entries of a mask of the widest action are of their own actions, in order."""
        sizes, widest = (_heads(spec.action_space) for spec in (self.spec, self.whole))
        starts = np.cumsum([0, *widest])
        return np.concatenate([start + np.arange(n) for start, n in zip(starts, sizes, strict=False)])


def part_of(spec: EnvSpec, names: Sequence[str]) -> Part:
    """The agents of these groups. Raises ValueError, with the nearest, for a group that `spec` does not have."""
    if missing := [name for name in names if name not in (group.name for group in spec.groups)]:
        raise unknown("group", missing[0], [group.name for group in spec.groups])
    groups = tuple(group for group in spec.groups if group.name in names)
    owner = np.repeat([group.name for group in spec.groups], [group.size for group in spec.groups])
    agents = np.flatnonzero(np.isin(owner, list(names)))
    observations = [group.observation_space for group in groups]
    own = dataclasses.replace(
        spec,
        num_agents=len(agents),
        observation_space=jax.tree.map(lambda whole, *each: _widest(each, whole), spec.observation_space, *observations),
        action_space=_widest([group.action_space for group in groups], spec.action_space),
        groups=groups if len(groups) > 1 else (),
    )
    return Part(spec, own, agents)


def uniform(part: Part) -> Script:
    """The script of uniformly random legal actions for these agents."""

    def act(carry: Any, key: jax.Array, observation: Any, action_mask: Any, reset: jax.Array) -> tuple[Any, jax.Array]:
        zeros = jnp.zeros(reset.shape, jnp.float32)
        timestep = TimeStep(observation, zeros, zeros, zeros > 0, jnp.bool_(False), action_mask)
        return carry, part.spec.sample_actions(key, timestep)

    return Script(lambda k: (), act)


def _heads(space: Space) -> tuple[int, ...]:
    return (space.n,) if isinstance(space, Discrete) else space.nvec if isinstance(space, MultiDiscrete) else ()


def _cut(x: jax.Array, space: Space) -> jax.Array:
    """Rows [k, ...] without what is padded behind `space` on the last axis."""
    return x[..., : space.shape[-1]] if space.shape else x


def _widest(spaces: Sequence[Space], whole: Space) -> Space:
    """The space of agents with these spaces, of which `whole` is the widest in all the environment; alone, their own."""
    if len(set(spaces)) == 1:
        return spaces[0]
    if isinstance(whole, Discrete):
        return Discrete(max(sum(_heads(space)) for space in spaces))
    if isinstance(whole, MultiDiscrete):
        heads = max((_heads(space) for space in spaces), key=len)
        return MultiDiscrete(tuple(max(_heads(s)[i] for s in spaces if i < len(_heads(s))) for i in range(len(heads))))
    width = max(space.shape[-1] for space in spaces)
    low, high = (bound[..., :width] for bound in whole.bounds())
    return Box(low, high, low.shape, whole.dtype)

"""The one interface of every environment: pure functions of a key, a state, an action and parameters.

Who writes an environment writes three functions:

    initial(key, params) -> state                          a start of an episode
    advance(key, state, action, params) -> state, reward   the rules
    observe(state, params) -> TimeStep                     what a state shows, with reward 0

and gets `reset`, `transition` and `step`. A single-agent environment has its natural shapes, without an agent axis; a
multi-agent one has a leading axis A on everything in its TimeStep but `last` and `metrics`. Nothing resets by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs_jax.scripts import Script
from envs_jax.spaces import Box, Discrete, MultiDiscrete, Space


@struct.dataclass
class TimeStep:
    """What agents see of one moment. Multi-agent: axis A leads on all but `last` and `metrics`."""

    observation: Any  # any tree; the default networks want one array
    reward: jax.Array  # float32 [] or [A]: paid by the transition that led here, 0 at a start
    discount: jax.Array  # float32 [] or [A]: 0 only when no later reward can reach this agent
    alive: jax.Array  # bool [] or [A]: may act now
    last: jax.Array  # bool []: the episode ends here, for whatever reason
    action_mask: Any = ()  # bool [..., n], heads side by side for MultiDiscrete; () when every action is legal
    metrics: Any = dataclasses.field(default_factory=dict)  # {name: float32 []}; `EnvSpec.metrics` says how they add up

    @property
    def terminated(self) -> jax.Array:
        """bool, the shape of `last`: a true end, after which no reward can reach anybody."""
        return self.last & ~self._future

    @property
    def truncated(self) -> jax.Array:
        """bool, the shape of `last`: cut off, by a time limit for example; the future still has a value."""
        return self.last & self._future

    @property
    def _future(self) -> jax.Array:
        return jnp.any(self.discount > 0, axis=tuple(range(self.last.ndim, self.discount.ndim)))


@dataclasses.dataclass(frozen=True)
class Group:
    """`size` agents next to each other on axis A that share a kind of observation and of action."""

    name: str
    size: int
    observation_space: Space
    action_space: Space


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """All that an algorithm may know of an environment; static and hashable. Spaces are those of ONE agent."""

    observation_space: Any  # a Space, or a hashable tree (tuples) of them
    action_space: Space
    num_agents: int | None = None  # None: single-agent, no agent axis
    world_space: Box | None = None  # what `world` returns; None: all agents' observations side by side serve
    reward: str = "individual"  # or `team`: one reward, given to every agent
    metrics: Any = ()  # {name: "last" | "sum" | "mean"} over an episode; kept as a tuple of pairs
    episode_limit: int | None = None  # the longest possible episode, in steps
    groups: tuple[Group, ...] = ()  # () when all agents are alike
    version: int = 1  # raised when returns stop being comparable

    def __post_init__(self):
        if isinstance(self.metrics, Mapping):
            object.__setattr__(self, "metrics", tuple(sorted(self.metrics.items())))
        if self.reward not in ("individual", "team"):
            raise ValueError(f"EnvSpec.reward must be `individual` or `team`, got {self.reward!r}")
        if bad := [name for name, how in self.metrics if how not in ("last", "sum", "mean")]:
            raise ValueError(f"EnvSpec.metrics must be `last`, `sum` or `mean`; wrong for {bad}")
        if self.groups:
            _check_groups(self)

    @property
    def agents(self) -> int:
        """A, the length of the agent axis in a trainer: 1 for a single-agent environment."""
        return 1 if self.num_agents is None else self.num_agents

    @property
    def own_actions(self) -> np.ndarray | None:
        """What of the widest action is an agent's own, bool [A, n] (heads side by side) or, for a Box, [A, d].

        None where every agent has all of it. An agent that has fewer heads than others keeps choice 0 of each surplus one.
        """
        rows = [_own_entries(group.action_space, self.action_space) for group in self.groups]
        if all(row.all() for row in rows):
            return None
        return np.repeat(np.stack(rows), [group.size for group in self.groups], axis=0)

    def sample_actions(self, key: jax.Array, timestep: TimeStep) -> jax.Array:
        """A uniformly random legal (joint) action in the environment's shape; action 0 where nothing is legal.

        For a TimeStep of N environments one action each, [N, ...], all from the one key.
        """
        space, shape = self.action_space, (*timestep.last.shape, *(() if self.num_agents is None else (self.num_agents,)))
        if isinstance(space, Box):
            return space.sample(key, shape)
        sizes = (space.n,) if isinstance(space, Discrete) else space.nvec
        mask, own = timestep.action_mask, self.own_actions
        if own is not None:
            own = jnp.broadcast_to(own, (*shape, own.shape[-1]))
            mask = own if isinstance(mask, tuple) else mask & own
        noise = jax.random.uniform(key, (*shape, len(sizes)))
        heads, start = [], 0
        for head, size in enumerate(sizes):
            legal = None if isinstance(mask, tuple) else mask[..., start : start + size]
            heads.append(_choice(noise[..., head], size, legal))
            start += size
        return heads[0] if isinstance(space, Discrete) else jnp.stack(heads, axis=-1)


def _choice(noise: jax.Array, size: int, legal: jax.Array | None) -> jax.Array:
    """A uniformly random one of `size` choices, or of the legal ones, bool [..., size]; 0 where none is legal.

    One number of [0, 1) a choice, `noise` [...], costs a fifth of what `randint` or a number for each of 5 choices does.
    float32 favours none of up to 1,000 choices by more than one part in 8,000.
    """
    if legal is None:
        return jnp.floor(noise * size).astype(jnp.int32)
    rank = jnp.cumsum(legal, axis=-1, dtype=jnp.int32)
    return jnp.argmax(rank > jnp.floor(noise[..., None] * rank[..., -1:]), axis=-1).astype(jnp.int32)


def _check_groups(spec: EnvSpec) -> None:
    """Groups have names of their own, cover the agents, and each fits into the widest spaces by cutting off the surplus."""
    names, agents = [group.name for group in spec.groups], sum(group.size for group in spec.groups)
    if len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"EnvSpec.groups need a name each, and different ones, got {names}")
    if agents != spec.num_agents or min(group.size for group in spec.groups) < 1:
        sizes = " + ".join(str(group.size) for group in spec.groups)
        raise ValueError(f"EnvSpec.groups cover {sizes} = {agents} agents of {spec.num_agents}: put each into one group")
    for group in spec.groups:
        kind, widest = type(group.action_space).__name__, type(spec.action_space).__name__
        if kind != widest:
            raise ValueError(f"EnvSpec.groups: {group.name} has {kind} actions, the widest are {widest}: kinds do not mix")
        pairs = zip(*(jax.tree.leaves((x.observation_space, x.action_space)) for x in (group, spec)), strict=False)
        if not all(_fits(own, whole) for own, whole in pairs):
            raise ValueError(
                f"EnvSpec.groups: the spaces of {group.name}, {group.observation_space} and {group.action_space}, do not fit"
                f" into the widest, {spec.observation_space} and {spec.action_space}; only the last axis may be shorter"
            )


def _fits(own: Space, widest: Space) -> bool:
    """Whether a space is a part of the widest one: of the same kind, with as many or fewer entries on its last axis."""
    if type(own) is not type(widest):
        return False
    if isinstance(own, Discrete):
        return own.n <= widest.n
    if isinstance(own, MultiDiscrete):
        return len(own.nvec) <= len(widest.nvec) and all(a <= b for a, b in zip(own.nvec, widest.nvec, strict=False))
    return own.dtype == widest.dtype and own.shape[:-1] == widest.shape[:-1] and own.shape[-1:] <= widest.shape[-1:]


def _own_entries(own: Space, widest: Space) -> np.ndarray:
    """Which entries of the widest action space, laid side by side, belong to a group's own: bool [n] or [d]."""
    if isinstance(own, Box):
        return np.arange(widest.shape[-1]) < own.shape[-1]
    sizes, all_sizes = ((x.n,) if isinstance(x, Discrete) else x.nvec for x in (own, widest))
    sizes = (*sizes, *[1] * (len(all_sizes) - len(sizes)))
    return np.concatenate([np.arange(n) < mine for mine, n in zip(sizes, all_sizes, strict=True)])


class Env:
    """Base of every environment and wrapper. Objects are immutable once built: nothing may be written to them later."""

    spec: EnvSpec
    default_params: Any = ()
    reset_mode: str = "fresh"  # or `pool`: how rollouts reset it under `train.reset: auto`, see docs/resets.md
    ranges: Mapping[str, tuple[float, float]] = MappingProxyType({})  # {number of the params: (least, most)}; others: any
    scripts: Mapping[str, Mapping[str, Script]] = MappingProxyType({})  # {group: {name: Script}}: its scripted opponents

    def initial(self, key: jax.Array, params: Any) -> Any:
        """A state at the start of an episode."""
        raise NotImplementedError

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        """The rules: the next state, and the reward float32 [] or [A]."""
        raise NotImplementedError

    def observe(self, state: Any, params: Any) -> TimeStep:
        """The TimeStep of a state, with reward 0: everything but the reward follows from the state."""
        raise NotImplementedError

    def world(self, state: Any, params: Any) -> jax.Array:
        """The full state as one vector, for central critics and mixers; only with `spec.world_space`."""
        raise NotImplementedError(f"{type(self).__name__} declares no world_space")

    def render(self, state: Any) -> jax.Array:
        """A picture of a state for people, RGB uint8 [height, width, 3]."""
        raise NotImplementedError(f"{type(self).__name__} draws no pictures")

    def reset(self, key: jax.Array, params: Any) -> tuple[Any, TimeStep]:
        """Starts an episode."""
        state = self.initial(key, params)
        return state, self.observe(state, params)

    def transition(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, TimeStep]:
        """One step from a state that has not ended (the result is undefined from one that has)."""
        state, reward = self.advance(key, state, action, params)
        return state, self.observe(state, params).replace(reward=reward)

    def step(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, TimeStep]:
        """One step; after the end the same state and TimeStep again, with reward 0."""
        before = self.observe(state, params)
        after = self.transition(key, state, action, params)
        return jax.tree.map(lambda old, new: jnp.where(before.last, old, new), (state, before), after)


__all__ = ["Box", "Discrete", "Env", "EnvSpec", "Group", "MultiDiscrete", "Space", "TimeStep"]

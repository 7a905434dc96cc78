"""Scripted environments whose every number is known, for tests of what is built around an environment."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, EnvSpec, Group, TimeStep
from envs_jax.spaces import Box, Discrete

from .contract import QUICK


class Counter(Env):
    """Single agent: observes the start's random thousandths plus the step count, is paid its action, ends after `length`."""

    def __init__(self, length: int = 5, action_space: Any = Discrete(4)):  # noqa: B008
        self.length = length
        self.default_params = {"bonus": jnp.float32(0)}
        self.spec = EnvSpec(Box(0, length + 1, (1,)), action_space, episode_limit=length)

    def initial(self, key, params):
        return {"time": jnp.int32(0), "start": jax.random.uniform(key)}

    def advance(self, key, state, action, params):
        return {**state, "time": state["time"] + 1}, jnp.sum(action).astype(jnp.float32) + params["bonus"]

    def observe(self, state, params):
        last = state["time"] >= self.length
        return TimeStep(
            observation=(state["time"] + state["start"])[None],
            reward=jnp.float32(0),
            discount=1.0 - last.astype(jnp.float32),
            alive=jnp.bool_(True),
            last=last,
        )


class Deaths(Env):
    """Agents that die at the steps of `ends`; who lives is paid (index + 1), and the episode ends with the last of them.

    Each sees the step count, in as many columns as `widths` says: agents of different widths form groups.
    """

    def __init__(self, ends: tuple[int, ...] = (2, 5, 9), widths: tuple[int, ...] = (), action_space: Any = Discrete(2)):  # noqa: B008
        agents, width = len(ends), max(widths, default=1)
        self.ends, self.widths = np.asarray(ends, np.int32), np.asarray(widths or (1,) * agents)
        groups = tuple(Group(f"g{i}", 1, Box(0, 10, (w,)), action_space) for i, w in enumerate(widths))
        self.spec = EnvSpec(
            Box(0, 10, (width,)),
            action_space,
            num_agents=agents,
            metrics={"living": "last"},
            episode_limit=max(ends),
            groups=groups,
            world_space=Box(0, 10, (1,)),
        )

    def initial(self, key, params):
        return jnp.int32(0)

    def advance(self, key, state, action, params):
        pay = jnp.arange(1, len(self.ends) + 1, dtype=jnp.float32)
        return state + 1, jnp.where(state < self.ends, pay, 0.0)

    def observe(self, state, params):
        alive = state < self.ends
        columns = np.arange(self.spec.observation_space.shape[0])[None, :] < self.widths[:, None]
        return TimeStep(
            observation=jnp.where(columns, state.astype(jnp.float32), 0.0),
            reward=jnp.zeros(len(self.ends), jnp.float32),
            discount=alive.astype(jnp.float32),
            alive=alive,
            last=~jnp.any(alive),
            action_mask=jnp.ones((len(self.ends), 2), bool) if isinstance(self.spec.action_space, Discrete) else (),
            metrics={"living": jnp.sum(alive).astype(jnp.float32)},
        )

    def world(self, state, params):
        return state.astype(jnp.float32)[None]


class Echo(Env):
    """Endless; observes the last action, so that a test sees what a wrapper hands on. `agents` None: single-agent."""

    def __init__(self, space: Box, agents: int | None = None, groups: tuple[Group, ...] = ()):
        self.spec = EnvSpec(space, space, num_agents=agents, groups=groups)
        self.shape = (*(() if agents is None else (agents,)), *space.shape)

    def initial(self, key, params):
        return jnp.zeros(self.shape, jnp.float32)

    def advance(self, key, state, action, params):
        return action, jnp.zeros(self.shape[: self.spec.num_agents is not None], jnp.float32)

    def observe(self, state, params):
        axis = self.shape[: self.spec.num_agents is not None]
        return TimeStep(state, jnp.zeros(axis), jnp.ones(axis), jnp.ones(axis, bool), jnp.bool_(False))


class Shown(Env):
    """Endless; shows one given observation in a given space, which may be a tuple of them."""

    def __init__(self, space: Any, observation: Any):
        self.spec, self.observation = EnvSpec(space, Discrete(2)), observation

    def initial(self, key, params):
        return jnp.int32(0)

    def advance(self, key, state, action, params):
        return state, jnp.float32(0)

    def observe(self, state, params):
        return TimeStep(self.observation, jnp.float32(0), jnp.float32(1), jnp.bool_(True), jnp.bool_(False))


def steps_left(state: Any, action: Any, next_state: jax.Array) -> jax.Array:
    """A reward of one's own for `Deaths`: how far the next state is from step 10."""
    return 10 - next_state


def play(env: Env, steps: int, actions: Any = None, key: jax.Array | None = None) -> TimeStep:
    """The timesteps [T + 1, ...] of one episode and the steps after it, by `step`; random legal actions by default."""
    key = jax.random.key(0) if key is None else key
    params = env.default_params

    @functools.partial(jax.jit, compiler_options=QUICK)
    def run(key, actions):
        first = env.reset(key, params)

        def step(carry, x):
            key, action = x
            action = env.spec.sample_actions(key, carry[1]) if actions is None else action
            carry = env.step(key, carry[0], action, params)
            return carry, carry[1]

        rest = jax.lax.scan(step, first, (jax.random.split(key, steps), actions))[1]
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first[1], rest)

    return jax.tree.map(np.asarray, run(key, actions))

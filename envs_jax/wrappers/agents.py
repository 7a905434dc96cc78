"""Wrappers about who acts and who is paid: the agent axis, agent ids, team reward."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, TimeStep
from envs_jax.spaces import Box
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.columns import joined, packing


class AgentAxis(Wrapper):
    """A single-agent environment as one with an agent axis of length 1.

    Raises ValueError for an environment that has the axis already.
    """

    def __init__(self, env: Env):
        if env.spec.num_agents is not None:
            raise ValueError(f"AgentAxis is for single-agent environments; this one has num_agents = {env.spec.num_agents}")
        super().__init__(env, dataclasses.replace(env.spec, num_agents=1))

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        state, reward = self.env.advance(key, state, action[0], params)
        return state, reward[None]

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        axis = {name: getattr(timestep, name) for name in ("observation", "reward", "discount", "alive", "action_mask")}
        return timestep.replace(**jax.tree.map(lambda x: x[None], axis))


class AgentIds(Wrapper):
    """Appends to every agent's observation a one-hot vector of its index: [A, F] becomes [A, F + A].

    With groups the vector stands right behind the group's own columns, so that each group still sees an unpadded row.
    Raises ValueError for single-agent environments and for observations that are not one vector.
    """

    def __init__(self, env: Env):
        spec = env.spec
        if spec.num_agents is None:
            raise ValueError("agent_ids needs an environment with several agents; this one is single-agent")
        if not isinstance(spec.observation_space, Box) or len(spec.observation_space.shape) != 1:
            raise ValueError(
                f"agent_ids needs observations that are one vector, got {spec.observation_space}; apply `flatten` before it"
            )
        self._order = packing(spec, appended=spec.num_agents)
        ids = Box(0, 1, (spec.num_agents,), spec.observation_space.dtype)
        groups = tuple(
            dataclasses.replace(group, observation_space=joined([group.observation_space, ids])) for group in spec.groups
        )
        space = joined([spec.observation_space, ids])
        if groups:
            space = Box(min(0.0, np.min(space.low)), max(1.0, np.max(space.high)), space.shape, space.dtype)
        super().__init__(env, dataclasses.replace(spec, observation_space=space, groups=groups))

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        ids = jnp.eye(self.spec.num_agents, dtype=timestep.observation.dtype)
        observation = jnp.concatenate([timestep.observation, ids], axis=-1)
        if self._order is not None:
            observation = jnp.take_along_axis(observation, jnp.asarray(self._order), axis=-1)
        return timestep.replace(observation=observation)


class TeamReward(Wrapper):
    """Pays every agent the sum of all agents' rewards, as one team.

    A dead agent's discount stays 1 until the episode truly ends, since its team mates can still earn for it; whether it is
    `alive` is unchanged. An environment that already pays a team reward is left as it is. Raises ValueError for single-agent
    environments.
    """

    def __init__(self, env: Env):
        if env.spec.num_agents is None:
            raise ValueError("team_reward needs an environment with several agents; this one is single-agent")
        super().__init__(env, dataclasses.replace(env.spec, reward="team"))
        self._already = env.spec.reward == "team"

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        state, reward = self.env.advance(key, state, action, params)
        return state, reward if self._already else jnp.full_like(reward, jnp.sum(reward))

    def observe(self, state: Any, params: Any) -> TimeStep:
        timestep = self.env.observe(state, params)
        if self._already:
            return timestep
        goes_on = 1.0 - timestep.terminated.astype(jnp.float32)
        return timestep.replace(discount=jnp.full_like(timestep.discount, goes_on))

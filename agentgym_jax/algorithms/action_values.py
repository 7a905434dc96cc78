"""What learners of action values share: acting, mixing, and which rows of a team teach what.

Without a mixer every agent has a value of its own (DQN, IQL). With one the team has a single value, on an agent axis of 1; a
dead agent puts nothing into it, and while nobody lives but the episode goes on every row counts, so that this state is learnt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agentgym_jax.checks import ConfigError
from agentgym_jax.models.base import Model, apply_once
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.mixers import Mixer, hypernet_mixer, sum_mixer
from agentgym_jax.models.networks import action_value_model, world_space
from agentgym_jax.ops import returns
from agentgym_jax.ops.schedules import value_at
from agentgym_jax.ops.teams import rows_with_value, team_values
from agentgym_jax.types import Transition
from envs_jax.core import EnvSpec
from envs_jax.spaces import Discrete

MIXERS = ("none", "sum", "hypernet")


class Outcome(NamedTuple):
    """What steps paid, [..., A'], with A' = 1 for a mixed team and A otherwise."""

    reward: jax.Array
    discount: jax.Array  # 0 only at a true end
    cut: jax.Array  # bool: no return passes from this row to the next
    weight: jax.Array  # float32: 1 where the row teaches


@dataclasses.dataclass(frozen=True)
class ActionValues:
    """The networks of one learner and how their outputs are read."""

    spec: EnvSpec
    model: Model
    mixer: Mixer | None

    def init(self, key: jax.Array) -> Any:
        """Parameters {network, mixer}."""
        key_network, key_mixer = jax.random.split(key)
        return {"network": self.model.init(key_network), "mixer": {} if self.mixer is None else self.mixer.init(key_mixer)}

    @property
    def needs_world(self) -> bool:
        """Whether the world has to be recorded."""
        return self.mixer is not None and self.mixer.needs_world

    # ---- acting

    def carry(self, batch_shape: tuple[int, ...]) -> Any:
        """The hidden state of fresh agents, [*batch_shape, A, ...]."""
        return self.model.carry((*batch_shape, self.spec.agents))

    def behave(self, learner, hyper, carry, timestep, world, reset, key, clock, explore):
        """`act` of an `Algorithm` whose learner has `params` and whose numbers have `epsilon`."""
        del world
        epsilon = value_at(hyper.epsilon, clock.progress)
        carry, action = self.act(learner.params, carry, timestep, reset, key, epsilon, explore)
        return carry, action, ()

    def act(self, params: Any, carry: Any, timestep: Any, reset: jax.Array, key: jax.Array, epsilon: Any, explore: bool):
        """Greedy actions, or with `explore` a uniformly random legal one with probability ε, each agent by itself [N, A]."""
        values, carry = apply_once(self.model, params["network"], carry, timestep.observation, reset)
        action = greedy(values, timestep.action_mask)
        if explore:
            key_coin, key_random = jax.random.split(key)
            chance = jax.random.uniform(key_random, values.shape)
            random = greedy(chance, self._legal(timestep.action_mask))
            action = jnp.where(jax.random.uniform(key_coin, action.shape) < epsilon, random, action)
        return carry, action

    def _legal(self, mask: Any) -> Any:
        """The environment's mask, and what an agent of a group with fewer actions does not have (`EnvSpec.own_actions`)."""
        own = self.spec.own_actions
        if own is None:
            return mask
        return own if isinstance(mask, tuple) else mask & jnp.broadcast_to(own, mask.shape)

    # ---- values of steps

    def chosen(self, params: Any, values: jax.Array, action: jax.Array, alive: jax.Array, world: Any) -> jax.Array:
        """The value of what was done, [..., A'], from values [..., A, n]."""
        return self._mixed(params, _take(values, action), alive, world)

    def best(self, params: Any, values: jax.Array, by: jax.Array, mask: Any, alive: jax.Array, world: Any) -> jax.Array:
        """The value [..., A'] of the legal actions that are greedy in `by` (double learning: another network's values)."""
        best = _take(values, greedy(by, mask))
        if self.mixer is None and self.spec.reward == "team":
            best = team_values(best, alive)  # a dead agent's team goes on earning
        return self._mixed(params, best, alive, world)

    def _mixed(self, params: Any, values: jax.Array, alive: jax.Array, world: Any) -> jax.Array:
        if self.mixer is None:
            return values
        values = jnp.where(rows_with_value(alive), values, 0.0)
        return self.mixer.apply(params["mixer"], values, world)[..., None]

    def outcome(self, steps: Transition) -> Outcome:
        """What the steps [L, B, A] paid, to whom and how long."""
        if self.mixer is not None:
            reward, discount = steps.reward[..., :1], jnp.max(steps.discount, axis=-1, keepdims=True)
            return Outcome(reward, discount, steps.last[..., None], jnp.ones_like(reward))
        discount, teaches = steps.discount, steps.alive
        if self.spec.reward == "team":
            discount = jnp.broadcast_to(jnp.max(discount, axis=-1, keepdims=True), discount.shape)
            teaches = rows_with_value(steps.alive)
        return Outcome(steps.reward, discount, returns.trace_cuts(steps.last, steps.reset), jnp.where(teaches, 1.0, 0.0))


def greedy(values: jax.Array, mask: Any) -> jax.Array:
    """The best legal action, int32 [...], of values [..., n]; action 0 where none is legal. `mask` is () or bool [..., n]."""
    if mask is not None and not isinstance(mask, tuple):
        values = jnp.where(jnp.broadcast_to(mask, values.shape), values, -jnp.inf)
    return jnp.argmax(values, axis=-1).astype(jnp.int32)


def _take(values: jax.Array, action: jax.Array) -> jax.Array:
    return jnp.take_along_axis(values, action[..., None], axis=-1)[..., 0]


def networks(network: NetworkConfig, spec: EnvSpec, config: Any) -> dict[str, Any]:
    """The default models: {network} and, for a team, {mixer}. `config` has mixer, mixer_embed and mixer_hidden."""
    _check(spec, config)
    models: dict[str, Any] = {"network": action_value_model(network, spec)}
    return models if config.mixer == "none" else models | {"mixer": _default_mixer(spec, config)}


def action_values(spec: EnvSpec, config: Any, models: Mapping[str, Any]) -> ActionValues:
    """The networks of a learner, its mixer the default one that `config` names where `models` has none.

    Raises ConfigError for actions that are not Discrete, for a mixer without a team reward, and for one that is not wanted.
    """
    _check(spec, config)
    if config.mixer == "none" and "mixer" in models:
        raise ConfigError("algorithm.mixer: is none, but the models hold a mixer; leave it out, or set algorithm.mixer")
    mixer = None if config.mixer == "none" else models.get("mixer") or _default_mixer(spec, config)
    return ActionValues(spec, models["network"], mixer)


def _check(spec: EnvSpec, config: Any) -> None:
    if not isinstance(spec.action_space, Discrete):
        raise ConfigError(
            f"algorithm.name: action values need Discrete actions, got {spec.action_space}; use ppo, or the wrapper"
            " `discretise_actions` with `joint: true`"
        )
    if config.mixer != "none" and spec.reward != "team":
        raise ConfigError("algorithm.mixer: a mixed value needs one reward for all agents; set env.reward: team")


def _default_mixer(spec: EnvSpec, config: Any) -> Mixer:
    if config.mixer == "sum":
        return sum_mixer()
    return hypernet_mixer(spec.agents, world_space(spec), config.mixer_embed, config.mixer_hidden)

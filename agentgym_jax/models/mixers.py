"""From the action values of a team's agents to one value of the team, monotonic in each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from agentgym_jax.models.torsos import NEAR_ZERO, dense, numbers
from envs_jax.spaces import Space


class Mixer(NamedTuple):
    """Two pure functions; greedy actions of the agents are greedy for the team, since no weight is negative."""

    init: Callable[[jax.Array], Any]  # (key) -> params
    apply: Callable[[Any, jax.Array, Any], jax.Array]  # (params, values [..., A], world [..., W] or ()) -> [...]
    needs_world: bool


def sum_mixer() -> Mixer:
    """The sum over agents: value decomposition networks (Sunehag et al. 2018, arXiv:1706.05296)."""
    return Mixer(lambda key: {}, lambda params, values, world: jnp.sum(values, axis=-1), needs_world=False)


def hypernet_mixer(num_agents: int, space: Space, embed: int, hidden: int) -> Mixer:
    """QMIX (Rashid et al. 2018, arXiv:1803.11485): weights and biases of the mixing network are functions of the world.

    Args:
      space: of the world. embed: width of the mixing network. hidden: width of the hypernetworks' layer, 0 for none.
    """
    module = Hypernet(embed, hidden)

    def features(world: jax.Array) -> jax.Array:
        return numbers(world, space).reshape(*world.shape[: world.ndim - len(space.shape)], -1)

    def init(key: jax.Array) -> Any:
        return module.init(key, jnp.zeros((1, num_agents)), features(jnp.zeros((1, *space.shape), space.dtype)))

    def apply(params: Any, values: jax.Array, world: Any) -> jax.Array:
        mixed: Any = module.apply(params, values, features(world))
        return mixed

    return Mixer(init, apply, needs_world=True)


class Hypernet(nn.Module):
    """Q = |w₂(s)|ᵀ elu(|W₁(s)|ᵀ q + b₁(s)) + b₂(s): values [..., A] and world [..., W] -> [...].

    The outputs of the hypernetworks start near 0, as in JaxMARL, plus biases with which Q starts as elu(Σ q), VDN's mixing.
    Without them a world of zeros gave weights of |0|, through which nothing is ever learnt.
    """

    embed: int
    hidden: int

    @nn.compact
    def __call__(self, values: jax.Array, world: jax.Array) -> jax.Array:
        agents = values.shape[-1]
        first = jnp.abs(self._weights("first", agents * self.embed, world, 1.0)).reshape(*world.shape[:-1], agents, self.embed)
        bias = dense(self.embed, NEAR_ZERO, name="first_bias")(world)
        mixed = nn.elu(jnp.einsum("...a,...ae->...e", values, first) + bias)
        second = jnp.abs(self._weights("second", self.embed, world, 1.0 / self.embed))
        state_value = dense(self.embed, math.sqrt(2.0), name="state_hidden")(world)
        state_value = dense(1, NEAR_ZERO, name="state_value")(nn.relu(state_value))[..., 0]
        return jnp.sum(mixed * second, axis=-1) + state_value

    def _weights(self, name: str, size: int, world: jax.Array, start: float) -> jax.Array:
        if self.hidden:
            world = nn.relu(dense(self.hidden, math.sqrt(2.0), name=f"{name}_hidden")(world))
        return dense(size, NEAR_ZERO, name=f"{name}_weights", bias=start)(world)

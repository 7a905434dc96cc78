"""From features to what an algorithm reads: parameters of the action distribution, and values."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from agentgym_jax.models.torsos import NEAR_ZERO, dense
from agentgym_jax.ops.distributions import NormalParams
from envs_jax.spaces import Box, Space


class PolicyHead(nn.Module):
    """[..., F] -> the parameters of the action distribution: logits [..., size], or `NormalParams` [..., size] for a Box.

    The kernel's gain is small, so that a fresh policy is nearly uniform (Andrychowicz et al. 2021). The logarithm of a
    normal's standard deviation is a parameter of its own, independent of the observation.
    """

    action_space: Space
    size: int
    log_std: float = 0.0

    @nn.compact
    def __call__(self, x: jax.Array) -> Any:
        outputs = dense(self.size, NEAR_ZERO, name="output")(x)
        if not isinstance(self.action_space, Box):
            return outputs
        log_std = self.param("log_std", nn.initializers.constant(self.log_std), (self.size,))
        return NormalParams(outputs, jnp.broadcast_to(log_std, outputs.shape))


class ActionValueHead(nn.Module):
    """[..., F] -> the value of every action, [..., actions]; `dueling`: V + A − mean A (Wang et al. 2016, eq. 9).

    `own` tells, for the agents of axis -2, which actions they have at all, bool [A, actions]; the mean is over these.
    The kernels' gain is small, so that learning starts from values near 0 whatever the size of the observations. A bias of the
    first values shrinks by γ with every move of the target network and may take longer than the run.
    """

    actions: int
    dueling: bool = False
    own: tuple[tuple[bool, ...], ...] = ()

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        advantage = dense(self.actions, NEAR_ZERO, name="output")(x)
        if not self.dueling:
            return advantage
        value = dense(1, NEAR_ZERO, name="value")(x)
        own = jnp.broadcast_to(jnp.asarray(self.own), advantage.shape) if self.own else None
        return value + advantage - jnp.mean(advantage, axis=-1, keepdims=True, where=own)


class ValueHead(nn.Module):
    """[..., F] -> values [..., outputs], kernel gain 1."""

    outputs: int = 1

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return dense(self.outputs, 1.0, name="output")(x)

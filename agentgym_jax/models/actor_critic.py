"""Actor and critic as one `Model`: separate or with a shared trunk, the critic local or central.

A central critic sees the world state on an agent axis of 1. Its memory belongs to the episode, not to an agent, so it is
cut where every agent restarts. Without a world, as in deployment, the critic is left alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agentgym_jax.models.base import Model


class Outputs(NamedTuple):
    policy: Any  # parameters of the action distribution, [T, B, A, ...]
    value: Any  # [T, B, A], or [T, B, A, actions] for an action-value critic; None without a world


def central_values(model: Model, num_agents: int, team: bool) -> Model:
    """A critic of world states [T, B, 1, W] as values of agents [T, B, A]: one shared by a team, else one output each."""

    def apply(params, carry, inputs, reset):
        values, carries = model.apply(params, carry, inputs, reset)
        if team:
            values = jnp.broadcast_to(values, (*values.shape[:2], num_agents, 1))[..., 0]
        else:
            values = values[:, :, 0, :]
        return values, carries

    return model._replace(apply=apply)


def local_values(model: Model) -> Model:
    """A critic of observations [T, B, A, F] with one output, as values [T, B, A]."""

    def apply(params, carry, inputs, reset):
        values, carries = model.apply(params, carry, inputs, reset)
        return values[..., 0], carries

    return model._replace(apply=apply)


def separate(actor: Model, critic: Model, central: bool) -> Model:
    """inputs = {observation [T, B, A, ...], world [T, B, W] or ()} -> Outputs, carries {actor, critic}."""

    def init(key):
        key_actor, key_critic = jax.random.split(key)
        return {"actor": actor.init(key_actor), "critic": critic.init(key_critic)}

    def carry(shape):
        return {"actor": actor.carry(shape), "critic": critic.carry((*shape[:-1], 1) if central else shape)}

    def apply(params, carry, inputs, reset):
        policy, actor_carries = actor.apply(params["actor"], carry["actor"], inputs["observation"], reset)
        if central and isinstance(inputs["world"], tuple):
            unchanged = jax.tree.map(lambda x: jnp.broadcast_to(x, (reset.shape[0], *x.shape)), carry["critic"])
            return Outputs(policy, None), {"actor": actor_carries, "critic": unchanged}
        seen = inputs["world"][..., None, :] if central else inputs["observation"]
        cut = jnp.all(reset, axis=-1, keepdims=True) if central else reset
        value, critic_carries = critic.apply(params["critic"], carry["critic"], seen, cut)
        return Outputs(policy, value), {"actor": actor_carries, "critic": critic_carries}

    return Model(init, carry, apply)


def shared(network: Model) -> Model:
    """One trunk with two heads: `network` gives (policy, values [T, B, A, 1]) from observations."""

    def apply(params, carry, inputs, reset):
        (policy, value), carries = network.apply(params, carry, inputs["observation"], reset)
        return Outputs(policy, value[..., 0]), carries

    return network._replace(apply=apply)

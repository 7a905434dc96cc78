"""Which agents share parameters, and what of padded rows a network sees and gives.

`shared` is the plain model: the same parameters for every row of the agent axis. Agents that form groups have observations
padded to the widest; a network of a group sees its own columns alone, and its outputs are padded to the widest again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.models.base import Model
from agentgym_jax.ops.distributions import MASKED, NormalParams
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, MultiDiscrete, Space, mask_size

GROUPS = "groups"  # parameters of groups: {GROUPS: {name of the group: its parameters}}


def per_agent(model: Model, num_agents: int) -> Model:
    """`model` with parameters of its own for every agent, stacked on a leading axis A.

    Agent a's rows go through parameters a alone; `model` itself sees one agent, with its axis kept: [T, B, 1, ...].
    """

    def one(params: Any, carry: Any, inputs: Any, reset: jax.Array) -> tuple[Any, Any]:
        carry = jax.tree.map(lambda x: x[:, None], carry)
        inputs = jax.tree.map(lambda x: x[:, :, None], inputs)
        results = model.apply(params, carry, inputs, reset[:, :, None])
        return jax.tree.map(lambda x: x[:, :, 0], results)

    return Model(
        # Not vmapped: two virtual CPU devices that factorise a batch of matrices wait for each other for ever.
        init=lambda key: jax.lax.map(model.init, jax.random.split(key, num_agents)),
        carry=model.carry,
        apply=jax.vmap(one, in_axes=(0, 1, 2, 2), out_axes=2),
    )


def group_specs(spec: EnvSpec) -> dict[str, EnvSpec]:
    """{name: what a group's own environment would declare, with spaces of its own width}."""
    return {
        group.name: dataclasses.replace(
            spec,
            num_agents=group.size,
            observation_space=group.observation_space,
            action_space=group.action_space,
            groups=(),
        )
        for group in spec.groups
    }


def per_group(models: Mapping[str, Model], spec: EnvSpec, widen: Callable[[Any, Space], Any]) -> Model:
    """A model for every group of `spec`, each on the rows of its agents: a static loop over slices of the agent axis.

    Args:
      models: {name of the group: Model}; it sees [T, B, size, ...] without the padding. All have carries of one shape.
      widen: (outputs, the group's action space) -> outputs of the width that all have.

    Parameters are {GROUPS: {name: those of the group's model}}.
    """
    starts = np.cumsum([0, *(group.size for group in spec.groups)])
    slices = {group.name: slice(int(a), int(b)) for group, a, b in zip(spec.groups, starts, starts[1:], strict=False)}

    def init(key: jax.Array) -> Any:
        keys = jax.random.split(key, len(spec.groups))
        return {GROUPS: {group.name: models[group.name].init(k) for group, k in zip(spec.groups, keys, strict=True)}}

    def apply(params: Any, carry: Any, inputs: Any, reset: jax.Array) -> tuple[Any, Any]:
        results = []
        for group in spec.groups:
            rows = slices[group.name]
            own_carry = jax.tree.map(lambda x, rows=rows: x[:, rows], carry)
            own_inputs = jax.tree.map(
                lambda space, x, rows=rows: x[:, :, rows, ..., : space.shape[-1]] if space.shape else x[:, :, rows],
                group.observation_space,
                inputs,
            )
            own_params = params[GROUPS][group.name]
            outputs, carries = models[group.name].apply(own_params, own_carry, own_inputs, reset[:, :, rows])
            results.append((widen(outputs, group.action_space), carries))
        return jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=2), *results)

    return Model(init, models[spec.groups[0].name].carry, apply)


def of_actions(role: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(outputs, ...)` applied to what a model of this role says of actions, if it says anything."""
    if role == "actor_critic":
        return lambda outputs, *rest: (function(outputs[0], *rest), *outputs[1:])
    return function if role in ("actor", "action_value") else lambda outputs, *rest: outputs


def widened(outputs: Any, own: Space, widest: Space) -> Any:
    """Logits, values of actions or `NormalParams` [..., n] of one's own actions, with zeros for the others of the widest."""
    sizes, wide = _sides(own), _sides(widest)

    def pad(x: jax.Array, surplus: int) -> jax.Array:
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, surplus)])

    def widen(x: jax.Array) -> jax.Array:
        heads = jnp.split(x, np.cumsum(sizes)[:-1], axis=-1)
        heads = [pad(head, n - head.shape[-1]) for head, n in zip(heads, wide, strict=False)]
        return pad(jnp.concatenate(heads, axis=-1), sum(wide[len(sizes) :]))

    return jax.tree.map(widen, outputs)


def without_surplus(outputs: Any, own: np.ndarray) -> Any:
    """Outputs [..., A, n] with a constant in place of what no agent has: `own` is bool [A, n], see `EnvSpec.own_actions`.

    Logits and values of actions become `MASKED`, so that such an action is never drawn and never the best one, whether or not
    the environment masks it; `NormalParams` become 0. No gradient passes.
    """
    fill = 0.0 if isinstance(outputs, NormalParams) else MASKED
    return jax.tree.map(lambda x: jnp.where(jnp.broadcast_to(own, x.shape), x, jnp.float32(fill)), outputs)


def _sides(space: Space) -> tuple[int, ...]:
    """The lengths of the parts that lie side by side on the last axis of a policy's outputs."""
    if isinstance(space, MultiDiscrete):
        return space.nvec
    return (space.shape[-1] if isinstance(space, Box) else mask_size(space),)

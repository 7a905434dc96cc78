"""Networks by configuration: torso, heads and parameter sharing put together as a `Model`, and a place for one's own.

A network of your own is a builder, registered under a name that `network.name` then picks:

    def build(config, spec, role) -> Model: ...
    register_network("mine", build)

`role` is `actor` (observations -> distribution parameters), `critic` (observations -> values [T, B, A, 1]),
`central_critic` (the world [T, B, 1, W] -> values [T, B, 1, 1]), `actor_critic` (observations -> both, a shared trunk) or
`action_value` (observations -> a value for every action [T, B, A, n] of a Discrete space). A builder with a fourth argument
`outputs` may be asked for critics with so many values in place of one. Parameter sharing is applied outside the builder, so
every network has it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from agentgym_jax.models.base import Model
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.convolutions import Convolutions
from agentgym_jax.models.heads import ActionValueHead, PolicyHead, ValueHead
from agentgym_jax.models.recurrent import GRU
from agentgym_jax.models.sharing import group_specs, of_actions, per_agent, per_group, widened, without_surplus
from agentgym_jax.models.torsos import MLP, numbers, vector
from agentgym_jax.ops.distributions import distribution
from envs_jax.core import EnvSpec
from envs_jax.names import unknown
from envs_jax.spaces import Box, Discrete, MultiDiscrete, Space

ROLES = ("actor", "critic", "central_critic", "actor_critic", "action_value")
Builder = Callable[..., Model]  # (config, spec, role) or (config, spec, role, outputs=1)
_builders: dict[str, Builder] = {}


def register_network(name: str, builder: Builder) -> None:
    """Makes `network.name: name` build its models with `builder(config, spec, role) -> Model`.

    Raises ValueError when the name is taken or empty, or the builder cannot be called.
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a network must be a non-empty string, got {name!r}")
    if name in _builders:
        raise ValueError(f"there is a network {name!r} already: choose another name")
    if not callable(builder):
        raise ValueError(f"the builder of network {name!r} must be a function (config, spec, role) -> Model, got {builder!r}")
    _builders[name] = builder


def network_names() -> list[str]:
    """Every name that `network.name` accepts."""
    return list(_builders)


def policy_model(config: NetworkConfig, spec: EnvSpec) -> Model:
    """The actor: observations [T, B, A, ...] -> parameters of the action distribution [T, B, A, ...]."""
    return _build(config, spec, "actor")


def value_model(config: NetworkConfig, spec: EnvSpec, outputs: int = 1, central: bool = False) -> Model:
    """A critic: inputs [T, B, A', ...] -> values [T, B, A', outputs].

    `central`: it reads the world [T, B, 1, W], that is `spec.world_space` or else all agents' observations side by side;
    otherwise the observation of each agent.
    """
    return _build(config, spec, "central_critic" if central else "critic", outputs)


def policy_value_model(config: NetworkConfig, spec: EnvSpec) -> Model:
    """Actor and critic on one trunk: observations -> (distribution parameters, values [T, B, A, 1])."""
    return _build(config, spec, "actor_critic")


def action_value_model(config: NetworkConfig, spec: EnvSpec) -> Model:
    """Observations [T, B, A, ...] -> the value of every action, [T, B, A, n]; the actions must be Discrete."""
    return _build(config, spec, "action_value")


def _build(config: NetworkConfig, spec: EnvSpec, role: str, outputs: int = 1) -> Model:
    if config.name not in _builders:
        raise unknown("network.name", config.name, network_names(), "(`register_network` adds your own)")
    builder = _builders[config.name]
    if outputs == 1:
        return _share(config, spec, role, lambda own: builder(config, own, role))
    if "outputs" not in inspect.signature(builder).parameters:
        raise ValueError(f"network {config.name!r} must give {outputs} values here: let its builder take an argument `outputs`")
    return _share(config, spec, role, lambda own: builder(config, own, role, outputs=outputs))


def _share(config: NetworkConfig, spec: EnvSpec, role: str, build: Callable[[EnvSpec], Model]) -> Model:
    """`build` for all agents, for each group or for each agent; a central critic has one row, so nothing to share."""
    if config.sharing == "group" and not spec.groups:
        raise ValueError("network.sharing: group needs agents that form groups; this environment has none: use shared or agent")
    if config.id_embedding and spec.agents == 1:
        raise ValueError(f"network.id_embedding = {config.id_embedding} tells agents apart, but there is only one: set it to 0")
    if role == "central_critic":
        return build(spec)
    if config.sharing == "shared" or spec.agents == 1:
        model = build(spec)
    elif not spec.groups:
        return per_agent(build(spec), spec.agents)
    else:
        models = {name: build(own) for name, own in group_specs(spec).items()}
        if config.sharing == "agent":
            models = {group.name: per_agent(models[group.name], group.size) for group in spec.groups}
        model = per_group(models, spec, of_actions(role, lambda outputs, own: widened(outputs, own, spec.action_space)))
    own_actions = spec.own_actions
    if own_actions is None:
        return model
    drop = of_actions(role, lambda outputs: without_surplus(outputs, own_actions))

    def apply(params: Any, carry: Any, inputs: Any, reset: jax.Array) -> tuple[Any, Any]:
        outputs, carries = model.apply(params, carry, inputs, reset)
        return drop(outputs), carries

    return model._replace(apply=apply)


class Network(nn.Module):
    """A torso and one or both heads: (carry, inputs [T, B, A, ...], reset) -> outputs (a pair with both heads), carries.

    `ids` is A where every agent has a learnt vector beside its features, else 0.
    """

    config: NetworkConfig
    space: Space
    policy: PolicyHead | None = None
    value: ValueHead | ActionValueHead | None = None
    ids: int = 0

    @nn.compact
    def __call__(self, carry: Any, inputs: jax.Array, reset: jax.Array) -> tuple[Any, Any]:
        config, dtype = self.config, jnp.dtype(self.config.compute_dtype)
        style = (config.activation, config.layer_norm, dtype)
        x = vector(inputs, self.space)
        if config.convolves and is_image(self.space):
            shape = (config.channels, config.kernels, config.strides, config.padding)
            x = Convolutions(*shape, *style, name="convolutions")(numbers(inputs, self.space))
        if self.ids:
            embedding = self.param("id_embedding", nn.initializers.normal(1.0), (self.ids, config.id_embedding))
            x = jnp.concatenate([x, jnp.broadcast_to(embedding, (*x.shape[:-1], config.id_embedding)).astype(x.dtype)], axis=-1)
        x = MLP(config.hidden, *style, name="torso")(x)
        if config.remembers:
            x = carry = GRU(config.recurrent, name="gru")(carry, x.astype(jnp.float32), reset)
            x = MLP(config.after, *style, name="after")(x)
        x = x.astype(jnp.float32)  # heads, and whatever is reckoned from them, in full precision
        outputs = [head(x) for head in (self.policy, self.value) if head is not None]
        return (outputs[0] if len(outputs) == 1 else tuple(outputs)), carry


def _default(config: NetworkConfig, spec: EnvSpec, role: str, outputs: int = 1) -> Model:
    """Convolutions, dense layers and a GRU, as far as wanted, with the heads that the role asks for.

    A central critic whose world is a vector has no convolutions.
    """
    space = world_space(spec) if role == "central_critic" else _one_array(spec)
    if config.convolves and role != "central_critic":
        _check_image(config, space)
    policy = value = None
    if role in ("actor", "actor_critic"):
        size = distribution(spec.action_space).size
        policy = PolicyHead(spec.action_space, size, config.log_std)
    if role == "action_value":
        own = () if spec.own_actions is None else tuple(map(tuple, spec.own_actions.tolist()))
        value = ActionValueHead(spec.action_space.n, config.dueling, own)
    elif role != "actor":
        value = ValueHead(outputs)
    rows, ids = (1, 0) if role == "central_critic" else (spec.agents, spec.agents if config.id_embedding else 0)
    return _as_model(Network(config, space, policy, value, ids), space, config.recurrent if config.remembers else 0, rows)


def _as_model(network: Network, space: Space, memory: int, rows: int) -> Model:
    """A linen module as a `Model` of `rows` agents; `memory` is the size of its hidden state, 0 when feed-forward."""

    def carry(batch_shape: tuple[int, ...]) -> Any:
        return jnp.zeros((*batch_shape, memory), jnp.float32) if memory else ()

    def init(key: jax.Array) -> Any:
        inputs = jnp.zeros((1, 1, rows, *space.shape), space.dtype)
        return network.init(key, carry((1, rows)), inputs, jnp.zeros((1, 1, rows), bool))

    return Model(init, carry, network.apply)


def _one_array(spec: EnvSpec) -> Space:
    """The observation space, if it is one array."""
    if not isinstance(spec.observation_space, Space):
        raise ValueError(
            f"the default network reads one array, but the observation space is {spec.observation_space!r}: "
            "flatten the observation with a wrapper, or register a network of your own (`register_network`)"
        )
    return spec.observation_space


def is_image(space: Space) -> bool:
    """Whether observations are [height, width, channels]."""
    return isinstance(space, Box) and len(space.shape) == 3


def _check_image(config: NetworkConfig, space: Space) -> None:
    """Raises ValueError where convolutions cannot read this space, or would leave nothing of it."""
    if not is_image(space):
        raise ValueError(f"network.torso: {config.torso} reads [height, width, channels], the observation is {space}: use mlp")
    sides = config.sides(space.shape[:2])
    if min(sides[-1]) < 1:
        raise ValueError(
            f"network.kernels: {list(config.kernels)} with strides {list(config.strides)} and padding {config.padding} leave"
            f" nothing of an image of {space.shape[0]} × {space.shape[1]}; use smaller ones, or network.padding: same"
        )


def world_space(spec: EnvSpec) -> Space:
    """What a central critic reads: the world, or all agents' observations side by side."""
    if spec.world_space is not None:
        return spec.world_space
    space, agents = _one_array(spec), spec.agents
    if isinstance(space, Box):
        return Box(-math.inf, math.inf, (agents * math.prod(space.shape),), space.dtype)
    return MultiDiscrete((space.n,) * agents if isinstance(space, Discrete) else space.nvec * agents)


register_network("default", _default)

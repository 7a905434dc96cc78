"""Networks by configuration: torso, heads and parameter sharing put together as a `Model`, and a place for one's own.

A network of your own is a builder, registered under a name that `network.name` then picks:

    def build(config, spec, role) -> Model: ...
    register_network("mine", build)

`role` is `actor` (observations -> distribution parameters), `critic` (observations -> values [T, B, A, 1]),
`central_critic` (the world [T, B, 1, W] -> values [T, B, 1, 1]) or `actor_critic` (observations -> both, a shared trunk).
A builder with a fourth argument `outputs` may be asked for critics with so many values in place of one. Parameter sharing
is applied outside the builder, so every network has it.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from agentgym_jax.models.base import Model
from agentgym_jax.models.heads import PolicyHead, ValueHead
from agentgym_jax.models.recurrent import GRU
from agentgym_jax.models.sharing import per_agent
from agentgym_jax.models.torsos import ACTIVATIONS, MLP, vector
from agentgym_jax.ops.distributions import distribution
from envs_jax.core import EnvSpec
from envs_jax.names import unknown
from envs_jax.spaces import Box, Discrete, MultiDiscrete, Space

ROLES = ("actor", "critic", "central_critic", "actor_critic")
Builder = Callable[..., Model]  # (config, spec, role) or (config, spec, role, outputs=1)
_builders: dict[str, Builder] = {}


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """The structure of every network of an algorithm; actor and critic have the same."""

    name: str = "default"  # `default` or the name of a registered network
    torso: str = "mlp"  # mlp | gru
    hidden: tuple[int, ...] = (64, 64)  # sizes ≥ 1 of the dense layers, before the GRU if there is one; () for none (PureJaxRL)
    activation: str = "tanh"  # tanh | relu | silu (swish) | gelu | elu, after every dense layer (PureJaxRL: tanh)
    layer_norm: bool = False  # normalise between dense layer and activation (PQN: true)
    recurrent: int = 128  # ≥ 1, hidden size of the GRU (JaxMARL, Mava: 128); read when torso is gru
    after: tuple[int, ...] = ()  # sizes ≥ 1 of the dense layers after the GRU (JaxMARL, Mava: [128]); torso gru only
    trunk: str = "separate"  # separate | shared: whether actor and critic share all but their heads (PureJaxRL: separate)
    sharing: str = "shared"  # shared | agent: one set of parameters, or one for every agent (JaxMARL: shared)
    log_std: float = 0.0  # −20 … 2, initial logarithm of the standard deviation, [-1, 1] units (PureJaxRL: 0)

    def __post_init__(self):
        for field in ("hidden", "after"):
            sizes = getattr(self, field)
            if not isinstance(sizes, list | tuple) or not all(_positive(size) for size in sizes):
                raise ValueError(f"network.{field} must be a list of whole numbers between 1 and 65,536, got {sizes!r}")
            object.__setattr__(self, field, tuple(sizes))
        if not _positive(self.recurrent):
            raise ValueError(f"network.recurrent must be a whole number between 1 and 65,536, got {self.recurrent!r}")
        if not isinstance(self.layer_norm, bool):
            raise ValueError(f"network.layer_norm must be true or false, got {self.layer_norm!r}")
        for field, known in {
            "name": tuple(_builders),
            "torso": ("mlp", "gru"),
            "activation": tuple(ACTIVATIONS),
            "trunk": ("separate", "shared"),
            "sharing": ("shared", "agent"),
        }.items():
            if getattr(self, field) not in known:
                raise unknown(f"network.{field}", getattr(self, field), known)
        if self.after and self.torso == "mlp":
            raise ValueError(
                f"network.after = {list(self.after)} follows a GRU: set network.torso: gru, or put it in network.hidden"
            )
        number = isinstance(self.log_std, int | float) and not isinstance(self.log_std, bool)
        if not number or not -20.0 <= self.log_std <= 2.0:
            raise ValueError(f"network.log_std must be a number between -20 and 2, got {self.log_std!r}")
        object.__setattr__(self, "log_std", float(self.log_std))


def _positive(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= 2**16


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


def _build(config: NetworkConfig, spec: EnvSpec, role: str, outputs: int = 1) -> Model:
    if config.name not in _builders:
        raise unknown("network.name", config.name, network_names(), "(`register_network` adds your own)")
    builder = _builders[config.name]
    if outputs == 1:
        return _share(config, spec, role, builder(config, spec, role))
    if "outputs" not in inspect.signature(builder).parameters:
        raise ValueError(f"network {config.name!r} must give {outputs} values here: let its builder take an argument `outputs`")
    return _share(config, spec, role, builder(config, spec, role, outputs=outputs))


def _share(config: NetworkConfig, spec: EnvSpec, role: str, model: Model) -> Model:
    """The sharing of parameters between agents; a central critic has one row, so nothing to share."""
    stacked = config.sharing == "agent" and role != "central_critic" and spec.agents > 1
    return per_agent(model, spec.agents) if stacked else model


class Network(nn.Module):
    """A torso and one or both heads: (carry, inputs [T, B, A, ...], reset) -> outputs (a pair with both heads), carries."""

    config: NetworkConfig
    space: Space
    policy: PolicyHead | None = None
    value: ValueHead | None = None

    @nn.compact
    def __call__(self, carry: Any, inputs: jax.Array, reset: jax.Array) -> tuple[Any, Any]:
        config = self.config
        x = MLP(config.hidden, config.activation, config.layer_norm, name="torso")(vector(inputs, self.space))
        if config.torso == "gru":
            x = carry = GRU(config.recurrent, name="gru")(carry, x, reset)
            x = MLP(config.after, config.activation, config.layer_norm, name="after")(x)
        outputs = [head(x) for head in (self.policy, self.value) if head is not None]
        return (outputs[0] if len(outputs) == 1 else tuple(outputs)), carry


def _default(config: NetworkConfig, spec: EnvSpec, role: str, outputs: int = 1) -> Model:
    """Dense or recurrent torso with the heads that the role asks for."""
    space = world_space(spec) if role == "central_critic" else _one_array(spec)
    policy = value = None
    if role in ("actor", "actor_critic"):
        size = distribution(spec.action_space).size
        policy = PolicyHead(spec.action_space, size, config.log_std)
    if role != "actor":
        value = ValueHead(outputs)
    return _as_model(Network(config, space, policy, value), space, config.recurrent if config.torso == "gru" else 0)


def _as_model(network: Network, space: Space, memory: int) -> Model:
    """A linen module as a `Model`; `memory` is the size of its hidden state, 0 when feed-forward."""

    def carry(batch_shape: tuple[int, ...]) -> Any:
        return jnp.zeros((*batch_shape, memory), jnp.float32) if memory else ()

    def init(key: jax.Array) -> Any:
        inputs = jnp.zeros((1, 1, 1, *space.shape), space.dtype)
        return network.init(key, carry((1, 1)), inputs, jnp.zeros((1, 1, 1), bool))

    return Model(init, carry, network.apply)


def _one_array(spec: EnvSpec) -> Space:
    """The observation space, if it is one array."""
    if not isinstance(spec.observation_space, Space):
        raise ValueError(
            f"the default network reads one array, but the observation space is {spec.observation_space!r}: "
            "flatten the observation with a wrapper, or register a network of your own (`register_network`)"
        )
    return spec.observation_space


def world_space(spec: EnvSpec) -> Space:
    """What a central critic reads: the world, or all agents' observations side by side."""
    if spec.world_space is not None:
        return spec.world_space
    space, agents = _one_array(spec), spec.agents
    if isinstance(space, Box):
        return Box(-math.inf, math.inf, (agents * math.prod(space.shape),), space.dtype)
    return MultiDiscrete((space.n,) * agents if isinstance(space, Discrete) else space.nvec * agents)


register_network("default", _default)

"""A group of agents that a policy plays, so that the others learn against it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, TimeStep
from envs_jax.groups import part_of, uniform
from envs_jax.names import unknown
from envs_jax.scripts import Script
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.checks import number

_NUMBER = "strength"


@struct.dataclass
class OpponentState:
    inner: Any
    seen: TimeStep  # what all agents see now
    carry: Any  # the policy's memory
    reset: jax.Array  # bool [A]: what an agent sees is its first observation


class Opponent(Wrapper):
    """The agents of `group` are played by `policy`; the others are the new agent axis, in their order.

    `policy` is the name of one of the environment's scripts for that group (`Env.scripts`), `random`, or a `Script`. It sees
    its own agents' rows, and has a memory that is cut where an agent begins. The others' spaces are the widest among them;
    one group that is left has its own, unpadded spaces, and `groups` is () then. Rewards, discounts and lives are those of
    the agents that are left; end, metrics and world state are unchanged.

    `strength` in [0, 1] is an environment number beside those of `env`: the probability with which an agent of the group acts
    by the policy, at each step for itself, else a uniformly random legal action. The params are a dict, {"strength": ...,
    name: number of `env`}; opponents around each other share one strength. Raises ValueError for an environment without
    groups, an unknown group or script, a group after which nobody is left, and a strength outside [0, 1].
    """

    def __init__(self, env: Env, group: str, policy: str | Script, strength: float = 1.0):
        spec = env.spec
        if not spec.groups:
            raise ValueError("opponent needs an environment whose agents form groups; this one has none")
        names = [each.name for each in spec.groups]
        if group not in names:
            raise unknown("group of wrapper opponent", group, names)
        if len(names) == 1:
            raise ValueError(f"opponent: nobody would be left to learn, {group} is the only group")
        self.group = group
        self.own, self.others = part_of(spec, [group]), part_of(spec, [name for name in names if name != group])
        super().__init__(env, self.others.spec)
        self._script = policy if isinstance(policy, Script) else self._named(policy)
        if _NUMBER in _numbers(env.default_params) and not _inside(env, Opponent):
            raise ValueError(f"opponent: the environment has a number `{_NUMBER}` of its own")
        self.ranges = {**env.ranges, _NUMBER: (0.0, 1.0)}
        strength = number("opponent.strength", strength, *self.ranges[_NUMBER])
        self.default_params = _numbers(env.default_params) | {_NUMBER: jnp.float32(strength)}

    def _named(self, policy: Any) -> Script:
        if policy == "random":
            return uniform(self.own)
        fitting, own = scripts_of(self.env, self.group), self.unwrapped.scripts.get(self.group, {})
        if policy in own and policy not in fitting:
            raise ValueError(
                f"opponent: the script {policy} knows {self.group} as {type(self.unwrapped).__name__} makes them; put this"
                " wrapper before those that change what they see or do"
            )
        if policy not in fitting:
            raise unknown(f"policy of wrapper opponent for {self.group}", policy, [*fitting, "random"])
        return fitting[policy]

    def inner(self, state: OpponentState) -> Any:
        return state.inner

    def initial(self, key: jax.Array, params: Any) -> OpponentState:
        inner = self.env.initial(key, self._inner_params(params))
        seen = self.env.observe(inner, self._inner_params(params))
        carry = self._script.init(len(self.own.agents))
        return OpponentState(inner, seen, carry, jnp.ones(self.env.spec.agents, bool))

    def advance(self, key: jax.Array, state: OpponentState, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        key_opponent, key = jax.random.split(key)
        before, theirs = state.seen, self._inner_params(params)
        carry, chosen = self.own.follow(self._script, state.carry, key_opponent, before, state.reset, params[_NUMBER])
        space = self.env.spec.action_space
        everybody = jnp.zeros((self.env.spec.agents, *space.shape), space.dtype)
        everybody = self.own.into(chosen.astype(space.dtype), self.others.into(action.astype(space.dtype), everybody))
        inner, reward = self.env.advance(key, state.inner, everybody, theirs)
        after = self.env.observe(inner, theirs)
        reset = after.alive & (~before.alive | (after.discount == 0))  # alive with discount 0: a new agent in the slot
        return OpponentState(inner, after, carry, reset), reward[self.others.agents]

    def observe(self, state: OpponentState, params: Any) -> TimeStep:
        return self.others.view(state.seen)

    def world(self, state: OpponentState, params: Any) -> jax.Array:
        return self.env.world(state.inner, self._inner_params(params))

    def _inner_params(self, params: Mapping[str, Any]) -> Any:
        """The numbers of `env` in the form in which it has them."""
        default: Any = self.env.default_params
        own = {name: params[name] for name in _numbers(default)}
        if not own:
            return default
        if isinstance(default, Mapping):
            return own
        replace: Any = getattr(type(default), "_replace", dataclasses.replace)
        return replace(default, **own)


def scripts_of(env: Env, group: str) -> Mapping[str, Script]:
    """The scripts that can play a group of `env`: none where a wrapper has changed what its agents see or do."""
    base = env.unwrapped if isinstance(env, Wrapper) else env
    own, made = ([each for each in spec.groups if each.name == group] for spec in (env.spec, base.spec))
    return base.scripts.get(group, {}) if own == made else {}


def _numbers(params: Any) -> dict[str, Any]:
    """The numbers of an environment by name; none where its params are no record of named arrays."""
    if isinstance(params, Mapping):
        return dict(params)
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        names = [field.name for field in dataclasses.fields(params) if field.metadata.get("pytree_node", True)]
    else:
        names = list(getattr(params, "_fields", ()))
    return {name: getattr(params, name) for name in names}


def _inside(env: Env, kind: type) -> bool:
    """Whether `env` or an environment inside it is of this kind."""
    while isinstance(env, Wrapper) and not isinstance(env, kind):
        env = env.env
    return isinstance(env, kind)

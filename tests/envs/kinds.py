"""What an algorithm can tell environments apart by, and an environment of zeros for each kind that there is."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.core import Env, EnvSpec, Group, TimeStep
from envs_jax.spaces import Box, Discrete, MultiDiscrete, mask_size

ACTIONS = {"choice": Discrete(3), "choices": MultiDiscrete((2, 3)), "continuous": Box(-2, 2, (2,))}
NARROW = {"choice": Discrete(2), "choices": MultiDiscrete((2,)), "continuous": Box(-2, 2, (1,))}  # of a smaller group
OBSERVATIONS = {
    "number": Discrete(4),
    "numbers": MultiDiscrete((2, 3)),
    "vector": Box(-math.inf, math.inf, (5,)),
    "array": Box(0, 1, (3, 4)),
    "image": Box(0, 1, (6, 6, 2)),
    "bytes": Box(0, 255, (6, 6, 2), np.uint8),
}


class Kind(NamedTuple):
    """A capability class: the words of `ACTIONS` and `OBSERVATIONS`, and what else an `EnvSpec` declares."""

    action: str
    observation: str
    masked: bool = False
    pays: str = "alone"  # alone | team | individual
    world: bool = False
    groups: bool = False


VECTOR, IMAGE = Kind("choice", "vector"), Kind("choice", "image")
KINDS = (
    VECTOR,
    VECTOR._replace(observation="number"),
    VECTOR._replace(observation="numbers"),
    VECTOR._replace(observation="array"),
    VECTOR._replace(masked=True),
    VECTOR._replace(pays="individual"),
    VECTOR._replace(pays="individual", world=True),
    VECTOR._replace(pays="individual", world=True, groups=True),
    VECTOR._replace(pays="individual", masked=True, world=True),
    VECTOR._replace(pays="individual", groups=True),
    VECTOR._replace(pays="individual", masked=True, groups=True),
    VECTOR._replace(pays="team", world=True),
    VECTOR._replace(pays="team", masked=True, world=True, groups=True),
    VECTOR._replace(pays="team", masked=True),
    VECTOR._replace(pays="team", masked=True, world=True),
    VECTOR._replace(pays="team", masked=True, world=True, observation="array"),
    IMAGE,
    IMAGE._replace(observation="bytes"),
    IMAGE._replace(masked=True),
    IMAGE._replace(pays="individual"),
    IMAGE._replace(pays="team"),
    IMAGE._replace(pays="individual", masked=True, world=True),
    IMAGE._replace(pays="team", masked=True, world=True),
    Kind("choices", "vector"),
    Kind("choices", "vector", masked=True),
    Kind("continuous", "vector"),
    Kind("continuous", "vector", pays="individual"),
    Kind("continuous", "vector", pays="individual", groups=True),
    Kind("continuous", "vector", pays="individual", world=True),
    Kind("continuous", "vector", pays="team"),
)


def kind_of(env: Env) -> Kind:
    """The kind of an environment whose observation is one array."""
    spec, key = env.spec, jax.random.key(0)
    mask = jax.eval_shape(lambda: env.reset(key, env.default_params)[1].action_mask)
    return Kind(
        action={Discrete: "choice", MultiDiscrete: "choices", Box: "continuous"}[type(spec.action_space)],
        observation=_observation(spec.observation_space),
        masked=not isinstance(mask, tuple),
        pays="alone" if spec.num_agents is None else spec.reward,
        world=spec.world_space is not None,
        groups=bool(spec.groups),
    )


def _observation(space: Any) -> str:
    if not isinstance(space, Box):
        return {Discrete: "number", MultiDiscrete: "numbers"}[type(space)]
    word = {1: "vector", 2: "array", 3: "image"}[len(space.shape)]
    return "bytes" if word == "image" and space.dtype == np.uint8 else word


class Zeros(Env):
    """Two agents, or one alone, who see and are paid zeros for three steps; every action is legal where there is a mask."""

    default_params = ()

    def __init__(self, kind: Kind):
        observation, action = OBSERVATIONS[kind.observation], ACTIONS[kind.action]
        groups = ()
        if kind.groups:
            own = Box(-math.inf, math.inf, (3,))
            groups = (Group("narrow", 1, own, NARROW[kind.action]), Group("wide", 1, observation, action))
        self.spec = EnvSpec(
            observation_space=observation,
            action_space=action,
            num_agents=None if kind.pays == "alone" else 2,
            world_space=Box(-math.inf, math.inf, (7,)) if kind.world else None,
            reward="team" if kind.pays == "team" else "individual",
            metrics={"zero": "mean"},
            episode_limit=3,
            groups=groups,
        )
        self._axis = () if kind.pays == "alone" else (2,)
        self._masked = kind.masked

    def initial(self, key, params):
        return jnp.int32(0)

    def advance(self, key, state, action, params):
        return state + 1, jnp.zeros(self._axis, jnp.float32)

    def observe(self, state, params):
        space = self.spec.observation_space
        return TimeStep(
            observation=jnp.zeros((*self._axis, *space.shape), space.dtype),
            reward=jnp.zeros(self._axis, jnp.float32),
            discount=jnp.full(self._axis, state < 3, jnp.float32),
            alive=jnp.ones(self._axis, bool),
            last=state >= 3,
            action_mask=jnp.ones((*self._axis, mask_size(self.spec.action_space)), bool) if self._masked else (),
            metrics={"zero": jnp.float32(0)},
        )

    def world(self, state, params):
        return jnp.zeros(7, jnp.float32)

"""Hand-written play for `multi/tag`: predators that chase, prey that flees, and both at rest.

A script reads the observation rows of its own group alone; of the physics it knows the environment's default numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.multi.particles import MOVES, Physics, length
from envs_jax.scripts import Script, reflex

_PUSHES = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]], np.float32)  # of the five moves
_LEAD = 0.3  # seconds by which a chaser aims ahead
_HOLD = (3, 7)  # steps for which fleeing prey would keep its next move and the one after it
_PLANS = np.array(list(itertools.product(range(MOVES), repeat=2)))  # [25, 2]
_SCARE = 0.15  # the distance by which a predator frightens e times less
_PURSUIT = 0.6  # the part of their highest speed with which predators are expected to come nearer
_WALL, _WALL_WEIGHT = 0.85, 8.0  # from where prey turns back, and how urgently
_OBSTACLE_WEIGHT = 4.0


class Sizes(NamedTuple):
    """Who there is."""

    predators: int
    prey: int
    obstacles: int


class Seen(NamedTuple):
    """The observation rows of k agents, taken apart."""

    velocity: jax.Array  # [k, 2]
    position: jax.Array  # [k, 2]
    obstacles: jax.Array  # [k, L, 2], the way to each
    ways: jax.Array  # [k, A − 1, 2], the way to each other agent
    fast: jax.Array  # [k, ..., 2], the velocities of prey


def tag_scripts(sizes: Sizes, physics: Physics, continuous: bool) -> Mapping[str, Mapping[str, Script]]:
    """{group: {name: Script}} for worlds of these sizes and numbers."""

    def script(choose: Callable[[Seen], jax.Array]) -> Script:
        def act(key: jax.Array, observation: jax.Array, action_mask: object) -> jax.Array:
            move = choose(_seen(observation, sizes))
            return jax.nn.one_hot(move, MOVES, dtype=jnp.float32) if continuous else move

        return reflex(act)

    return MappingProxyType(
        {
            "predator": MappingProxyType({"chase": script(lambda seen: _chase(seen, sizes)), "rest": script(_rest)}),
            "prey": MappingProxyType({"flee": script(lambda seen: _flee(seen, sizes, physics)), "rest": script(_rest)}),
        }
    )


def _seen(observation: jax.Array, sizes: Sizes) -> Seen:
    k, others = observation.shape[0], sizes.predators + sizes.prey - 1
    parts = jnp.split(observation, np.cumsum([2, 2, 2 * sizes.obstacles, 2 * others]), axis=1)
    return Seen(parts[0], parts[1], *(part.reshape(k, part.shape[1] // 2, 2) for part in parts[2:]))


def _rest(seen: Seen) -> jax.Array:
    return jnp.zeros(seen.velocity.shape[0], jnp.int32)


def _chase(seen: Seen, sizes: Sizes) -> jax.Array:
    """The push along the axis on which the nearest prey will be further away, by both velocities, [k]."""
    prey = seen.ways[:, sizes.predators - 1 :]
    ahead = prey + _LEAD * (seen.fast - seen.velocity[:, None, :])
    nearest = jnp.argmin(length(prey), axis=1)
    aim = jnp.take_along_axis(ahead, nearest[:, None, None], axis=1)[:, 0]
    return jnp.argmax(aim @ jnp.asarray(_PUSHES).T, axis=1).astype(jnp.int32)


def _flee(seen: Seen, sizes: Sizes, physics: Physics) -> jax.Array:
    """The first move of the plan of two that keeps furthest from predators, obstacles and the edge, [k]."""
    plans = np.repeat(_PUSHES[_PLANS], _HOLD, axis=1)  # [25, steps, 2]
    acceleration, fastest = physics.acceleration[-1], physics.max_speed[-1]
    predators, slow = seen.ways[:, None, : sizes.predators], physics.max_speed[0]
    touch = physics.radius[0] + physics.radius[sizes.predators]
    bump = physics.radius[sizes.predators] + (physics.radius[-1] if sizes.obstacles else 0.0)

    def step(carry: tuple[jax.Array, jax.Array, jax.Array], inputs: tuple[jax.Array, jax.Array]):
        moved, velocity, cost = carry  # [k, 25, 2], [k, 25, 2], [k, 25]
        push, time = inputs
        moved = moved + velocity * physics.dt
        velocity = velocity * (1.0 - physics.damping) + acceleration * physics.dt * push[None, :, :]
        velocity = velocity * jnp.minimum(fastest / length(velocity), 1.0)[..., None]
        room = length(predators - moved[:, :, None, :]) - touch - _PURSUIT * slow * time
        cost = cost + jnp.sum(jnp.exp(-jnp.maximum(room, -touch) / _SCARE), axis=-1)
        close = bump - length(seen.obstacles[:, None] - moved[:, :, None, :])
        cost = cost + _OBSTACLE_WEIGHT * jnp.sum(jnp.maximum(close, 0.0), axis=-1)
        beyond = jnp.abs(seen.position[:, None, :] + moved) - _WALL
        return (moved, velocity, cost + _WALL_WEIGHT * jnp.sum(jnp.maximum(beyond, 0.0), axis=-1)), None

    shape = (seen.velocity.shape[0], len(_PLANS))
    velocity = jnp.broadcast_to(seen.velocity[:, None, :], (*shape, 2))
    start = (jnp.zeros((*shape, 2), jnp.float32), velocity, jnp.zeros(shape, jnp.float32))
    times = physics.dt * jnp.arange(1, plans.shape[1] + 1, dtype=jnp.float32)
    (_, _, cost), _ = jax.lax.scan(step, start, (jnp.asarray(plans.swapaxes(0, 1)), times))
    return jnp.asarray(_PLANS[:, 0], jnp.int32)[jnp.argmin(cost, axis=1)]

"""What the particle worlds share: their physics, actions and pictures.

They are the multi-agent particle environments of Lowe et al. (2017), "Multi-agent actor-critic for mixed
cooperative-competitive environments", arXiv:1706.02275; dynamics, observations and rewards are those of jaxmarl 0.2.
Bodies are discs in a plane without borders. In a step of `dt` seconds a body moves by its velocity, loses the part `damping` of
it, gains force / mass · dt and is held to `max_speed`. Bodies push each other apart by a force along the line between them,

    contact_force · margin · log(1 + exp((r₁ + r₂ − distance) / margin)),

which is 0 far apart and rises with the depth to which they overlap. There is no noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, TimeStep
from envs_jax.names import unknown
from envs_jax.pictures import Colour, plane
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers.checks import whole

MOVES = 5  # rest, left, right, down, up
UNLIMITED = 1e6  # a speed that nothing reaches; finite, so that derivatives exist
ACTIONS = ("discrete", "continuous")
LEAST = 1e-6  # of what is divided by
PHYSICS = {"damping": (0.0, 1.0)} | dict.fromkeys(("dt", "contact_margin", "mass"), (LEAST, math.inf))
PHYSICS |= dict.fromkeys(("contact_force", "radius", "acceleration", "max_speed"), (0.0, math.inf))


@struct.dataclass
class Physics:
    """The numbers of a world of A moving bodies and L landmarks."""

    dt: jax.Array  # seconds of a step
    damping: jax.Array  # 0 … 1, the part of the velocity that is lost in a step
    contact_force: jax.Array
    contact_margin: jax.Array  # > 0, a length: how soft contacts are
    radius: jax.Array  # [A + L], the moving bodies first
    mass: jax.Array  # [A]
    acceleration: jax.Array  # [A], the force of a full push
    max_speed: jax.Array  # [A]


@struct.dataclass
class Bodies:
    """Where everything is, after `time` steps."""

    time: jax.Array  # int32 []
    position: jax.Array  # float32 [A, 2], x to the right and y upwards
    velocity: jax.Array  # float32 [A, 2]
    landmarks: jax.Array  # float32 [L, 2]


def numbers(
    radius: Sequence[float], acceleration: Sequence[float], max_speed: Sequence[float] | None = None
) -> dict[str, jax.Array]:
    """The fields of `Physics` by MPE's defaults (jaxmarl: mpe/default_params.py), for A accelerations and A + L radii."""
    agents = len(acceleration)
    return {
        "dt": jnp.float32(0.1),
        "damping": jnp.float32(0.25),
        "contact_force": jnp.float32(100),
        "contact_margin": jnp.float32(1e-3),
        "radius": jnp.asarray(radius, jnp.float32),
        "mass": jnp.ones(agents, jnp.float32),
        "acceleration": jnp.asarray(acceleration, jnp.float32),
        "max_speed": jnp.asarray([UNLIMITED] * agents if max_speed is None else max_speed, jnp.float32),
    }


def length(vector: jax.Array) -> jax.Array:
    """The Euclidean length [...] of vectors [..., 2], at least 1e-8, with a derivative at 0."""
    return jnp.sqrt(jnp.maximum(jnp.square(vector[..., 0]) + jnp.square(vector[..., 1]), 1e-16))


def offsets(origins: jax.Array, targets: jax.Array) -> jax.Array:
    """The way from each of k origins to each of m targets, [k, m, 2]."""
    return targets[None, :, :] - origins[:, None, :]


def others(pairs: jax.Array) -> jax.Array:
    """Rows [A, A, ...] of pairs of agents without each agent's pair with itself: [A, A − 1, ...], in order of the others."""
    agents, rest = pairs.shape[0], pairs.shape[2:]
    shifted = pairs.reshape(agents * agents, *rest)[1:].reshape(agents - 1, agents + 1, *rest)
    return shifted[:, :-1].reshape(agents, agents - 1, *rest)


def _contact(offset: jax.Array, least: jax.Array, physics: Physics) -> jax.Array:
    """The force [A, 2] on bodies by others that lie at `offset` [A, 2] from them and touch `least` [A] apart."""
    distance = length(offset)
    x = (least - distance) / physics.contact_margin
    depth = physics.contact_margin * (jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x))))
    return -(physics.contact_force * depth / distance)[:, None] * offset


def contacts(bodies: Bodies, physics: Physics, landmarks: bool = False) -> jax.Array:
    """The forces [A, 2] by which the moving bodies push each other apart, and where `landmarks` collide, these push them.

    Each pair is computed once, by shifts along the axis of bodies: a sum over a matrix of pairs takes up to 20 times as long.
    """
    position, agents = bodies.position, len(bodies.position)
    radius = physics.radius[:agents]
    force = jnp.zeros_like(position)
    for shift in range(1, agents // 2 + 1):
        least = radius + jnp.roll(radius, -shift)
        pushed = _contact(jnp.roll(position, -shift, axis=0) - position, least, physics)
        force = force + pushed
        if 2 * shift != agents:  # halfway round both bodies of a pair meet each other
            force = force - jnp.roll(pushed, shift, axis=0)
    for number in range(len(bodies.landmarks) if landmarks else 0):
        offset = bodies.landmarks[number][None, :] - position
        force = force + _contact(offset, radius + physics.radius[agents + number], physics)
    return force


def touching(offset: jax.Array, least: jax.Array) -> jax.Array:
    """Whether bodies at `offset` [..., 2] overlap that touch `least` [...] apart; bool [...]."""
    return length(offset) < least


def moved(bodies: Bodies, force: jax.Array, physics: Physics) -> Any:
    """The bodies one step later, under a force [A, 2]."""
    velocity = bodies.velocity * (1.0 - physics.damping) + force / physics.mass[:, None] * physics.dt
    velocity = velocity * jnp.minimum(physics.max_speed / length(velocity), 1.0)[:, None]
    return bodies.replace(time=bodies.time + 1, position=bodies.position + bodies.velocity * physics.dt, velocity=velocity)


def scattered(key: jax.Array, agents: int, landmarks: int) -> dict[str, jax.Array]:
    """The fields of `Bodies` at the start of an episode: all at rest, uniformly in the square from −1 to 1."""
    position = jax.random.uniform(key, (agents + landmarks, 2), minval=-1.0, maxval=1.0)
    return {
        "time": jnp.int32(0),
        "position": position[:agents],
        "velocity": jnp.zeros((agents, 2), jnp.float32),
        "landmarks": position[agents:],
    }


class ParticleWorld(Env):
    """A particle environment's arguments and clock. Actions are moves:

    discrete: 0 rest, 1 left, 2 right, 3 down, 4 up, a full push each
    continuous: a Box [0, 1] of five, the push being (a₂ − a₁, a₄ − a₃); a₀ does nothing
    """

    reset_mode = "pool"
    ranges = PHYSICS

    def __init__(self, name: str, time_limit: int, actions: str):
        if actions not in ACTIONS:
            raise unknown(f"actions of multi/{name}", actions, ACTIONS)
        self.time_limit = whole(f"multi/{name}: time_limit", time_limit)
        self.continuous = actions == "continuous"

    def action_space(self, width: int) -> Box | Discrete:
        """The space of `width` moves or words, by the kind of action that was chosen."""
        return Box(0, 1, (width,)) if self.continuous else Discrete(width)

    def push(self, move: jax.Array) -> jax.Array:
        """The direction [..., 2] of moves: int32 [...], or the first five of float32 [..., 5 or more] when continuous."""
        part = self.words(move, MOVES)
        return part[..., 2::2] - part[..., 1::2]

    def words(self, action: jax.Array, count: int) -> jax.Array:
        """What is said, float32 [..., count]: int32 [...] one-hot, or the first `count` numbers of float32 [..., w]."""
        return action[..., :count] if self.continuous else jax.nn.one_hot(action, count, dtype=jnp.float32)

    def timestep(self, state: Any, observation: jax.Array, metrics: dict[str, jax.Array], mask: Any = ()) -> TimeStep:
        """The TimeStep [A, ...] of a state: everybody lives until the time limit, which is no death."""
        agents = len(observation)
        return TimeStep(
            observation=observation,
            reward=jnp.zeros(agents, jnp.float32),
            discount=jnp.ones(agents, jnp.float32),
            alive=jnp.ones(agents, bool),
            last=state.time >= self.time_limit,
            action_mask=mask,
            metrics=metrics,
        )


def vector_space(size: int) -> Box:
    """Vectors of unbounded numbers: the plane has no borders."""
    return Box(-math.inf, math.inf, (size,))


def picture(bodies: Bodies, radius: Sequence[float], colours: Sequence[Colour | jax.Array]) -> jax.Array:
    """Discs, the larger ones below, RGB uint8 [160, 160, 3].

    `radius` and `colours`: one for each moving body, then one for each landmark.
    """
    return plane(jnp.concatenate([bodies.position, bodies.landmarks]), radius, colours)

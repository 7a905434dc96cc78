"""Predators and prey, MPE's `simple_tag`: slow predators hunt a faster prey around obstacles.

Source: Lowe et al. (2017), arXiv:1706.02275, section 5.1; jaxmarl 0.2, mpe/simple_tag.py, whose dynamics, observations and
rewards these are for the same states and actions. (Its 25 steps last 26; here `time_limit` is exact. With
several prey jaxmarl shows the velocity of the last alone; here, as in PettingZoo, each prey's is seen.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import EnvSpec, Group, TimeStep
from envs_jax.multi import particles
from envs_jax.multi.particles import MOVES, Bodies, Physics, offsets, others
from envs_jax.multi.tag_scripts import Sizes, tag_scripts
from envs_jax.wrappers.checks import whole

PREDATOR, PREY, OBSTACLE = (243, 115, 115), (115, 243, 115), (84, 84, 96)
RADIUS = (0.075, 0.05, 0.2)  # of a predator, a prey and an obstacle
ACCELERATION, MAX_SPEED = (3.0, 4.0), (1.0, 1.3)  # of a predator and of a prey


@struct.dataclass
class Params(Physics):
    tag_reward: jax.Array  # for every touch of a predator and a prey, and what it costs that prey
    edge: jax.Array  # distance from the middle, along an axis, from which a prey pays
    edge_slope: jax.Array  # how fast that rises up to the wall
    wall: jax.Array  # the distance of the arena's wall, which stops nobody
    wall_growth: jax.Array  # behind it a prey pays exp(wall_growth · (distance − wall))
    wall_most: jax.Array  # or this, if that is less


@struct.dataclass
class State(Bodies):
    tagged: jax.Array  # bool []: a predator has touched a prey in this episode


class Tag(particles.ParticleWorld):
    """`multi/tag`. Two groups, k predators and m prey, and L obstacles, at random places; everything collides.

    Actions: see `ParticleWorld`. An episode is `time_limit` steps, which cut it. A = k + m agents, predators first. A predator
    observes 4 + 2 L + 2 (A − 1) + 2 m numbers:

        0, 1                its velocity
        2, 3                its position
        4 … 3 + 2 L         the way to each obstacle
        then 2 (A − 1)      the way to each other agent, in order: predators, then prey
        then 2 m            the velocity of each prey

    and a prey the same, but 2 (m − 1) velocities, of the other prey, padded with zeros.

    Rewards are individual. At each step, with touches of a predator and a prey counted after it: every predator is paid
    `tag_reward` · (all touches); a prey pays `tag_reward` · (its own touches), and for leaving the middle, along each axis at
    distance x, `edge_slope` · (x − `edge`) from `edge` to `wall`, and min(exp(`wall_growth` · (x − `wall`)), `wall_most`) from
    there. The world is the positions of agents and obstacles and the velocities. Metrics: `tags`, the sum over steps of
    touches; `success`, the predators': there was one; `outside`, the part of prey and steps beyond the wall.

    Scripts: predators `chase` and `rest`, prey `flee` and `rest`.
    """

    def __init__(
        self,
        num_predators: int = 3,
        num_prey: int = 1,
        num_obstacles: int = 2,
        time_limit: int = 25,
        actions: str = "discrete",
    ):
        super().__init__("tag", time_limit, actions)
        predators = self._predators = whole("multi/tag: num_predators", num_predators)
        prey = self._prey = whole("multi/tag: num_prey", num_prey)
        obstacles = self._obstacles = whole("multi/tag: num_obstacles", num_obstacles, least=0)
        self._agents = predators + prey
        self._radius = [RADIUS[0]] * predators + [RADIUS[1]] * prey + [RADIUS[2]] * obstacles
        accelerations, speeds = ([own[0]] * predators + [own[1]] * prey for own in (ACCELERATION, MAX_SPEED))
        self.default_params = Params(
            **particles.numbers(self._radius, accelerations, speeds),
            tag_reward=jnp.float32(10),
            edge=jnp.float32(0.9),
            edge_slope=jnp.float32(10),
            wall=jnp.float32(1),
            wall_growth=jnp.float32(2),
            wall_most=jnp.float32(10),
        )
        common, move = 4 + 2 * obstacles + 2 * (self._agents - 1), self.action_space(MOVES)
        widths = {"predator": common + 2 * prey, "prey": common + 2 * (prey - 1)}
        self.spec = EnvSpec(
            observation_space=particles.vector_space(widths["predator"]),
            action_space=move,
            num_agents=self._agents,
            world_space=particles.vector_space(4 * self._agents + 2 * obstacles),
            metrics={"tags": "sum", "success": "last", "outside": "mean"},
            episode_limit=self.time_limit,
            groups=tuple(
                Group(name, size, particles.vector_space(widths[name]), move)
                for name, size in (("predator", predators), ("prey", prey))
            ),
        )
        self.scripts = tag_scripts(Sizes(predators, prey, obstacles), self.default_params, self.continuous)

    def initial(self, key: jax.Array, params: Params) -> State:
        return State(**particles.scattered(key, self._agents, self._obstacles), tagged=jnp.bool_(False))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        force = self.push(action) * params.acceleration[:, None] + particles.contacts(state, params, landmarks=True)
        state = particles.moved(state, force, params)
        touches = self._touches(state, params)
        hunt = jnp.full(self._predators, params.tag_reward * jnp.sum(touches))
        cost = params.tag_reward * jnp.sum(touches, axis=0) + self._edge(state.position[self._predators :], params)
        return state.replace(tagged=state.tagged | jnp.any(touches > 0)), jnp.concatenate([hunt, -cost])

    def observe(self, state: State, params: Params) -> TimeStep:
        position, predators = state.position, self._predators
        prey_velocity = jnp.broadcast_to(state.velocity[None, predators:], (self._agents, self._prey, 2))
        hunted = prey_velocity[:predators].reshape(predators, -1)
        mates = others(prey_velocity[predators:]).reshape(self._prey, -1)
        fast = jnp.concatenate([hunted, jnp.concatenate([mates, jnp.zeros((self._prey, 2), jnp.float32)], axis=1)])
        seen = [
            state.velocity,
            position,
            offsets(position, state.landmarks).reshape(self._agents, -1),
            others(offsets(position, position)).reshape(self._agents, -1),
            fast,
        ]
        metrics = {
            "tags": jnp.sum(self._touches(state, params)),
            "success": state.tagged.astype(jnp.float32),
            "outside": jnp.mean(jnp.any(jnp.abs(position[predators:]) > params.wall, axis=-1).astype(jnp.float32)),
        }
        return self.timestep(state, jnp.concatenate(seen, axis=-1), metrics)

    def world(self, state: State, params: Params) -> jax.Array:
        return jnp.concatenate([state.position, state.landmarks, state.velocity]).reshape(-1)

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [160, 160, 3]: obstacles grey, predators red, prey green."""
        colours = [PREDATOR] * self._predators + [PREY] * self._prey + [OBSTACLE] * self._obstacles
        return particles.picture(state, self._radius, colours)

    def _touches(self, state: State, params: Params) -> jax.Array:
        """Who touches whom, float32 [k, m]: 1 where a predator and a prey overlap."""
        radius, k = params.radius, self._predators
        least = radius[:k, None] + radius[None, k : self._agents]
        return particles.touching(offsets(state.position[:k], state.position[k:]), least).astype(jnp.float32)

    def _edge(self, position: jax.Array, params: Params) -> jax.Array:
        """What prey at [m, 2] pay for leaving the middle, [m]."""
        x = jnp.abs(position)
        beyond = jnp.minimum(jnp.exp(params.wall_growth * (x - params.wall)), params.wall_most)
        cost = jnp.where(x < params.wall, (x - params.edge) * params.edge_slope, beyond)
        return jnp.sum(jnp.where(x < params.edge, 0.0, cost), axis=-1)

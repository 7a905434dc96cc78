"""Cooperative navigation, MPE's `simple_spread`: agents cover landmarks without touching each other.

Source: Lowe et al. (2017), arXiv:1706.02275, section 5.1; jaxmarl 0.2, mpe/simple_spread.py, whose dynamics, observations and
rewards these are for the same states and actions. (Its 25 steps last 26; here `time_limit` is exact.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import EnvSpec, TimeStep
from envs_jax.multi import particles
from envs_jax.multi.particles import MOVES, Bodies, Physics, length, offsets, others
from envs_jax.wrappers.checks import whole

AGENT, LANDMARK = (115, 243, 115), (150, 150, 160)
RADIUS, LANDMARK_RADIUS = 0.15, 0.05


@struct.dataclass
class Params(Physics):
    local_ratio: jax.Array  # 0 … 1, the weight of an agent's own collisions; the rest is the weight of what all share
    reach: jax.Array  # how near a landmark is covered (MPE's benchmark data: 0.1)


class Spread(particles.ParticleWorld):
    """`multi/spread`. A agents and L landmarks start at random places; an episode is `time_limit` steps, which cut it.

    Actions: see `ParticleWorld`. An agent observes 4 + 2 L + 4 (A − 1) numbers:

        0, 1                its velocity
        2, 3                its position
        4 … 3 + 2 L         the way to each landmark
        then 2 (A − 1)      the way to each other agent, in order
        then 2 (A − 1)      zeros: what the others say, which is nothing

    Agent i is paid at each step, with d the distances after it,

        local_ratio · (−number of agents that it touches) + (1 − local_ratio) · (−Σ over landmarks of min over agents d).

    `env.reward: team` pays everybody the sum over agents. The world is the positions of agents and of landmarks and the
    velocities. Metrics: `success`, every landmark has an agent within `reach` at the end; `covered`, how many have then;
    `collisions`, the sum over steps of pairs that touch; `distance`, the mean over steps and landmarks of the nearest agent's.
    """

    ranges = particles.PHYSICS | {"local_ratio": (0.0, 1.0)}

    def __init__(self, num_agents: int = 3, num_landmarks: int = 3, time_limit: int = 25, actions: str = "discrete"):
        super().__init__("spread", time_limit, actions)
        agents = self._agents = whole("multi/spread: num_agents", num_agents)
        landmarks = self._landmarks = whole("multi/spread: num_landmarks", num_landmarks)
        self.default_params = Params(
            **particles.numbers([RADIUS] * agents + [LANDMARK_RADIUS] * landmarks, [5.0] * agents),
            local_ratio=jnp.float32(0.5),
            reach=jnp.float32(0.1),
        )
        self.spec = EnvSpec(
            observation_space=particles.vector_space(4 + 2 * landmarks + 4 * (agents - 1)),
            action_space=self.action_space(MOVES),
            num_agents=agents,
            world_space=particles.vector_space(4 * agents + 2 * landmarks),
            metrics={"success": "last", "covered": "last", "collisions": "sum", "distance": "mean"},
            episode_limit=self.time_limit,
        )

    def initial(self, key: jax.Array, params: Params) -> Bodies:
        return Bodies(**particles.scattered(key, self._agents, self._landmarks))

    def advance(self, key: jax.Array, state: Bodies, action: jax.Array, params: Params) -> tuple[Bodies, jax.Array]:
        force = self.push(action) * params.acceleration[:, None] + particles.contacts(state, params)
        state = particles.moved(state, force, params)
        own = -jnp.sum(self._touching(state, params).astype(jnp.float32), axis=1)
        shared = -jnp.sum(self._nearest(state))
        return state, own * params.local_ratio + shared * (1.0 - params.local_ratio)

    def observe(self, state: Bodies, params: Params) -> TimeStep:
        position = state.position
        seen = [
            state.velocity,
            position,
            offsets(position, state.landmarks).reshape(self._agents, -1),
            others(offsets(position, position)).reshape(self._agents, -1),
            jnp.zeros((self._agents, 2 * (self._agents - 1)), jnp.float32),
        ]
        nearest = self._nearest(state)
        covered = nearest < params.reach
        metrics = {
            "success": jnp.all(covered).astype(jnp.float32),
            "covered": jnp.sum(covered.astype(jnp.float32)),
            "collisions": jnp.sum(self._touching(state, params).astype(jnp.float32)) / 2.0,
            "distance": jnp.mean(nearest),
        }
        return self.timestep(state, jnp.concatenate(seen, axis=-1), metrics)

    def world(self, state: Bodies, params: Params) -> jax.Array:
        return jnp.concatenate([state.position, state.landmarks, state.velocity]).reshape(-1)

    def render(self, state: Bodies) -> jax.Array:
        """An RGB picture, uint8 [160, 160, 3]: landmarks grey, agents green."""
        radius = [RADIUS] * self._agents + [LANDMARK_RADIUS] * self._landmarks
        return particles.picture(state, radius, [AGENT] * self._agents + [LANDMARK] * self._landmarks)

    def _least(self, params: Params) -> jax.Array:
        radius = params.radius[: self._agents]
        return radius[:, None] + radius[None, :]

    def _touching(self, state: Bodies, params: Params) -> jax.Array:
        """Who touches whom, bool [A, A − 1], each agent's own row without itself."""
        overlap = particles.touching(offsets(state.position, state.position), self._least(params))
        return others(overlap)

    def _nearest(self, state: Bodies) -> jax.Array:
        """The distance of the nearest agent to each landmark, [L]."""
        return jnp.min(length(offsets(state.position, state.landmarks)), axis=0)

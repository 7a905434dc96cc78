"""Cooperative communication both ways, MPE's `simple_reference`: each knows where the other has to go.

Source: Lowe et al. (2017), arXiv:1706.02275; jaxmarl 0.2, mpe/simple_reference.py, whose dynamics, observations and rewards
these are for the same states and actions. (Its 25 steps last 26; here `time_limit` is exact.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import EnvSpec, TimeStep
from envs_jax.multi import particles
from envs_jax.multi.particles import MOVES, Bodies, Physics
from envs_jax.pictures import palette
from envs_jax.wrappers.checks import whole

AGENTS = 2
RADIUS, LANDMARK_RADIUS = 0.15, 0.2


@struct.dataclass
class Params(Physics):
    local_ratio: jax.Array  # 0 … 1, the weight of the mate's own distance; the rest is the weight of the mean over both
    colour: jax.Array  # what an agent sees at its mate's goal (MPE: 0.75)
    no_colour: jax.Array  # and at the other landmarks (MPE: 0.25)
    reach: jax.Array  # how near a goal is reached


@struct.dataclass
class State(Bodies):
    goal: jax.Array  # int32 [2]: the landmark that each agent has to go to, known to the other alone
    message: jax.Array  # float32 [2, W]: what each said last


class Reference(particles.ParticleWorld):
    """`multi/reference`. Two alike agents, L landmarks, W words. An episode is `time_limit` steps, which cut it.

    Each agent moves and speaks at once. Discrete: one of 5 W actions, move + 5 · word, as in jaxmarl; one Discrete rather than
    two heads, so that learners of action values, which need it, can play too. Continuous: a Box [0, 1] of the five numbers of
    a move (see `ParticleWorld`) and W numbers that are said as they are. Nothing collides. An agent observes 2 + 3 L + W
    numbers:

        0, 1                its velocity
        then 2 L            the way to each landmark
        then L              `colour` at the other agent's goal, `no_colour` at the other landmarks
        then W              what the other agent said in the last step, zeros at first

    With eᵢ minus the distance of agent i from its own goal after the step, agent i is paid
    local_ratio · e of the other + (1 − local_ratio) · (e₀ + e₁) / 2. The world is the positions of agents and landmarks, the
    velocities, the goals one-hot and the messages. Metrics: `success`, both are within `reach` of their goals at the end;
    `distance`, the mean over steps and agents of the distance.
    """

    ranges = particles.PHYSICS | {"local_ratio": (0.0, 1.0)}

    def __init__(self, num_landmarks: int = 3, num_words: int = 10, time_limit: int = 25, actions: str = "discrete"):
        super().__init__("reference", time_limit, actions)
        landmarks = self._landmarks = whole("multi/reference: num_landmarks", num_landmarks)
        words = self._words = whole("multi/reference: num_words", num_words)
        self.default_params = Params(
            **particles.numbers([RADIUS] * AGENTS + [LANDMARK_RADIUS] * landmarks, [5.0] * AGENTS),
            local_ratio=jnp.float32(0.5),
            colour=jnp.float32(0.75),
            no_colour=jnp.float32(0.25),
            reach=jnp.float32(0.1),
        )
        self.spec = EnvSpec(
            observation_space=particles.vector_space(2 + 3 * landmarks + words),
            action_space=self.action_space(MOVES + words if self.continuous else MOVES * words),
            num_agents=AGENTS,
            world_space=particles.vector_space(8 + 4 * landmarks + 2 * words),
            metrics={"success": "last", "distance": "mean"},
            episode_limit=self.time_limit,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        key_places, key_goal = jax.random.split(key)
        goal = jax.random.randint(key_goal, (AGENTS,), 0, self._landmarks, jnp.int32)
        places = particles.scattered(key_places, AGENTS, self._landmarks)
        return State(**places, goal=goal, message=jnp.zeros((AGENTS, self._words), jnp.float32))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        move, word = (action, action[:, MOVES:]) if self.continuous else (action % MOVES, action // MOVES)
        state = particles.moved(state, self.push(move) * params.acceleration[:, None], params)
        state = state.replace(message=self.words(word, self._words))
        mate = -self._distances(state)[::-1]
        return state, mate * params.local_ratio + jnp.mean(mate) * (1.0 - params.local_ratio)

    def observe(self, state: State, params: Params) -> TimeStep:
        colours = jnp.where(self._goals(state), params.colour, params.no_colour)
        ways = particles.offsets(state.position, state.landmarks).reshape(AGENTS, -1)
        seen = jnp.concatenate([state.velocity, ways, colours[::-1], state.message[::-1]], axis=-1)
        distance = self._distances(state)
        success = jnp.all(distance < params.reach).astype(jnp.float32)
        return self.timestep(state, seen, {"success": success, "distance": jnp.mean(distance)})

    def world(self, state: State, params: Params) -> jax.Array:
        goals = self._goals(state).astype(jnp.float32)
        parts = (state.position, state.landmarks, state.velocity, goals, state.message)
        return jnp.concatenate([part.reshape(-1) for part in parts])

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [160, 160, 3]: the landmarks, and each agent in the colour of the landmark it has to go to."""
        colours = palette(self._landmarks)
        goals = jnp.asarray(colours, jnp.uint8)[state.goal]
        radius = [RADIUS / 2] * AGENTS + [LANDMARK_RADIUS] * self._landmarks
        return particles.picture(state, radius, [goals[0], goals[1], *colours])

    def _goals(self, state: State) -> jax.Array:
        """Which landmark each agent has to go to, bool [2, L]."""
        return state.goal[:, None] == jnp.arange(self._landmarks)[None, :]

    def _distances(self, state: State) -> jax.Array:
        """Each agent's distance from its own goal, [2]."""
        ways = particles.offsets(state.position, state.landmarks)
        return particles.length(jnp.sum(jnp.where(self._goals(state)[..., None], ways, 0.0), axis=1))

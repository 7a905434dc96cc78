"""Cooperative communication, MPE's `simple_speaker_listener`: one knows the goal and speaks, the other moves and listens.

Source: Lowe et al. (2017), arXiv:1706.02275, section 5.1; jaxmarl 0.2, mpe/simple_speaker_listener.py, whose dynamics,
observations and rewards these are for the same states and actions. (Its 25 steps last 26; here `time_limit` is exact.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs_jax.core import EnvSpec, Group, TimeStep
from envs_jax.multi import particles
from envs_jax.multi.particles import MOVES, Bodies, Physics
from envs_jax.pictures import palette
from envs_jax.wrappers.checks import whole

SPEAKER, LISTENER = 0, 1
RADIUS, LANDMARK_RADIUS = 0.075, 0.04
SILENT = (150, 150, 160)


@struct.dataclass
class Params(Physics):
    """Of the one body that moves, the listener's (A = 1)."""

    colour: jax.Array  # what the speaker sees at the goal (MPE: 0.65)
    no_colour: jax.Array  # and at the other landmarks (MPE: 0.15)
    reach: jax.Array  # how near the goal is reached


@struct.dataclass
class State(Bodies):
    goal: jax.Array  # int32 []: the landmark to go to
    message: jax.Array  # float32 [L]: what the speaker said last


class SpeakerListener(particles.ParticleWorld):
    """`multi/speaker_listener`. Two groups of one agent, `speaker` and `listener`, and L landmarks, one of them the goal.

    The speaker has L words, discrete: one of them, sent as a one-hot vector; continuous: any vector in [0, 1]^L, sent as it
    is. The listener has the five moves of `ParticleWorld`. Surplus actions are masked. Nothing collides. An episode is
    `time_limit` steps, which cut it. The speaker observes L numbers, padded with zeros to the listener's 2 + 3 L:

        0 … L − 1           `colour` at the goal, `no_colour` at the other landmarks

    and the listener

        0, 1                its velocity
        then 2 L            the way to each landmark
        then L              what was said in the last step, zeros at first

    Both are paid minus the squared distance of the listener from the goal after the step, a team reward. The world is the
    listener's position, the landmarks, its velocity, the goal one-hot and the message. Metrics: `success`, the listener is
    within `reach` of the goal at the end; `distance`, the mean over steps of its distance.
    """

    def __init__(self, num_landmarks: int = 3, time_limit: int = 25, actions: str = "discrete"):
        super().__init__("speaker_listener", time_limit, actions)
        landmarks = self._landmarks = whole("multi/speaker_listener: num_landmarks", num_landmarks)
        self.default_params = Params(
            **particles.numbers([RADIUS] + [LANDMARK_RADIUS] * landmarks, [5.0]),
            colour=jnp.float32(0.65),
            no_colour=jnp.float32(0.15),
            reach=jnp.float32(0.1),
        )
        seen, widest = 2 + 3 * landmarks, max(landmarks, MOVES)
        speaker = Group("speaker", 1, particles.vector_space(landmarks), self.action_space(landmarks))
        listener = Group("listener", 1, particles.vector_space(seen), self.action_space(MOVES))
        self.spec = EnvSpec(
            observation_space=particles.vector_space(seen),
            action_space=self.action_space(widest),
            num_agents=2,
            world_space=particles.vector_space(4 + 4 * landmarks),
            reward="team",
            metrics={"success": "last", "distance": "mean"},
            episode_limit=self.time_limit,
            groups=(speaker, listener),
        )
        self._legal = np.arange(widest) < np.array([[landmarks], [MOVES]])

    def initial(self, key: jax.Array, params: Params) -> State:
        key_places, key_goal = jax.random.split(key)
        places = particles.scattered(key_places, 1, self._landmarks)
        goal = jax.random.randint(key_goal, (), 0, self._landmarks, jnp.int32)
        return State(**places, goal=goal, message=jnp.zeros(self._landmarks, jnp.float32))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        state = particles.moved(state, self.push(action[LISTENER:]) * params.acceleration[:, None], params)
        state = state.replace(message=self.words(action[SPEAKER], self._landmarks))
        reward = -jnp.sum(jnp.square(self._way(state)))
        return state, jnp.full(2, reward)

    def observe(self, state: State, params: Params) -> TimeStep:
        colours = jnp.where(self._goal(state), params.colour, params.no_colour)
        ways = particles.offsets(state.position, state.landmarks).reshape(-1)
        speaker = jnp.concatenate([colours, jnp.zeros(2 + 2 * self._landmarks, jnp.float32)])
        listener = jnp.concatenate([state.velocity[0], ways, state.message])
        distance = particles.length(self._way(state))
        metrics = {"success": (distance < params.reach).astype(jnp.float32), "distance": distance}
        mask = () if self.continuous else jnp.asarray(self._legal)
        return self.timestep(state, jnp.stack([speaker, listener]), metrics, mask)

    def world(self, state: State, params: Params) -> jax.Array:
        places = jnp.concatenate([state.position, state.landmarks, state.velocity]).reshape(-1)
        return jnp.concatenate([places, self._goal(state).astype(jnp.float32), state.message])

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [160, 160, 3]: the landmarks in colours of their own and the listener, which wears the colour
        of the loudest word that it heard, and is grey before."""
        colours = palette(self._landmarks)
        heard = jnp.asarray(colours, jnp.uint8)[jnp.argmax(state.message)]
        heard = jnp.where(jnp.any(state.message > 0), heard, jnp.asarray(SILENT, jnp.uint8))
        return particles.picture(state, [RADIUS] + [LANDMARK_RADIUS] * self._landmarks, [heard, *colours])

    def _goal(self, state: State) -> jax.Array:
        """Which landmark is the goal, bool [L]."""
        return jnp.arange(self._landmarks) == state.goal

    def _way(self, state: State) -> jax.Array:
        """The way from the listener to the goal, [2]."""
        ways = particles.offsets(state.position, state.landmarks)[0]
        return jnp.sum(jnp.where(self._goal(state)[:, None], ways, 0.0), axis=0)

"""A tiny game of two groups whose every number is known: two hiders against a seeker."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, EnvSpec, Group, TimeStep
from envs_jax.scripts import Script, reflex
from envs_jax.spaces import Box, Discrete

LENGTH = 4


@struct.dataclass
class Params:
    prize: jax.Array  # float32 []: what a seeker is paid for each hider that it finds


@struct.dataclass
class State:
    time: jax.Array  # int32 []
    mark: jax.Array  # float32 []: tells starts apart, and is paid to every hider at each step
    did: jax.Array  # int32 [3]: what all did last
    found: jax.Array  # float32 []: how many hiders were found by it


def _alternate(carry, key, observation, action_mask, reset):
    count = jnp.where(reset, 0, carry)
    return count + 1, count % 2


class Duel(Env):
    """Four steps. Hiders choose 0 or 1, the seeker 0, 1 or 2, but 2 only at even times; it finds who chose the same.

    A hider is paid the episode's mark, and −1 when found. The first hider leaves after two steps and is paid no more. Hiders
    observe [time, mark], the seeker [time, mark, what the hiders did last]. The hiders' script `alternate` remembers.
    """

    scripts = {
        "hiders": {
            "still": reflex(lambda key, seen, mask: jnp.zeros(2, jnp.int32)),
            "alternate": Script(jnp.zeros, _alternate),
        },
        "seeker": {"copy": reflex(lambda key, seen, mask: seen[:, 3].astype(jnp.int32))},
    }

    def __init__(self, reward: str = "individual"):
        self.default_params = Params(jnp.float32(1))
        wide = Box((0, 0, 0, 0), (LENGTH, 1, 1, 1), (4,))
        groups = (Group("hiders", 2, Box((0, 0), (LENGTH, 1), (2,)), Discrete(2)), Group("seeker", 1, wide, Discrete(3)))
        self.spec = EnvSpec(
            observation_space=wide,
            action_space=Discrete(3),
            num_agents=3,
            reward=reward,
            metrics={"found": "sum", "success": "last"},
            episode_limit=LENGTH,
            groups=groups,
            world_space=Box(0, LENGTH, (1,)),
        )

    def initial(self, key, params):
        return State(jnp.int32(0), jax.random.uniform(key, (), jnp.float32), jnp.zeros(3, jnp.int32), jnp.float32(0))

    def advance(self, key, state, action, params):
        lives = self._lives(state)
        found = (action[:2] == action[2]) & lives[:2]
        hiders = jnp.where(lives[:2], state.mark - found, 0.0)
        reward = jnp.append(hiders, params.prize * jnp.sum(found)).astype(jnp.float32)
        reward = jnp.full(3, jnp.sum(reward)) if self.spec.reward == "team" else reward
        return State(state.time + 1, state.mark, action, jnp.sum(found).astype(jnp.float32)), reward

    def observe(self, state, params):
        lives, time = self._lives(state), state.time.astype(jnp.float32)
        over = state.time >= LENGTH
        rows = jnp.zeros((3, 4)).at[:, 0].set(time).at[:, 1].set(state.mark).at[2, 2:].set(state.did[:2])
        legal = jnp.ones((3, 3), bool).at[:2, 2].set(False).at[2, 2].set(state.time % 2 == 0)
        goes_on = jnp.full(3, ~over) & (lives | (self.spec.reward == "team"))
        return TimeStep(
            observation=rows,
            reward=jnp.zeros(3, jnp.float32),
            discount=goes_on.astype(jnp.float32),
            alive=lives,
            last=over,
            action_mask=legal,
            metrics={"found": state.found, "success": (state.found > 0).astype(jnp.float32)},
        )

    def world(self, state, params):
        return state.time.astype(jnp.float32)[None]

    @staticmethod
    def _lives(state):
        return jnp.stack([state.time < 2, jnp.bool_(True), jnp.bool_(True)])

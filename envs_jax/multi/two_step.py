"""The two-step game of Rashid et al. (2018), "QMIX", arXiv:1803.11485, section 5.1 and figure 2.

Two agents with two actions each, one team reward, two steps, no chance. In state 1 the first agent alone decides what is played
next: its action 0 leads to state 2A, action 1 to state 2B; nothing is paid. In the second step the joint action is paid by the
matrix of that state (rows: first agent, columns: second), and the episode truly ends:

    2A:  7  7        2B:  0  1
         7  7             1  8

The best return is 8, through 2B and action 1 of both. The value of 2B is no sum of one number an agent, so a learner that can
only add (VDN) undervalues 2B and settles for 7.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.pictures import tiles
from envs_jax.spaces import Box, Discrete

STATES = ("1", "2A", "2B")
AGENTS, ACTIONS = 2, 2
PALETTE = ((24, 24, 32), (88, 92, 104), (184, 192, 208), (240, 176, 40))  # ground, resting, to be decided, chosen


@struct.dataclass
class Params:
    payoff_2a: jax.Array  # float32 [2, 2]: first agent's action, second agent's
    payoff_2b: jax.Array


@struct.dataclass
class State:
    stage: jax.Array  # int32 []: 0, 1, 2 for state 1, 2A, 2B
    over: jax.Array  # bool []
    joint: jax.Array  # int32 [2]: what was done in the second step
    paid: jax.Array  # float32 []


class TwoStep(Env):
    """`multi/two_step`. Each agent observes [state one-hot, 3; its own index one-hot, 2], the world is the state one-hot, 3.

    What is shown at the end is the state that was played. Metric: `success`, the best payoff of both matrices was reached.
    """

    def __init__(self):
        self.default_params = Params(jnp.full((ACTIONS, ACTIONS), 7, jnp.float32), jnp.asarray([[0, 1], [1, 8]], jnp.float32))
        self.spec = EnvSpec(
            observation_space=Box(0, 1, (len(STATES) + AGENTS,)),
            action_space=Discrete(ACTIONS),
            num_agents=AGENTS,
            world_space=Box(0, 1, (len(STATES),)),
            reward="team",
            metrics={"success": "last"},
            episode_limit=2,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        return State(jnp.int32(0), jnp.bool_(False), jnp.zeros(AGENTS, jnp.int32), jnp.float32(0))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        second = state.stage > 0
        payoff = jnp.where(state.stage == 1, params.payoff_2a, params.payoff_2b)[action[0], action[1]]
        paid = jnp.where(second, payoff, 0.0)
        stage = jnp.where(second, state.stage, 1 + action[0])
        return State(stage, second, jnp.where(second, action, state.joint), paid), jnp.broadcast_to(paid, (AGENTS,))

    def observe(self, state: State, params: Params) -> TimeStep:
        seen = jnp.broadcast_to(self.world(state, params), (AGENTS, len(STATES)))
        best = jnp.maximum(jnp.max(params.payoff_2a), jnp.max(params.payoff_2b))
        return TimeStep(
            observation=jnp.concatenate([seen, jnp.eye(AGENTS, dtype=jnp.float32)], axis=-1),
            reward=jnp.zeros(AGENTS, jnp.float32),
            discount=jnp.full(AGENTS, ~state.over, jnp.float32),
            alive=jnp.ones(AGENTS, bool),
            last=state.over,
            metrics={"success": (state.over & (state.paid >= best)).astype(jnp.float32)},
        )

    def world(self, state: State, params: Params) -> jax.Array:
        return (jnp.arange(len(STATES)) == state.stage).astype(jnp.float32)

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [72, 84, 3]: the first agent's two choices above the matrices of 2A (left) and 2B (right).

        What is to be decided next is bright, what was chosen is golden.
        """
        cells = jnp.zeros((6, 7), jnp.int32)
        for game, column in ((1, 2), (2, 4)):
            choice = jnp.where(state.stage == game, 3, jnp.where(state.stage == 0, 2, 1))
            matrix = jnp.full((ACTIONS, ACTIONS), jnp.where((state.stage == game) & ~state.over, 2, 1))
            played = matrix.at[state.joint[0], state.joint[1]].set(3)
            left = 3 * game - 2
            cells = cells.at[1, column].set(choice)
            cells = cells.at[3:5, left : left + 2].set(jnp.where(state.over & (state.stage == game), played, matrix))
        return tiles(cells, PALETTE)

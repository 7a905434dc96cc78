"""Matrix games of two agents: climbing and penalty, with one team reward, and the repeated prisoner's dilemma.

Both agents choose at once, and their joint action is paid by a matrix (rows: the first agent's action, columns: the
second's).

    climbing:   11  -30    0      penalty:    10    0  -100      prisoners_dilemma:   3   0
               -30    7    6                   0    2     0                           5   1
                 0    0    5                -100    0    10

Climbing and penalty are of Claus & Boutilier (1998), "The Dynamics of Reinforcement Learning in Cooperative Multiagent
Systems"; both agents are paid the same, and one round is played. In climbing the best action is punished unless the mate
takes it too, so learners of averages end at 7, 6 or 5. In penalty (there with k for -100) the mates must agree on one of two
best joint actions, and the safe action pays 2. The best returns are 11 and 10 a round.

In the dilemma (Axelrod 1984, "The Evolution of Cooperation") action 0 cooperates, 1 defects, and an agent is paid by its own
row: the matrix is the first agent's, its transpose the second's. Ten rounds are played. The best sum of both agents is 6 a
round, by cooperation; who defects against it gets 5, and to defect always is the only equilibrium of finitely many
rounds.

The last round is a true end, not a time limit: a game of k rounds is over after them, nothing is left to be paid, and its
equilibria follow from that. For a game without a known end, ask for more rounds and cut them by the wrapper `time_limit`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.names import unknown
from envs_jax.pictures import GROUND, tiles
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers.checks import whole

AGENTS = 2
PAYOFFS = {
    "climbing": ((11, -30, 0), (-30, 7, 6), (0, 0, 5)),
    "penalty": ((10, 0, -100), (0, 2, 0), (-100, 0, 10)),
    "prisoners_dilemma": ((3, 0), (5, 1)),
}
ROUNDS = {"climbing": 1, "penalty": 1, "prisoners_dilemma": 10}
# ground, resting, first agent, second agent, joint action, best joint action, round played
PALETTE = (GROUND, (88, 92, 104), (72, 136, 232), (232, 96, 80), (184, 192, 208), (240, 176, 40), (120, 168, 120))


@struct.dataclass
class Params:
    payoff: jax.Array  # float32 [n, n]: by the first agent's action and the second's; in the dilemma the first one's own


@struct.dataclass
class State:
    round: jax.Array  # int32 []: how many were played
    joint: jax.Array  # int32 [2]: what was done in the last one
    best: jax.Array  # bool []: whether no joint action pays both together more than that


class Matrix(Env):
    """`multi/matrix`. `game`: climbing, penalty or prisoners_dilemma; `rounds`: of an episode, None for 1, 1 and 10.

    With n actions each agent observes [its own last action one-hot, n; the other's, n; its own index one-hot, 2], zeros for
    actions before the first round. The world is both last actions one-hot and the part of the rounds that is left, 2 n + 1.
    Reward: team in climbing and penalty, individual in the dilemma. Metric: `success`, the share of rounds whose joint action
    pays both together the most.
    """

    def __init__(self, game: str = "climbing", rounds: int | None = None):
        if not isinstance(game, str) or game not in PAYOFFS:
            raise unknown("game of multi/matrix", game, PAYOFFS)
        rounds = whole("rounds of multi/matrix", ROUNDS[game] if rounds is None else rounds)
        self.rounds, self._team = rounds, game != "prisoners_dilemma"
        self.default_params = Params(jnp.asarray(PAYOFFS[game], jnp.float32))
        self._actions = len(PAYOFFS[game])
        self.spec = EnvSpec(
            observation_space=Box(0, 1, (2 * self._actions + AGENTS,)),
            action_space=Discrete(self._actions),
            num_agents=AGENTS,
            world_space=Box(0, 1, (2 * self._actions + 1,)),
            reward="team" if self._team else "individual",
            metrics={"success": "mean"},
            episode_limit=rounds,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        return State(jnp.int32(0), jnp.zeros(AGENTS, jnp.int32), jnp.bool_(False))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        first, second = action[0], action[1]
        other = params.payoff if self._team else params.payoff.T
        both = params.payoff + other
        best = both[first, second] >= jnp.max(both)
        reward = jnp.stack([params.payoff[first, second], other[first, second]])
        return State(state.round + 1, action, best), reward

    def observe(self, state: State, params: Params) -> TimeStep:
        own = self._shown(state)
        over = state.round >= self.rounds
        return TimeStep(
            observation=jnp.concatenate([own, own[::-1], jnp.eye(AGENTS, dtype=jnp.float32)], axis=-1),
            reward=jnp.zeros(AGENTS, jnp.float32),
            discount=jnp.full(AGENTS, ~over, jnp.float32),
            alive=jnp.ones(AGENTS, bool),
            last=over,
            metrics={"success": state.best.astype(jnp.float32)},
        )

    def world(self, state: State, params: Params) -> jax.Array:
        # What is left, not what is over: a world of zeros at the start would leave a mixer's hypernetworks without a gradient.
        left = 1.0 - state.round / jnp.float32(self.rounds)
        return jnp.concatenate([self._shown(state).reshape(-1), left[None]])

    def _shown(self, state: State) -> jax.Array:
        """Both agents' last actions one-hot [2, n], zeros before the first round."""
        done = (jnp.arange(self._actions)[None] == state.joint[:, None]) & (state.round > 0)
        return done.astype(jnp.float32)

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [12 (n + 4), 12 (n + 4), 3]: the matrix, the first agent's action (blue) beside its row, the
        second's (red) above its column, the joint action bright, or golden where it is the best; below, the rounds played.
        """
        actions, played = self._actions, state.round > 0
        place = jnp.arange(actions)
        row, column = place[:, None] == state.joint[0], place[None] == state.joint[1]
        cells = jnp.zeros((actions + 4, actions + 4), jnp.int32)
        cells = cells.at[2 : actions + 2, 1].set(jnp.where(row[:, 0] & played, 2, 0))
        cells = cells.at[1, 2 : actions + 2].set(jnp.where(column[0] & played, 3, 0))
        chosen = jnp.where(state.best, 5, 4)
        cells = cells.at[2 : actions + 2, 2 : actions + 2].set(jnp.where(row & column & played, chosen, 1))
        picture, ground = tiles(cells, PALETTE), jnp.asarray(GROUND, jnp.uint8)
        picture = picture.at[24 : 12 * (actions + 2) : 12].set(ground).at[:, 24 : 12 * (actions + 2) : 12].set(ground)
        bar = jnp.arange(12 * actions) < 12 * actions * state.round // self.rounds
        colours = jnp.asarray(PALETTE, jnp.uint8)[jnp.where(bar, 6, 1)]
        return picture.at[12 * (actions + 3) - 4 : 12 * (actions + 3), 24 : 12 * (actions + 2)].set(colours[None])

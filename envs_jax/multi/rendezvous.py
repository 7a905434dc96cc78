"""Rendezvous, this project's own: agents on a small grid that must all meet in one cell.

For debugging: it is small and quick, and its best play is known.

Each step every agent stays or moves one cell (0 stay, 1 up, 2 down, 3 left, 4 right; a move into the wall stays), all at
once, and cells may be shared. When all are in one cell the team is paid `meeting` and the episode truly ends; each step costs
`step_cost`, the last one too. At `limit` steps an episode is cut off. Agents start in different cells, every choice of them
equally likely.

With d steps between the agents and their best meeting place, the cell whose farthest agent is nearest, the best return is
meeting - d step_cost; for two agents d is half of their distance |row - row'| + |column - column'|, rounded up.

For credit assignment there is `noise`: at every step each agent also earns noise · N(0, 1), which depends on nothing, and the
team is paid the sum. The best play stays the same, while the variance of what everybody is paid grows as agents · noise² a
step: the more mates, the more of an agent's reward says nothing about its own actions.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.pictures import SHADES, TILE, Colour, disc, tiles
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers.checks import whole

MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))  # rows downwards, columns to the right
FIELD: tuple[Colour, ...] = (*SHADES, (104, 84, 32))  # two shades of the ground, the cell where all met
COLOURS = ((72, 136, 232), (232, 96, 80), (96, 192, 112), (240, 176, 40), (176, 112, 216), (88, 200, 208))


@struct.dataclass
class Params:
    meeting: jax.Array  # float32 []: paid once, when all are in one cell
    step_cost: jax.Array  # float32 []: taken off at every step
    noise: jax.Array  # float32 []: deviation of what each agent earns besides at every step, by chance alone


@struct.dataclass
class State:
    time: jax.Array  # int32 []
    position: jax.Array  # int32 [A, 2]: row and column


class Rendezvous(Env):
    """`multi/rendezvous`. `size`: cells of a side, `agents`: how many, `limit`: steps of an episode.

    Each agent observes [own row and column, 2; the others' rows and columns less its own, 2 (A - 1)], by order of their index
    beginning behind its own, all divided by size - 1. The world is every agent's row and column and the part of the time that
    is over, 2 A + 1. Reward: team. Metric: `success`, all met.
    """

    reset_mode = "pool"
    ranges = MappingProxyType({"noise": (0.0, math.inf)})

    def __init__(self, size: int = 5, agents: int = 2, limit: int = 20):
        for name, value, least in (("size", size, 2), ("agents", agents, 2), ("limit", limit, 1)):
            whole(f"{name} of multi/rendezvous", value, least)
        if agents > size * size:
            raise ValueError(f"agents of multi/rendezvous must start in cells of their own: {agents} are more than {size}²")
        self.size, self.limit = size, limit
        self.default_params = Params(jnp.float32(1), jnp.float32(0.02), jnp.float32(0))
        self.spec = EnvSpec(
            observation_space=Box((0.0,) * 2 + (-1.0,) * (2 * agents - 2), 1, (2 * agents,)),
            action_space=Discrete(len(MOVES)),
            num_agents=agents,
            world_space=Box(0, 1, (2 * agents + 1,)),
            reward="team",
            metrics={"success": "last"},
            episode_limit=limit,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        cell = jax.random.permutation(key, self.size * self.size)[: self.spec.agents].astype(jnp.int32)
        return State(jnp.int32(0), jnp.stack([cell // self.size, cell % self.size], axis=-1))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        position = jnp.clip(state.position + jnp.asarray(MOVES, jnp.int32)[action], 0, self.size - 1)
        chance = params.noise * jnp.sum(jax.random.normal(key, (self.spec.agents,)))
        paid = jnp.where(self._met(position), params.meeting, 0.0) - params.step_cost + chance
        return State(state.time + 1, position), jnp.broadcast_to(paid, (self.spec.agents,))

    def observe(self, state: State, params: Params) -> TimeStep:
        agents, met = self.spec.agents, self._met(state.position)
        place = state.position / jnp.float32(self.size - 1)
        others = (jnp.arange(agents)[:, None] + jnp.arange(1, agents)[None]) % agents
        offsets = (place[others] - place[:, None]).reshape(agents, -1)
        return TimeStep(
            observation=jnp.concatenate([place, offsets], axis=-1),
            reward=jnp.zeros(agents, jnp.float32),
            discount=jnp.full(agents, ~met, jnp.float32),
            alive=jnp.ones(agents, bool),
            last=met | (state.time >= self.limit),
            metrics={"success": met.astype(jnp.float32)},
        )

    def world(self, state: State, params: Params) -> jax.Array:
        place = state.position / jnp.float32(self.size - 1)
        return jnp.concatenate([place.reshape(-1), (state.time / jnp.float32(self.limit))[None]])

    def _met(self, position: jax.Array) -> jax.Array:
        return jnp.all(position == position[:1])

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [24 size, 24 size, 3]: the agents as discs, smaller ones upon larger; golden: all met."""
        side = jnp.arange(self.size)
        cells = (side[:, None] + side[None]) % 2
        here = (side[:, None] == state.position[0, 0]) & (side[None] == state.position[0, 1])
        picture = tiles(jnp.where(here & self._met(state.position), 2, cells), FIELD, TILE)
        centre = (2 * state.position[:, ::-1] + 1 - self.size) / jnp.float32(self.size)
        for agent in range(self.spec.agents):
            radius = (0.8 - 0.6 * agent / self.spec.agents) / self.size
            place = centre[agent] * jnp.asarray([1, -1], jnp.float32)
            picture = disc(picture, place, radius, COLOURS[agent % len(COLOURS)])
        return picture

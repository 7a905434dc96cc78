"""The switch riddle of Foerster et al. (2016), "Learning to Communicate with Deep Multi-Agent Reinforcement Learning",
arXiv:1605.06676, section 6.2: communication that is hidden in what actions leave behind.

n prisoners sit in cells of their own. Each day one of them, drawn uniformly with replacement, is led into a room with a light
bulb, off at first. The one in the room sees the bulb, may switch it, and may instead tell that everybody has been in the room
by now: then all are set free if it is true and executed if it is not. The others do nothing and see nothing, not even who was
taken. All are paid the same, 1 or -1, and only for telling; telling is a true end. After 4 n - 6 days an episode is cut off,
which is no part of the riddle ("to keep the experiments tractable"), so the limit truncates and pays nothing.

No prisoner can know better than one who sees all visits, so no return exceeds the chance that everybody has been there in
time, sum over k of (-1)^k C(n, k) (1 - k / n)^(4 n - 6): 20/27 = 0.741 for three, 0.781 for four. Three reach it by the
paper's protocol: on the first day leave the bulb off; afterwards a prisoner who is there for the first time switches it on,
or tells if it is on already; one who has been there before changes nothing. That takes memory: of one's own visits, and of
whether this is the first day, which the observation says nothing about. Among all deterministic policies without memory, a
different one for each of the three prisoners allowed, the best reaches 115/729 = 0.158, and of those that all three share
none gains anything.

The bulb is set by actions here, where the paper counts it as a message of one bit beside the actions; what can be known and
done is the same.
"""

from __future__ import annotations

from types import MappingProxyType

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.pictures import GROUND, Colour, blank, disc
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers.checks import whole

NOTHING, ON, OFF, TELL = range(4)
LIT, DARK, WALL = (248, 216, 88), (64, 64, 72), (136, 140, 152)
VISITED, UNSEEN = (72, 136, 232), (136, 140, 152)
FREE, EXECUTED = (80, 176, 96), (216, 64, 56)


@struct.dataclass
class Params:
    freed: jax.Array  # float32 []: paid to all when one tells rightly
    executed: jax.Array  # float32 []: paid to all when one tells wrongly
    lit: jax.Array  # float32 []: the chance that the bulb is on before the first day


@struct.dataclass
class State:
    day: jax.Array  # int32 []: how many are over
    room: jax.Array  # int32 []: who is in the room
    been: jax.Array  # bool [n]: who has been there, today's included
    bulb: jax.Array  # bool []
    told: jax.Array  # bool []
    free: jax.Array  # bool []: told, and rightly


class Switch(Env):
    """`multi/switch`. `prisoners`: n of at least 3; the limit is 4 n - 6 days.

    Each agent observes [I am in the room, the bulb is on], the second 0 outside; ids, if wanted, come from the wrapper
    `agent_ids`. Actions: nothing, switch on, switch off, tell; outside the room nothing alone is legal. The world is [who has
    been in the room, n; who is there, n; the bulb; the part of the days that is over]. Reward: team. Metric: `success`, all
    were set free.
    """

    reset_mode = "pool"
    ranges = MappingProxyType({"lit": (0.0, 1.0)})

    def __init__(self, prisoners: int = 3):
        self.limit = 4 * whole("prisoners of multi/switch", prisoners, least=3) - 6
        self.default_params = Params(jnp.float32(1), jnp.float32(-1), jnp.float32(0))
        self.spec = EnvSpec(
            observation_space=Box(0, 1, (2,)),
            action_space=Discrete(4),
            num_agents=prisoners,
            world_space=Box(0, 1, (2 * prisoners + 2,)),
            reward="team",
            metrics={"success": "last"},
            episode_limit=self.limit,
        )

    def initial(self, key: jax.Array, params: Params) -> State:
        key_room, key_bulb = jax.random.split(key)
        room = self._draw(key_room)
        bulb = jax.random.bernoulli(key_bulb, params.lit)
        return State(jnp.int32(0), room, self._inside(room), bulb, jnp.bool_(False), jnp.bool_(False))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        done = action[state.room]
        told = done == TELL
        free = told & jnp.all(state.been)
        paid = jnp.where(told, jnp.where(free, params.freed, params.executed), 0.0)
        bulb = (state.bulb | (done == ON)) & (done != OFF)
        room = jnp.where(told, state.room, self._draw(key))
        after = State(state.day + 1, room, state.been | self._inside(room), bulb, told, free)
        return after, jnp.broadcast_to(paid, (self.spec.agents,))

    def observe(self, state: State, params: Params) -> TimeStep:
        prisoners = self.spec.agents
        inside = self._inside(state.room)
        return TimeStep(
            observation=jnp.stack([inside, inside & state.bulb], axis=-1).astype(jnp.float32),
            reward=jnp.zeros(prisoners, jnp.float32),
            discount=jnp.full(prisoners, ~state.told, jnp.float32),
            # Those in their cells live on, and remember; only the mask holds them back.
            alive=jnp.ones(prisoners, bool),
            last=state.told | (state.day >= self.limit),
            action_mask=inside[:, None] | (jnp.arange(4) == NOTHING)[None],
            metrics={"success": state.free.astype(jnp.float32)},
        )

    def world(self, state: State, params: Params) -> jax.Array:
        rest = jnp.stack([state.bulb.astype(jnp.float32), state.day / jnp.float32(self.limit)])
        return jnp.concatenate([state.been.astype(jnp.float32), self._inside(state.room).astype(jnp.float32), rest])

    def _draw(self, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, (), 0, self.spec.agents, jnp.int32)

    def _inside(self, room: jax.Array) -> jax.Array:
        return jnp.arange(self.spec.agents) == room

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [144, 40 n, 3]: the room with its bulb above the cells of the prisoners.

        Who is in the room stands there, and the cell is empty; blue have been there, grey have not. The bar at the bottom
        counts the days. The walls of the room turn green when all are set free and red when they are executed.
        """
        prisoners, width = self.spec.agents, 40 * self.spec.agents
        half, middle = min(144, width) / 2, width // 2

        def at(x: float, y: float) -> jax.Array:
            return jnp.asarray([(x - middle) / half, (72 - y) / half], jnp.float32)

        walls = jnp.where(state.told, _either(state.free, FREE, EXECUTED), jnp.asarray(WALL, jnp.uint8))
        picture = _room(blank(144, width), 6, middle - 40, 74, 80, walls)
        picture = disc(picture, at(middle, 24), 9 / half, _either(state.bulb, LIT, DARK))
        picture = disc(picture, at(middle, 58), 13 / half, VISITED)
        for prisoner in range(prisoners):
            x = 40 * prisoner + 20
            picture = _room(picture, 90, x - 18, 36, 36, jnp.asarray(WALL, jnp.uint8))
            radius = jnp.where(state.room == prisoner, 0.0, 13 / half)
            picture = disc(picture, at(x, 108), radius, _either(state.been[prisoner], VISITED, UNSEEN))
        passed = jnp.arange(width - 4) < (width - 4) * state.day // self.limit
        return picture.at[134:140, 2 : width - 2].set(_either(passed, WALL, DARK)[None])


def _either(condition: jax.Array, yes: Colour, no: Colour) -> jax.Array:
    """One of two colours, uint8 [..., 3], for conditions [...]."""
    return jnp.where(condition[..., None], jnp.asarray(yes, jnp.uint8), jnp.asarray(no, jnp.uint8))


def _room(picture: jax.Array, top: int, left: int, height: int, width: int, walls: jax.Array) -> jax.Array:
    """The picture with an empty room of these sides, in pixels, whose walls are two pixels thick."""
    picture = picture.at[top : top + height, left : left + width].set(walls)
    return picture.at[top + 2 : top + height - 2, left + 2 : left + width - 2].set(jnp.asarray(GROUND, jnp.uint8))

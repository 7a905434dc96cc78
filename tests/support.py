"""What several tests share: an environment whose every number is known, an algorithm that only watches, devices by vmap."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.memory.latest import latest
from agentgym_jax.types import Across, Transition
from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.spaces import Box, Discrete, Space

THREE = Discrete(3)
# Programs that run once cost more to optimise than to run; half the time of these tests would go there.
compiled = functools.partial(
    jax.jit,
    compiler_options={
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
    },
)

ALL_FIELDS = frozenset(Transition.__dataclass_fields__)


@struct.dataclass
class State:
    time: jax.Array  # int32 []
    length: jax.Array  # int32 []: of this episode
    cut: jax.Array  # bool []: whether its end is a time limit
    mark: jax.Array  # float32 []: tells starts apart


class Story(Env):
    """Episodes of 1 … `longest` steps that end or are cut off by a coin drawn at the start.

    Each agent observes the whole state as [time, length, cut, mark, agent, alive]. Every agent but 0 lives two steps, its
    slot rests one, and a new one takes it. At time t agent a may not take action (t + a) mod n of any head of n > 1, and a
    dead one may take none. A step from time t pays (t + 1) / 4 + a + half the sum of the action.
    """

    default_params = ()

    def __init__(
        self,
        agents: int = 2,
        reward: str = "individual",
        action_space: Space = THREE,
        world: bool = False,
        longest: int = 6,
    ):
        self.longest = longest
        self.spec = EnvSpec(
            observation_space=Box(-math.inf, math.inf, (6,)),
            action_space=action_space,
            num_agents=agents,
            world_space=Box(-math.inf, math.inf, (3,)) if world else None,
            reward=reward,
            metrics={"newest": "last", "total": "sum", "average": "mean"},
            episode_limit=longest,
        )

    def initial(self, key, params):
        key_length, key_cut, key_mark = jax.random.split(key, 3)
        length = jax.random.randint(key_length, (), 1, self.longest + 1, jnp.int32)
        return State(jnp.int32(0), length, jax.random.bernoulli(key_cut), jax.random.uniform(key_mark))

    def advance(self, key, state, action, params):
        agent = jnp.arange(self.spec.num_agents, dtype=jnp.float32)
        chosen = jnp.sum(action.reshape(self.spec.num_agents, -1), axis=-1).astype(jnp.float32)
        reward = (state.time + 1).astype(jnp.float32) / 4.0 + agent + 0.5 * chosen
        if self.spec.reward == "team":
            reward = jnp.full_like(reward, jnp.sum(reward))
        return state.replace(time=state.time + 1), reward

    def observe(self, state, params):
        agents = self.spec.num_agents
        agent = jnp.arange(agents)
        alive = (agent == 0) | (state.time % 3 != 2)
        last = state.time >= state.length
        goes_on = jnp.broadcast_to(~last | state.cut, (agents,))
        shared = [jnp.full((agents,), x, jnp.float32) for x in (state.time, state.length, state.cut, state.mark)]
        time = state.time.astype(jnp.float32)
        return TimeStep(
            observation=jnp.stack([*shared, agent.astype(jnp.float32), alive.astype(jnp.float32)], axis=-1),
            reward=jnp.zeros(agents, jnp.float32),
            discount=(goes_on if self.spec.reward == "team" else goes_on & alive).astype(jnp.float32),
            alive=alive,
            last=last,
            action_mask=self._legal(state, agent, alive),
            metrics={"newest": time, "total": time, "average": time},
        )

    def _legal(self, state, agent, alive):
        space = self.spec.action_space
        if isinstance(space, Box):
            return ()
        sizes = (space.n,) if isinstance(space, Discrete) else space.nvec
        heads = [(jnp.arange(n)[None] != ((state.time + agent) % n)[:, None]) | (n == 1) for n in sizes]
        return jnp.concatenate(heads, axis=-1) & alive[:, None]

    def world(self, state, params):
        return jnp.stack([state.time.astype(jnp.float32), state.length.astype(jnp.float32), state.mark])

    @staticmethod
    def state_of(observation):
        """The states [N] that agents' observations [N, A, 6] tell of."""
        time, length, cut, mark = (observation[:, 0, i] for i in range(4))
        return State(time.astype(jnp.int32), length.astype(jnp.int32), cut > 0, mark)


def watcher(spec: EnvSpec, record=ALL_FIELDS) -> Algorithm:
    """Acts uniformly, learns nothing, and remembers in `extras` what it saw and how many steps its carry has counted."""

    def act(learner, hyper, carry, timestep, world, reset, key, clock, explore):
        carry = jnp.where(reset, 0, carry) + 1
        action = spec.sample_actions(key, timestep)
        return carry, action, {"age": carry, "seen": timestep.observation, "world": world}

    return Algorithm(
        init=lambda key, hyper: {},
        carry=lambda shape: jnp.zeros((*shape, spec.num_agents), jnp.int32),
        act=act,
        learn=lambda learner, hyper, batch, key, clock: (learner, {}, ()),
        memory=latest(),
        record=frozenset(record),
    )


def simulated_devices(size: int) -> Across:
    """What `size` devices do with each other, under `jax.vmap(..., axis_name="device")`."""
    return Across(
        mean=lambda x: jax.lax.pmean(x, "device"),
        max=lambda x: jax.lax.pmax(x, "device"),
        size=size,
        index=lambda: jax.lax.axis_index("device"),
    )

"""An environment of one's own: three functions, a spec, and it trains like any other.

    python experiments/own_environment.py [total steps]
"""

import sys

import jax
import jax.numpy as jnp
from flax import struct

import agentgym_jax
from envs_jax import Box, Discrete, Env, EnvSpec, TimeStep


@struct.dataclass
class State:
    position: jax.Array  # float32 []: −1 … 1
    steps: jax.Array  # int32 []


class Corridor(Env):
    """Walk left or right from a random place; the right end pays 1 and ends the episode, each step costs 0.01."""

    spec = EnvSpec(Box(-1.0, 1.0, (1,)), Discrete(2), metrics={"arrived": "last"}, episode_limit=50)

    def initial(self, key, params):
        return State(jax.random.uniform(key, (), minval=-1.0, maxval=0.5), jnp.int32(0))

    def advance(self, key, state, action, params):
        position = jnp.clip(state.position + jnp.where(action == 1, 0.1, -0.1), -1.0, 1.0)
        return State(position, state.steps + 1), jnp.where(position >= 1.0, 1.0, -0.01)

    def observe(self, state, params):
        arrived = state.position >= 1.0
        return TimeStep(
            observation=state.position[None],
            reward=jnp.float32(0.0),
            discount=jnp.where(arrived, 0.0, 1.0),  # 0 at a true end alone: the time limit is no death
            alive=jnp.bool_(True),
            last=arrived | (state.steps >= self.spec.episode_limit),
            metrics={"arrived": arrived.astype(jnp.float32)},
        )


def main(total_steps: int = 50_000) -> agentgym_jax.Run:
    """Trains two seeds on the corridor, without an experiment file and without writing anything."""
    train = agentgym_jax.TrainConfig(total_steps=total_steps, num_envs=16, rollout_length=64)
    run = agentgym_jax.train(agentgym_jax.Experiment(env=Corridor(), algorithm="ppo", train=train), seeds=2)
    print(f"arrived: {run.summary['evaluation']['greedy']['arrived']['mean']:.0%}")
    return run


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

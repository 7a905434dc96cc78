"""Trains a small population for some calls and prints one JSON line; a caller with a time-out sees a hang as a failure.

XLA's CPU backend can stop for ever in training that is vmapped over members. What keeps it going is `map` (members one after
another inside one program), or the scheduler flag that `import agentgym_jax` sets. This program runs one of both:

    python experiments/guards/population_hang.py --mode map --devices 2
    python experiments/guards/population_hang.py --mode vmap --devices 1
"""

from __future__ import annotations

import argparse
import json
import time

import agentgym_jax
from agentgym_jax._runtime import flag_status


def train(mode: str, members: int, calls: int, devices: int) -> dict[str, object]:
    """`calls` calls of `advance` for PPO on CartPole, 4 environments × 128 steps each; returns what ran and the seconds."""
    agentgym_jax.use_cores(devices)
    import jax
    import jax.numpy as jnp

    import envs_jax
    from agentgym_jax.algorithms.ppo import PPOConfig, PPOHyper, make, networks
    from agentgym_jax.models.config import NetworkConfig
    from agentgym_jax.ops.schedules import as_hyper
    from agentgym_jax.tasks.base import fixed
    from agentgym_jax.training.loop import Plan, make_loop
    from agentgym_jax.training.parallel import Population
    from agentgym_jax.types import Sizes
    from envs_jax.wrappers import AgentAxis

    env, config, sizes = AgentAxis(envs_jax.make("gymnax/CartPole-v1")), PPOConfig(), Sizes(4, 128)
    algorithm = make(env.spec, config, networks(NetworkConfig(), env.spec, config), sizes)
    plan = Plan(*sizes, iterations=calls, points=1, calls=calls, reset="pool", episodes=4, cap=500, seed=0)
    population = Population(make_loop(env, fixed(env.default_params), algorithm, plan), members, mode)
    keys = population.place(jax.vmap(jax.random.key)(jnp.arange(members)))
    hyper = population.place(jax.tree.map(lambda x: jnp.broadcast_to(x, (members,)), as_hyper(PPOHyper())))
    compile_seconds = population.compile(keys, hyper)
    begun = time.perf_counter()
    states = population.init(keys, hyper)
    for call in range(calls):
        states, _ = population.advance(states, hyper, population.clock(call, calls))
        jax.block_until_ready(states)
    return {
        "mode": population.mode,
        "members": members,
        "calls": calls,
        "devices": len(population.devices),
        "flag": flag_status(),
        "compile_seconds": round(compile_seconds, 3),
        "train_seconds": round(time.perf_counter() - begun, 3),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("map", "vmap"), required=True)
    parser.add_argument("--members", type=int, default=2)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--devices", type=int, default=1)
    print(json.dumps(train(**vars(parser.parse_args()))), flush=True)

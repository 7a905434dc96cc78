"""How fast environments step when ended ones restart from `fresh` starts, and when they do from a `pool`.

    .venv/bin/python experiments/benchmark/resets.py [rounds]

Random play through the rollout that training uses, 64 and 1024 environments, on one device. Both ways of resetting run in
turn, as many rollouts as fit 0.4 seconds each time; the best of five rounds counts. Seven minutes on two cores. Writes
experiments/results/benchmark/resets.json and prints its table. `train.reset: auto` follows it.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import peers

import envs_jax
from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.io.running.assemble import with_agent_axis
from agentgym_jax.rollout.resets import MODES
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.training.baseline import random_algorithm
from agentgym_jax.types import Clock, Sizes
from envs_jax.core import EnvSpec

# id -> constructor arguments and T, the steps of a rollout
ENVIRONMENTS: dict[str, tuple[dict[str, Any], int]] = {
    "gymnax/CartPole-v1": ({}, 128),
    "jumanji/Snake-v1": ({}, 128),
    "jumanji/LevelBasedForaging-v0": ({}, 32),
    "brax/ant": ({"backend": "spring", "time_limit": 1000}, 32),
    "jaxmarl/smax_3m": ({}, 32),
    "jaxmarl/smax_smacv2_10_units": ({}, 32),
    "jaxmarl/MPE_simple_spread_v3": ({}, 64),
    "jaxmarl/overcooked_cramped_room": ({}, 32),
    "jaxmarl/overcooked_v2_cramped_room": ({}, 32),
    "multi/spread": ({}, 64),
    "multi/rendezvous": ({}, 64),
    "multi/switch": ({}, 128),
    "multi/tag": ({}, 64),
    "multi/matrix": ({}, 64),
    "multi/two_step": ({}, 64),
    "probe/memory": ({}, 128),
}
NUM_ENVS = (64, 1024)
SECONDS = 0.4


def kept_random(spec: EnvSpec) -> Algorithm:
    """Random play whose rewards and ends are kept, so that no step can be optimised away."""
    return random_algorithm(spec)._replace(record=frozenset({"observation", "reward", "last"}))


def compiled(id: str, num_envs: int, mode: str) -> tuple[Callable[[], int], float]:
    """() -> environment steps played, going on where the call before stopped; and the seconds to compile it."""
    arguments, length = ENVIRONMENTS[id]
    env = with_agent_axis(envs_jax.make(id, **arguments))
    acting = make_acting(env, fixed(env.default_params), kept_random(env.spec), Sizes(num_envs, length), mode)
    clock = Clock(jnp.int32(0), jnp.int32(1))

    def rollout(actor, key):
        key, key_unroll = jax.random.split(key)
        actor, trajectory, _ = unroll(acting, {}, {}, actor, (), key_unroll, clock, False)
        return (actor, key), trajectory

    state = [(jax.jit(functools.partial(start, acting, ()))(jax.random.key(0)), jax.random.key(1))]
    begun = time.perf_counter()
    program = jax.jit(rollout).lower(*state[0]).compile()
    seconds = time.perf_counter() - begun

    def play() -> int:
        state[0], trajectory = program(*state[0])
        jax.block_until_ready(trajectory)
        return num_envs * length

    return play, seconds


def steps_per_second(play: Callable[[], int]) -> float:
    """The speed of as many calls as fit `SECONDS`, one at least."""
    steps, begun = 0, time.perf_counter()
    while steps == 0 or time.perf_counter() - begun < SECONDS:
        steps += play()
    return steps / (time.perf_counter() - begun)


def compare(id: str, num_envs: int, rounds: int) -> dict[str, Any]:
    """Both ways of one environment, in turn."""
    sides = {mode: compiled(id, num_envs, mode) for mode in MODES}
    for play, _ in sides.values():
        play()
    runs: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode, (play, _) in sides.items():
            runs[mode].append(steps_per_second(play))
    best = {mode: max(speeds) for mode, speeds in runs.items()}
    return {
        "environment": id,
        "arguments": ENVIRONMENTS[id][0],
        "rollout_length": ENVIRONMENTS[id][1],
        "num_envs": num_envs,
        "steps_per_second": best,
        "pool over fresh": best["pool"] / best["fresh"],
        "compile_seconds": {mode: seconds for mode, (_, seconds) in sides.items()},
        "all": runs,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows for a page of the documentation."""
    lines = ["| environment | N | `fresh` | `pool` | pool / fresh |", "|---|---|---|---|---|"]
    for row in rows:
        speeds = " | ".join(f"{row['steps_per_second'][mode]:,.0f}" for mode in MODES)
        lines.append(f"| {row['environment']} | {row['num_envs']} | {speeds} | {row['pool over fresh']:.2f} |")
    return "\n".join(lines)


def main(rounds: int = 5) -> None:
    """All environments; writes experiments/results/benchmark/resets.json."""
    rows = []
    for id in ENVIRONMENTS:
        for num_envs in NUM_ENVS:
            rows.append(compare(id, num_envs, rounds))
            print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    device = f"{jax.devices()[0].device_kind}, {len(os.sched_getaffinity(0))} cores, jax {jax.__version__}"
    record = {"command": "python experiments/benchmark/resets.py", "device": device, "rounds": rounds, "runs": rows}
    peers.write("resets", record)
    print(table(rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

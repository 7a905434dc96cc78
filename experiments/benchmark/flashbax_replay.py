"""Replay beside flashbax 0.1.3: push, sample and feedback in one scan, the same numbers stored and drawn.

    .venv/bin/python experiments/benchmark/flashbax_replay.py [rounds]

An iteration pushes one step of 10 environments (CartPole's sizes) into 100 000, draws 128 transitions, reads all of them, and
where priorities are kept sets those of the 128. Members of a population are vmapped, or mapped one after another. Both sides
run in one process in turn, on one device and with the same flags; states are donated; the fastest round counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENVS, CAPACITY, BATCH, ITERATIONS = 10, 100_000, 128, 1_000
CASES = [
    (kind, members, how)
    for kind in ("uniform", "prioritised")
    for members, how in ((1, "alone"), (16, "vmapped"), (16, "mapped"))
]


def rollout(number: Any) -> Any:
    """One step of every environment, [1, N, 1, ...], that differs from push to push."""
    import jax.numpy as jnp

    from agentgym_jax.types import Trajectory, Transition

    row = jnp.broadcast_to(number.astype(jnp.float32) / ITERATIONS, (1, ENVS, 1))
    observation = jnp.broadcast_to(row[..., None], (1, ENVS, 1, 4))
    steps = Transition(
        observation=observation,
        action=jnp.zeros((1, ENVS, 1), jnp.int32),
        reward=row,
        discount=row,
        last=row[..., 0] > 1,
        next_observation=observation + 1,
    )
    return Trajectory(steps, ())


def read(steps: Any) -> Any:
    """A number a transition that depends on everything drawn, [B]; steps [B, ...]."""
    import jax
    import jax.numpy as jnp

    return sum(jnp.sum(x.reshape(BATCH, -1).astype(jnp.float32), axis=1) for x in jax.tree.leaves(steps))


def ours(prioritised: bool) -> tuple[Any, Callable[..., Any]]:
    """An empty memory, and an iteration of it: (memory, number, key) -> memory, checksum."""
    import jax
    import jax.numpy as jnp

    from agentgym_jax.memory.replay import replay
    from agentgym_jax.types import Clock, Sizes

    buffer = replay(Sizes(ENVS, 1), CAPACITY, BATCH, prioritised=prioritised)

    def iteration(memory, number, key):
        clock = Clock(number, jnp.int32(1))
        memory = buffer.push(memory, rollout(number), clock)
        batch = buffer.sample(memory, (), key, clock)
        value = read(jax.tree.map(lambda x: x[0], batch.steps))
        return buffer.feedback(memory, batch, 1.0 + jnp.abs(value)), jnp.sum(value)

    return buffer.init(jax.tree.map(jnp.zeros_like, rollout(jnp.int32(0)))), iteration


def theirs(prioritised: bool) -> tuple[Any, Callable[..., Any]]:
    """The same with flashbax."""
    import flashbax
    import jax
    import jax.numpy as jnp

    sizes = {
        "add_batch_size": ENVS,
        "sample_batch_size": BATCH,
        "sample_sequence_length": 1,
        "period": 1,
        "min_length_time_axis": 1,
        "max_length_time_axis": CAPACITY // ENVS,
    }
    if prioritised:
        device = jax.default_backend()
        buffer = flashbax.make_prioritised_trajectory_buffer(**sizes, priority_exponent=1.0, device=device)
    else:
        buffer = flashbax.make_trajectory_buffer(**sizes)

    def iteration(memory, number, key):
        memory = buffer.add(memory, jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), rollout(number).steps))
        drawn = buffer.sample(memory, key)
        value = read(drawn.experience)
        if prioritised:
            memory = buffer.set_priorities(memory, drawn.indices, 1.0 + jnp.abs(value))
        return memory, jnp.sum(value)

    memory = buffer.init(jax.tree.map(lambda x: x[0, 0], rollout(jnp.int32(0)).steps))
    return jax.tree.map(lambda x: jnp.array(x, x.dtype), memory), iteration


def program(side: tuple[Any, Callable[..., Any]], members: int, how: str) -> tuple[Callable[..., Any], Any, float]:
    """`ITERATIONS` of a population as one compiled program, its first state, and the seconds it took to compile."""
    import jax
    import jax.numpy as jnp

    memory, iteration = side

    def run(memory, key, start):
        def step(memory, inputs):
            return iteration(memory, *inputs)

        numbers = start + jnp.arange(ITERATIONS, dtype=jnp.int32)
        return jax.lax.scan(step, memory, (numbers, jax.random.split(key, ITERATIONS)))

    def population(memory, keys, start):
        if how == "vmapped":
            return jax.vmap(run, in_axes=(0, 0, None))(memory, keys, start)
        return jax.lax.map(lambda member: run(*member, start), (memory, keys))

    memory = jax.tree.map(lambda x: jnp.stack([x] * members), memory)
    keys = jax.random.split(jax.random.key(0), members)
    begun = time.perf_counter()
    compiled = jax.jit(population, donate_argnums=0).lower(memory, keys, jnp.int32(0)).compile()
    return compiled, memory, time.perf_counter() - begun


def child(kind: str, members: int, how: str, rounds: int) -> None:
    """One case; the last line is {side: {"microseconds": of an iteration of one member, "compile_seconds"}}."""
    import agentgym_jax  # noqa: F401, I001  the flag without which vmapped programs can hang on CPU
    import jax
    import jax.numpy as jnp

    sides = {name: program(make(kind == "prioritised"), members, how) for name, make in (("ours", ours), ("flashbax", theirs))}
    states = {name: memory for name, (_, memory, _) in sides.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):  # the first touches the memory for the first time, and is left out
        for name, (compiled, _, _) in sides.items():
            keys = jax.random.split(jax.random.key(number), members)
            begun = time.perf_counter()
            states[name], _ = jax.block_until_ready(compiled(states[name], keys, jnp.int32(number * ITERATIONS)))
            seconds[name].append(time.perf_counter() - begun)
    each = 1e6 / (ITERATIONS * members)
    line = {
        name: {"microseconds": round(min(seconds[name][1:]) * each, 2), "compile_seconds": round(compile_seconds, 2)}
        for name, (_, _, compile_seconds) in sides.items()
    }
    print(json.dumps(line))


def main(rounds: int = 10) -> None:
    """Every case in a process of its own; writes experiments/results/benchmark/flashbax_replay.json."""
    import peers

    record: dict[str, Any] = {"command": "python experiments/benchmark/flashbax_replay.py", "rounds": rounds, "cases": {}}
    for kind, members, how in CASES:
        arguments = [kind, str(members), how, str(rounds)]
        result = peers.run_once(sys.executable, Path(__file__).resolve(), arguments, seconds=240)
        if "failed" not in result:
            result["ratio to flashbax"] = round(result["flashbax"]["microseconds"] / result["ours"]["microseconds"], 2)
        record["cases"][f"{kind}, {members} {'member' if members == 1 else 'members'} {how}"] = result
        print(f"{kind} {members} {how}: {json.dumps(result)}", file=sys.stderr, flush=True)
    peers.write("flashbax_replay", record)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        child(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        main(*map(int, sys.argv[1:]))

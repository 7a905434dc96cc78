"""What the comparisons with rejax 0.1.3 share: both sides as child processes, in turn, training only.

rejax runs as its users run it: jit, vmapped over seeds, evaluation reduced to nothing. This project runs as its command does:
members one after another on each of the virtual CPU devices, one device a core, so the 16-seed ratio contains a gain from using
all cores; the ratio with this project on one device alone is reported beside it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REQUIREMENTS = ["rejax==0.1.3", "gymnax<1", "jax==0.10.2", "jaxlib==0.10.2"]


def rejax(members: int, steps: int, create: Callable[[], Any]) -> None:
    """The child of rejax: one jitted, vmapped training of `create()`, its last line the numbers."""
    import jax
    import jax.numpy as jnp

    algorithm = create().replace(eval_callback=lambda algorithm, state, key: jnp.float32(0.0))
    train = jax.jit(jax.vmap(algorithm.train)) if members > 1 else jax.jit(algorithm.train)
    keys = jax.random.split(jax.random.PRNGKey(0), members) if members > 1 else jax.random.PRNGKey(0)
    begun = time.perf_counter()
    program = train.lower(keys).compile()
    compiled = time.perf_counter() - begun
    begun = time.perf_counter()
    jax.block_until_ready(program(keys))
    _report(compiled, time.perf_counter() - begun, members * steps)


def ours(members: int, devices: int, config: str, overrides: list[str]) -> None:
    """The child of this project: the run that its command line makes, without writing."""
    import agentgym_jax

    agentgym_jax.use_cores(devices)
    experiment = agentgym_jax.load_experiment(config, overrides=[*overrides, "eval.points=1"])
    run = agentgym_jax.train(experiment, seeds=members, quiet=True)
    _report(run.summary["compile_seconds"], run.summary["train_seconds"], members * run.total_steps)


def _report(compile_seconds: float, seconds: float, steps: int) -> None:
    print(json.dumps({"compile_seconds": compile_seconds, "steps_per_second": steps / seconds}))


def compare(name: str, script: str, rounds: int) -> None:
    """1 seed and 16, in turn; writes experiments/results/benchmark/<name>.json."""
    import peers

    here, peer = Path(script).resolve(), peers.peer_python("rejax", REQUIREMENTS)
    record: dict[str, Any] = {"command": f"python experiments/benchmark/{here.name}", "rounds": rounds, "runs": {}}
    for members, our_devices in ((1, (1,)), (16, (1, 2))):
        sides = {f"ours, {count} device": (sys.executable, here, ["ours", str(members), str(count)]) for count in our_devices}
        sides["rejax"] = (peer, here, ["rejax", str(members)])
        runs = peers.in_turn(sides, rounds, seconds=300)
        record["runs"][f"{members} seeds"] = runs
        bests = {side: peers.best(of) for side, of in runs.items()}
        theirs = bests["rejax"]["steps_per_second"]
        ratios = {side: theirs and own["steps_per_second"] and own["steps_per_second"] / theirs for side, own in bests.items()}
        record[f"{members} seeds"] = {"best": bests, "ratio to rejax": ratios}
    peers.write(name, record)


def main(name: str, script: str, child_rejax: Callable[[int], None], child_ours: Callable[[int, int], None]) -> None:
    """The command line of a comparison: itself, or one of its children."""
    if sys.argv[1:2] == ["rejax"]:
        child_rejax(int(sys.argv[2]))
    elif sys.argv[1:2] == ["ours"]:
        child_ours(int(sys.argv[2]), int(sys.argv[3]))
    else:
        compare(name, script, *map(int, sys.argv[1:] or ["5"]))

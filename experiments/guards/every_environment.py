"""Two iterations of PPO on one environment, at the smallest sizes; prints a JSON line. `--list` prints what there is."""

from __future__ import annotations

import json
import sys
import time
import warnings

QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}  # two iterations: compiling is all
NEEDS_FILES = "gymnax/MNISTBandit-bsuite"


def run(id: str) -> dict[str, object]:
    """Whether the learner is finite afterwards, whether it moved, and the seconds that compiling took."""
    import jax
    import numpy as np

    from agentgym_jax.io.config.load import load_experiment
    from agentgym_jax.io.running.assemble import assemble
    from agentgym_jax.types import Clock

    train = {"total_steps": 32, "num_envs": 2, "rollout_length": 8}
    small = {"points": 1, "episodes": 1, "cap": 4}
    algorithm = {"name": "ippo", "epochs": 1, "minibatches": 1}
    plain = {"env": id, "algorithm": algorithm, "network": {"hidden": [8]}, "train": train, "eval": small}
    assembly = assemble(load_experiment(plain))
    keys, hyper = assembly.member_inputs()
    hyper = jax.tree.map(lambda x: x[0], hyper)
    begun = time.perf_counter()

    def program(key):
        before = assembly.loop.init(key, hyper)
        after, curves = assembly.loop.advance(before, hyper, Clock(np.int32(0), np.int32(2)))
        moved = jax.tree.map(lambda a, b: abs(a - b).max(), before.learner.params, after.learner.params)
        return curves, moved, assembly.loop.evaluate(after, hyper, np.int32(0))[1]

    compiled = jax.jit(program, compiler_options=QUICK).lower(keys[0]).compile()
    seconds = time.perf_counter() - begun
    curves, moved, evaluation = jax.device_get(compiled(keys[0]))
    finite = not curves["diverged"].any() and all(np.isfinite(x).all() for x in jax.tree.leaves((moved, evaluation)))
    return {"finite": bool(finite), "moved": bool(max(jax.tree.leaves(moved)) > 0), "compile_seconds": seconds}


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        import envs_jax

        print("\n".join(id for id in envs_jax.ids() if id != NEEDS_FILES and not id.startswith("probe/")))
    else:
        warnings.simplefilter("ignore")
        print(json.dumps(run(sys.argv[1])))

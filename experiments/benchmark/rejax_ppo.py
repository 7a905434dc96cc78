"""PPO on CartPole beside rejax 0.1.3, the same settings, training only: 1 seed, and 16 seeds.

    .venv/bin/python experiments/benchmark/rejax_ppo.py [rounds]

Both train 501 760 steps a seed with 4 environments x 128 steps, 4 epochs, 4 minibatches, MLP 64-64 tanh. rejax runs as its
users run it: jit, vmapped over seeds, evaluation reduced to nothing. This project runs as its command does: members one after
another on each of the virtual CPU devices, one device a core, so the 16-seed ratio contains a gain from using all cores; the
ratio with this project on one device alone is reported beside it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

STEPS, ENVS, LENGTH, EPOCHS, MINIBATCHES = 501_760, 4, 128, 4, 4
REQUIREMENTS = ["rejax==0.1.3", "gymnax<1", "jax==0.10.2", "jaxlib==0.10.2"]
REPEATS = 1  # timed runs of one process; of all runs of a side the fastest counts


def report(compile_seconds: float, seconds: list[float], members: int) -> None:
    """The child's last line."""
    print(json.dumps({"compile_seconds": compile_seconds, "steps_per_second": members * STEPS / min(seconds)}))


def child_rejax(members: int) -> None:
    """rejax: one jitted, vmapped training."""
    import jax
    import jax.numpy as jnp
    from rejax import PPO

    algorithm = PPO.create(
        env="CartPole-v1",
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": (64, 64)},
        num_envs=ENVS,
        num_steps=LENGTH,
        num_epochs=EPOCHS,
        num_minibatches=MINIBATCHES,
        total_timesteps=STEPS,
        eval_freq=STEPS,
        skip_initial_evaluation=True,
        learning_rate=2.5e-4,
        max_grad_norm=0.5,
    ).replace(eval_callback=lambda algorithm, state, key: jnp.float32(0.0))
    train = jax.jit(jax.vmap(algorithm.train)) if members > 1 else jax.jit(algorithm.train)
    keys = jax.random.split(jax.random.PRNGKey(0), members) if members > 1 else jax.random.PRNGKey(0)
    begun = time.perf_counter()
    program = train.lower(keys).compile()
    compiled = time.perf_counter() - begun
    seconds = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        jax.block_until_ready(program(keys))
        seconds.append(time.perf_counter() - begun)
    report(compiled, seconds, members)


def child_ours(members: int, devices: int) -> None:
    """This project: the run that its command line makes, without writing."""
    import agentgym_jax

    agentgym_jax.use_cores(devices)
    sizes = [f"train.total_steps={STEPS}", f"train.num_envs={ENVS}", f"train.rollout_length={LENGTH}", "eval.points=1"]
    sizes += [f"algorithm.epochs={EPOCHS}", f"algorithm.minibatches={MINIBATCHES}"]
    experiment = agentgym_jax.load_experiment("gymnax/cartpole_ppo", overrides=sizes)
    runs = [agentgym_jax.train(experiment, seeds=members, quiet=True).summary for _ in range(REPEATS)]
    report(runs[0]["compile_seconds"], [run["train_seconds"] for run in runs], members)


def main(rounds: int = 5) -> None:
    """Both, in turn; writes experiments/results/benchmark/rejax_ppo.json."""
    import peers

    here, peer = Path(__file__).resolve(), peers.peer_python("rejax", REQUIREMENTS)
    record: dict[str, object] = {"command": "python experiments/benchmark/rejax_ppo.py", "rounds": rounds, "runs": {}}
    for members, our_devices in ((1, (1,)), (16, (1, 2))):
        sides = {f"ours, {count} device": (sys.executable, here, ["ours", str(members), str(count)]) for count in our_devices}
        sides["rejax"] = (peer, here, ["rejax", str(members)])
        runs = peers.in_turn(sides, rounds, seconds=240)
        record["runs"][f"{members} seeds"] = runs  # type: ignore[index]
        bests = {side: peers.best(of) for side, of in runs.items()}
        theirs = bests["rejax"]["steps_per_second"]
        ratios = {side: theirs and own["steps_per_second"] and own["steps_per_second"] / theirs for side, own in bests.items()}
        record[f"{members} seeds"] = {"best": bests, "ratio to rejax": ratios}
    peers.write("rejax_ppo", record)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rejax"]:
        child_rejax(int(sys.argv[2]))
    elif sys.argv[1:2] == ["ours"]:
        child_ours(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main(*map(int, sys.argv[1:]))

"""The demo: a multi-agent and a single-agent task, several seeds of each in one compile, with tables and learning curves.

    make demo
"""

from pathlib import Path

import agentgym_jax
from agentgym_jax.io.running import report

agentgym_jax.use_cores()
agentgym_jax.use_compilation_cache()  # a second demo starts at once

TASKS = {
    "level_based_foraging_mappo": (
        "jumanji/level_based_foraging_mappo",
        400_000,
        "Two agents must lift food together. return: the share of the food that was eaten, 1 is all of it.",
    ),
    "cartpole_ppo": (
        "gymnax/cartpole_ppo",
        250_000,
        "A pole is balanced on a cart. return: steps until it fell, 500 is the most.",
    ),
}


def main(folder: str = "runs/demo", seeds: int = 4) -> None:
    """Trains both tasks, prints a table of each and says where the curves are."""
    for name, (config, total_steps, meaning) in TASKS.items():
        overrides = [f"train.total_steps={total_steps}", "eval.points=5"]
        experiment = agentgym_jax.load_experiment(config, overrides=overrides)
        out = Path(folder) / name
        run = agentgym_jax.train(experiment, seeds=seeds, out=out, overwrite=True)
        report.show(run.summary, out)
        print(f"{meaning}\nlearning curve: {out / 'curve.png'}\n")


if __name__ == "__main__":
    main()

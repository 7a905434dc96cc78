"""PPO on the bsuite, misc and MinAtar environments of gymnax that have no gate: one table of what it reaches.

    python experiments/gymnax_table.py [ID ...]

Each is trained in a process of its own, with a time-out; numbers go to experiments/results/gymnax_table.json (an id that is run
again replaces its row), the table to docs/gymnax.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results" / "gymnax_table.json"
PAGE = ROOT / "docs" / "gymnax.md"
SEEDS = 4
MEMORY = {"torso": "gru", "hidden": [32], "recurrent": 32}
# What each environment needs beyond the common settings; MinAtar has files of its own, with budgets that two cores finish.
SETTINGS: dict[str, dict[str, Any] | str] = {
    "Catch-bsuite": {},
    "UmbrellaChain-bsuite": {"network": MEMORY},
    "DiscountingChain-bsuite": {"network": MEMORY, "algorithm": {"gamma": 1.0}},
    "SimpleBandit-bsuite": {},
    "BernoulliBandit-misc": {"network": MEMORY},
    "GaussianBandit-misc": {"network": MEMORY},
    "FourRooms-misc": {"steps": 1_000_000},
    "MetaMaze-misc": {"network": MEMORY, "steps": 1_000_000},
    "PointRobot-misc": {"network": MEMORY, "algorithm": {"normalise_rewards": True}},
    "Reacher-misc": {"algorithm": {"normalise_observations": True, "normalise_rewards": True}},
    "Swimmer-misc": {"algorithm": {"normalise_observations": True, "normalise_rewards": True}},
    "Pong-misc": {"steps": 1_000_000},
    "MountainCar-v0": {"algorithm": {"normalise_observations": True, "normalise_rewards": True}, "steps": 1_000_000},
    "MountainCarContinuous-v0": {"algorithm": {"normalise_observations": True, "normalise_rewards": True}},
    "SpaceInvaders-MinAtar": "space_invaders_ppo",
    "Asterix-MinAtar": "asterix_ppo",
    "Freeway-MinAtar": "freeway_ppo",
}
# Returns of gymnax's own PPO checkpoints, from its README; those of MinAtar after 1e7 steps.
PUBLISHED = {
    "SpaceInvaders-MinAtar": 131.0,
    "Asterix-MinAtar": 15.0,
    "Freeway-MinAtar": 58.0,
    "MountainCar-v0": -118.0,
    "MountainCarContinuous-v0": 92.0,
}


def experiment_of(name: str) -> Any:
    """The experiment of an id: its own file, or the common settings with what it needs."""
    from agentgym_jax import load_experiment

    own = SETTINGS[name]
    if isinstance(own, str):
        return load_experiment(f"gymnax/{own}")
    algorithm = {"name": "ppo", "learning_rate": {"start": 1e-3, "end": 0}, "epochs": 4, "minibatches": 4}
    return load_experiment(
        {
            "env": {"id": f"gymnax/{name}"},
            "algorithm": algorithm | own.get("algorithm", {}),
            "network": {"torso": "mlp", "hidden": [64, 64]} | own.get("network", {}),
            "train": {"total_steps": own.get("steps", 250_000), "num_envs": 16, "rollout_length": 128},
            "eval": {"points": 5, "episodes": 32, "cap": 1000},
        }
    )


def train(name: str) -> dict[str, Any]:
    """The row of one environment: four seeds of PPO, and 320 random episodes."""
    import agentgym_jax

    agentgym_jax.use_cores()
    import jax
    import numpy as np

    from agentgym_jax.io.running.assemble import with_agent_axis
    from agentgym_jax.tasks.base import fixed
    from agentgym_jax.training.baseline import play_randomly

    run = agentgym_jax.train(experiment_of(name), seeds=SEEDS)
    env, params, cap = with_agent_axis(run.env), fixed(run.assembly.params), run.assembly.plan.cap
    random = jax.jit(lambda key: play_randomly(env, params, key, 320, cap))(jax.random.key(1_000))
    returns = {policy: run.summary["evaluation"][policy]["return"]["per_seed"] for policy in ("greedy", "sampled")}
    return {
        "id": f"gymnax/{name}",
        "steps": run.total_steps,
        "network": run.experiment.network.torso,
        "random": float(np.mean(random["return"])),
        "per_seed": returns,
        "published": PUBLISHED.get(name),
        "train_seconds": run.summary["train_seconds"],
    }


def write(rows: dict[str, dict[str, Any]]) -> None:
    """The JSON and the page."""
    from statistics import mean

    RESULTS.write_text(json.dumps(list(rows.values()), indent=2, ensure_ascii=False) + "\n")
    lines = [
        "# PPO on gymnax",
        "",
        "What PPO reaches on the environments of gymnax that have no gate of their own: means of 4 seeds × 32 episodes at",
        "the end of training, written by `python experiments/gymnax_table.py`. Common settings, nothing tuned, but for",
        "MinAtar, whose files are shipped, with budgets for two cores (its published numbers are after 1e7 steps). With gates:",
        "CartPole, Acrobot, Pendulum, Breakout, FrozenLake, DeepSea, MemoryChain. Left out: Seaquest, whose file is for an",
        "accelerator, and MNISTBandit, which needs files.",
        "",
        "| environment | steps | network | random | greedy | sampled | seeds (greedy) | published |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows.values():
        greedy, sampled = row["per_seed"]["greedy"], row["per_seed"]["sampled"]
        published = "" if row["published"] is None else f"{row['published']:.4g}"
        seeds = ", ".join(f"{x:.3g}" for x in greedy)
        numbers = f"{row['random']:.3g} | {mean(greedy):.4g} | {mean(sampled):.4g} | {seeds} | {published}"
        lines.append(f"| `{row['id']}` | {row['steps']:,} | {row['network']} | {numbers} |".replace("-0 ", "0 "))
    PAGE.write_text("\n".join(lines) + "\n")


def main(names: list[str]) -> int:
    """Trains these, or all; 1 when one failed."""
    rows = {row["id"]: row for row in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    failed = []
    for name in names or SETTINGS:
        command = [sys.executable, __file__, "--here", name]
        try:
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=1200, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
            continue
        rows[f"gymnax/{name}"] = json.loads(done.stdout.splitlines()[-1])
        write(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(train(sys.argv[2])))
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))

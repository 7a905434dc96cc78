"""What each learner reaches on each matrix game against the optimum, ten seeds: one table.

    python experiments/matrix_table.py [GAME/LEARNER ...]      for example climbing/vdn

Each is trained in a process of its own, with a time-out, by the shipped configuration multi/matrix_<game>_<learner>; in the
dilemma MAPPO and IQL take the settings of others. Numbers go to experiments/results/matrix_table.json (a row that is run again
is replaced), the table to docs/matrix.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results" / "matrix_table.json"
PAGE = ROOT / "docs" / "matrix.md"
SEEDS = 10
DILEMMA = ["env.kwargs.game=prisoners_dilemma", "train.total_steps=200_000", "train.rollout_length=20"]
TEAM = ("ippo", "mappo", "iql", "vdn", "qmix")
# {game: (the best return, {learner: (configuration, overrides)})}; the dilemma's return is the sum of both agents.
GAMES: dict[str, tuple[float, dict[str, tuple[str, list[str]]]]] = {
    "climbing": (11, {name: (f"multi/matrix_climbing_{name}", []) for name in TEAM}),
    "penalty": (10, {name: (f"multi/matrix_penalty_{name}", []) for name in TEAM}),
    "prisoners_dilemma": (
        60,
        {
            "ippo": ("multi/matrix_prisoners_ippo", []),
            "mappo": ("multi/matrix_prisoners_ippo", ["algorithm.name=mappo"]),
            "iql": ("multi/matrix_climbing_iql", [*DILEMMA, "algorithm.capacity=8_000"]),
        },
    ),
}
INTRODUCTION = """# Learners on matrix games

What each learner reaches on `multi/matrix` at the end of training, written by `python experiments/matrix_table.py`: the
greedy policies of 10 seeds, and the means of the sampled ones. `best` is the share of rounds in which the joint action pays
both together the most: in climbing 11 of 11, 7, 6, 5; in penalty 10, where the safe action pays 2; in the dilemma mutual
cooperation, 60 in ten rounds, whereas mutual defection, its only equilibrium, earns 20. Nothing was tuned for an outcome.

| game | learner | steps | optimum | greedy | best | sampled | seeds (greedy) |
|---|---|---|---|---|---|---|---|
"""


def train(name: str) -> dict[str, Any]:
    """The row of one learner on one game, `game/learner`: ten seeds."""
    import agentgym_jax

    agentgym_jax.use_cores()
    game, _, learner = name.partition("/")
    optimum, learners = GAMES[game]
    config, overrides = learners[learner]
    run = agentgym_jax.train(agentgym_jax.load_experiment(config, overrides=overrides), seeds=SEEDS)
    evaluation = run.summary["evaluation"]
    return {
        "game": game,
        "learner": learner,
        "config": config,
        "overrides": overrides,
        "steps": run.total_steps,
        "optimum": optimum,
        "per_seed": {policy: evaluation[policy]["return"]["per_seed"] for policy in ("greedy", "sampled")},
        "success_per_seed": evaluation["greedy"]["success"]["per_seed"],
        "train_seconds": run.summary["train_seconds"],
    }


def page(rows: list[dict[str, Any]]) -> str:
    """The table."""
    lines = []
    for row in rows:
        greedy, sampled = row["per_seed"]["greedy"], row["per_seed"]["sampled"]
        numbers = f"{row['optimum']} | {mean(greedy):.4g} | {mean(row['success_per_seed']):.0%} | {mean(sampled):.4g}"
        seeds = ", ".join(f"{x:.4g}" for x in greedy)
        lines.append(f"| {row['game']} | {row['learner']} | {row['steps']:,} | {numbers} | {seeds} |\n")
    return INTRODUCTION + "".join(lines)


def main(names: list[str]) -> int:
    """Trains these, or all; 1 when one failed."""
    everything = [f"{game}/{learner}" for game, (_, learners) in GAMES.items() for learner in learners]
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows = {f"{row['game']}/{row['learner']}": row for row in known}
    failed = False
    for name in names or everything:
        row = _in_own_process(name)
        failed |= row is None
        if row is not None:
            rows[name] = row
            ordered = [rows[each] for each in everything if each in rows]
            RESULTS.write_text(json.dumps(ordered, indent=2) + "\n")
            PAGE.write_text(page(ordered))
    return int(failed)


def _in_own_process(name: str) -> dict[str, Any] | None:
    try:
        words = [sys.executable, __file__, "--here", name]
        ended = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=1200)
    except subprocess.SubprocessError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None
    return json.loads(ended.stdout.splitlines()[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(train(sys.argv[2])))
        sys.exit(0)
    sys.exit(main(sys.argv[1:]))

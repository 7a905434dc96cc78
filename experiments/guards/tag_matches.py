"""Predators that learned, in matches against scripted prey and the prey of another run, beside random predators.

    python experiments/guards/tag_matches.py

Trains `multi/tag_ippo` with two seeds and lets the predators of the first meet every prey. Prints one line of JSON.
"""

from __future__ import annotations

import json
from typing import Any

import agentgym_jax

EPISODES = 256


def main() -> dict[str, Any]:
    """For every prey what predators were paid for catching it, with its 95 % interval, and how often they caught at all."""
    agentgym_jax.use_cores()
    run = agentgym_jax.train(agentgym_jax.load_experiment("multi/tag_ippo"), seeds=2)
    hunters, others = run.policy(seed=0), run.policy(seed=1)
    matches = agentgym_jax.match("multi/tag", [hunters, others], episodes=EPISODES)
    predators, prey = (list(matches.players[group]) for group in ("predator", "prey"))
    mean, caught = matches.mean("group_return.predator"), matches.mean("success")
    low, high = matches.interval("group_return.predator")
    own, random = 0, predators.index("random")
    rows = [
        {
            "prey": name,
            "learned": [mean[own, i], low[own, i], high[own, i]],
            "random": [mean[random, i], low[random, i], high[random, i]],
            "success": caught[own, i],
            "beaten": bool(low[own, i] > high[random, i] and caught[own, i] > 0.5),
        }
        for i, name in enumerate(prey)
        if name not in (prey[own], "random")
    ]
    table = {predator: dict(zip(prey, mean[i].tolist(), strict=True)) for i, predator in enumerate(predators)}
    return {"rows": rows, "group_return.predator": table, "episodes": EPISODES, "total_steps": run.total_steps}


if __name__ == "__main__":
    print(json.dumps(main()))

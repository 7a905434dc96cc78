"""One report with everything in it, shared by the tests that look at it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from agentgym_jax.io.html.measures import Replicates
from agentgym_jax.io.html.write import write_report
from tests.io.html.made_up import external, returns_of, run_directory

QUICK = Replicates(aggregates=300, comparisons=200, bands=100)
CARTPOLE, PENDULUM = "gymnax/CartPole-v1", "gymnax/Pendulum-v1"


class Written(NamedTuple):
    """A report's folder, its page as text, and what went in."""

    folder: Path
    page: str
    curves: dict[tuple[str, str], np.ndarray]  # {(task, algorithm): [P, X]}
    absolute: dict[tuple[str, str], np.ndarray]
    sources: list[Any]


@pytest.fixture(scope="session")
def written(tmp_path_factory) -> Written:
    """PPO and PQN with ten seeds on two tasks, a sweep of DQN with three on one of them, PPO of somebody else on the other."""
    root = tmp_path_factory.mktemp("report")
    curves, absolute, sources = {}, {}, []
    for draw, (task, name, level, seeds) in enumerate(
        [(CARTPOLE, "ppo", 450, 10), (CARTPOLE, "pqn", 380, 10), (PENDULUM, "ppo", -200, 10), (PENDULUM, "pqn", -260, 12)]
    ):
        own = returns_of(seeds, 4, level, draw)
        curves[task, name], absolute[task, name] = own, own[:, -1] + 1
        folder = root / f"{task[7:]}_{name}"
        sources.append(run_directory(folder, curves=own, absolute=own[:, -1] + 1, env=task, algorithm=name))
    for group, hidden in enumerate([8, 16]):
        own = returns_of(6, 4, 300 + hidden, 10 + group)
        for point, rate in enumerate(["0.001", "0.01"]):
            name = f"dqn hidden=[{hidden}] learning_rate={rate}"
            curves[CARTPOLE, name] = absolute[CARTPOLE, name] = own[3 * point : 3 * point + 3]
            absolute[CARTPOLE, name] = curves[CARTPOLE, name][:, -1]
        overrides = (f"network.hidden=[{hidden}]", "sweep={algorithm.learning_rate: [1e-3, 1e-2]}", "seeds=3")
        run_directory(root / "sweep" / f"group-{group:03}", *overrides, curves=own, algorithm="dqn")
    theirs = returns_of(10, 4, -210, 20)
    curves[PENDULUM, "theirs"], absolute[PENDULUM, "theirs"] = theirs, theirs[:, -1]
    (root / "elsewhere.json").write_text(json.dumps(external(theirs, "Pendulum-v1", "ppo")))
    sources += [root / "sweep", f"theirs={root / 'elsewhere.json'}"]
    page = write_report(sources, root / "out", title="Made <up>", replicates=QUICK)
    return Written(page.parent, page.read_text(), curves, absolute, sources)

"""Gates: every one trains a shipped configuration and holds its result against a bar; `population_hang` looks for hangs.

    python experiments/gates.py            all of them
    python experiments/gates.py NAME ...   these

Each gate runs in processes of its own, with a time-out. Its numbers go to experiments/results/gates/<name>.json; the exit code
is 1 when one failed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
HANG = "population_hang"
RESULTS = ROOT / "experiments" / "results" / "gates"


@dataclasses.dataclass(frozen=True)
class Gate:
    """What is trained, and the bar: `passes(returns [P], random)` with `random` the returns of 320 random episodes or ()."""

    config: str
    seeds: int
    bar: str
    passes: Callable[[np.ndarray, np.ndarray], bool]
    overrides: tuple[str, ...] = ()
    beats_random: bool = False
    policy: str = "greedy"  # whose returns are held against the bar
    minutes: int = 15


def _iqm(x: np.ndarray) -> float:
    from scipy.stats import trim_mean

    return float(trim_mean(x, 0.25))


def _upper_bound(random: np.ndarray) -> float:
    """The upper end of the 95 % bootstrap interval of the mean."""
    draws = np.random.default_rng(0).choice(random, size=(10_000, len(random)))
    return float(np.percentile(draws.mean(axis=1), 97.5))


def _above_random(returns: np.ndarray, random: np.ndarray) -> bool:
    return _iqm(returns) > _upper_bound(random)


def _foraging(config: str) -> Gate:
    bar = "mean greedy return (sum over agents) of 4 seeds ≥ 0.9 within 2e6 steps"
    return Gate(f"jumanji/{config}", 4, bar, lambda x, _: x.mean() >= 0.9, minutes=40)


GATES = {
    "cartpole_ppo": Gate(
        "gymnax/cartpole_ppo",
        16,
        "mean greedy return ≥ 490 and at least 14 of 16 seeds ≥ 475 within 5e5 steps, one trace of advance",
        lambda x, _: x.mean() >= 490 and int((x >= 475).sum()) >= 14,
    ),
    "acrobot_ppo": Gate("gymnax/acrobot_ppo", 8, "mean of 8 seeds ≥ -90 within 5e5 steps", lambda x, _: x.mean() >= -90),
    "pendulum_ppo": Gate(
        "gymnax/pendulum_ppo", 8, "median of 8 seeds ≥ -200 within 1e6 steps", lambda x, _: float(np.median(x)) >= -200
    ),
    "level_based_foraging_ippo": _foraging("level_based_foraging_ippo"),
    "level_based_foraging_ippo_gru": _foraging("level_based_foraging_ippo_gru"),
    "level_based_foraging_mappo": _foraging("level_based_foraging_mappo"),
    "level_based_foraging_mappo_gru": _foraging("level_based_foraging_mappo_gru"),
    "connector_ippo": Gate(
        "jumanji/connector_ippo",
        4,
        "IQM of 4 seeds above the upper 95 % bound of the mean of 320 random episodes, 5e5 steps",
        _above_random,
        beats_random=True,
    ),
    "snake_ppo": Gate(
        "jumanji/snake_ppo",
        4,
        "IQM of 4 seeds, sampled policy, above the upper 95 % bound of the mean of 320 random episodes, 5e5 steps",
        _above_random,
        beats_random=True,
        policy="sampled",  # a short snake may turn back, and after 5e5 steps the mode still goes to and fro for ever
    ),
    "fast_ppo": Gate(
        "brax/fast_ppo", 4, "every one of 4 seeds ≥ 135 (of 143.1) within 2^15 steps", lambda x, _: bool((x >= 135).all())
    ),
    "inverted_pendulum_ppo": Gate(
        "brax/inverted_pendulum_ppo", 4, "mean of 4 seeds ≥ 950 within 2e6 steps", lambda x, _: x.mean() >= 950, minutes=40
    ),
}


def run_gate(name: str) -> bool:
    """Trains one gate in this process, writes its numbers and says whether it passed."""
    import agentgym_jax

    agentgym_jax.use_cores()

    gate = GATES[name]
    experiment = agentgym_jax.load_experiment(gate.config, overrides=list(gate.overrides))
    begun = time.perf_counter()
    run = agentgym_jax.train(experiment, seeds=gate.seeds)
    seconds = time.perf_counter() - begun
    random = _random_returns(run.assembly) if gate.beats_random else np.zeros(0)
    summary = run.summary
    per_seed = {policy: summary["evaluation"][policy]["return"]["per_seed"] for policy in ("greedy", "sampled")}
    returns = np.asarray(per_seed[gate.policy])
    passed = bool(gate.passes(returns, random)) and summary["compiles"] == 1 and not summary["diverged"]
    record = {
        "gate": name,
        "bar": gate.bar,
        "passed": passed,
        "command": f"make gates ONLY={name}",
        "config": gate.config,
        "seeds": summary["seeds"],
        "total_steps": summary["total_steps"],
        "policy": gate.policy,
        "returns": {"mean": float(returns.mean()), "median": float(np.median(returns)), "iqm": _iqm(returns)},
        "per_seed": per_seed,
        "absolute_per_seed": summary["absolute"]["return"]["per_seed"],
        "compiles": summary["compiles"],
        "seconds": {"all": seconds, **{k: summary[f"{k}_seconds"] for k in ("compile", "train", "evaluation")}},
        "provenance": _provenance(),
    }
    if gate.beats_random:
        bounds = {"mean": float(random.mean()), "upper_95": _upper_bound(random), "p95": float(np.percentile(random, 95))}
        record["random"] = {"episodes": len(random), **bounds}
    return _write(name, record)


def _provenance() -> dict[str, Any]:
    """Versions, devices and revision; without what tells of one person's machine."""
    from agentgym_jax.io.provenance import provenance

    known = provenance(())
    machine = {name: known["machine"][name] for name in ("backend", "devices", "cores", "xla_flags")}
    return {"started": known["started"], "versions": known["versions"], "machine": machine, "git": known["git"]}


def _random_returns(assembly: Any) -> np.ndarray:
    """320 episodes of uniformly random legal actions."""
    import jax

    from agentgym_jax.io.assemble import with_agent_axis
    from agentgym_jax.tasks.base import fixed
    from agentgym_jax.training.baseline import play_randomly

    env, params, cap = with_agent_axis(assembly.env), fixed(assembly.params), assembly.plan.cap
    episodes = jax.jit(lambda key: play_randomly(env, params, key, 320, cap))(jax.random.key(1_000))
    return np.asarray(episodes["return"], np.float64)


def _write(name: str, record: dict[str, Any]) -> bool:
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    print(f"{'passed' if record['passed'] else 'FAILED'}  {name}: {record['bar']}; {json.dumps(record.get('returns', {}))}")
    return bool(record["passed"])


def run_hang_guard() -> bool:
    """Twenty processes for each mode and size of a population, twenty calls each; one that does not end is a hang."""
    begun, rows = time.perf_counter(), []
    for mode, devices in (("map", 2), ("vmap", 1)):
        for members in (2, 16):
            ended, longest = 0, 0.0
            for _ in range(20):
                started = time.perf_counter()
                ended += _ends(mode, devices, members)
                longest = max(longest, time.perf_counter() - started)
            row = {"mode": mode, "devices": devices, "members": members, "processes": 20}
            rows.append(row | {"ended": ended, "longest_seconds": longest})
    record = {
        "gate": HANG,
        "bar": "20 of 20 processes of 20 calls end within 180 s: map on two devices, vmap on one; 2 and 16 members",
        "passed": all(row["ended"] == row["processes"] for row in rows),
        "command": f"make gates ONLY={HANG}",
        "rows": rows,
        "seconds": {"all": time.perf_counter() - begun},
        "provenance": _provenance(),
    }
    return _write(HANG, record)


def _ends(mode: str, devices: int, members: int) -> bool:
    script = ROOT / "experiments" / "guards" / "population_hang.py"
    command = [sys.executable, str(script), f"--mode={mode}", f"--devices={devices}", f"--members={members}"]
    cache = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax" / "guards")}
    try:
        subprocess.run(command, cwd=ROOT, env=cache, timeout=180, check=True, capture_output=True)
    except subprocess.TimeoutExpired:
        return False
    return True


def main(names: list[str]) -> int:
    """Runs the gates one after another; 0 when all passed."""
    known = [*GATES, HANG]
    if unknown := [name for name in names if name not in known]:
        print(f"gates: no gate is called {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = [name for name in names or known if not _passes(name)]
    print(f"{len(names or known) - len(failed)} passed, {len(failed)} failed" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _passes(name: str) -> bool:
    if name == HANG:
        return run_hang_guard()
    minutes, command = GATES[name].minutes, [sys.executable, __file__, "--here", name]
    try:
        return subprocess.run(command, cwd=ROOT, timeout=60 * minutes, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"FAILED  {name}: still running after {minutes} minutes", file=sys.stderr)
        return False


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        sys.exit(0 if run_gate(sys.argv[2]) else 1)
    sys.exit(main(sys.argv[1:]))

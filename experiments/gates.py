"""Gates: every one trains a shipped configuration and holds its result against a bar (`gate_table.py`). Three are guards:
`population_hang` looks for hangs, `every_environment` runs two iterations of PPO on every environment, and `tag_matches` lets
predators that learned meet scripted and frozen prey.

    python experiments/gates.py            all of them
    python experiments/gates.py NAME ...   these

Each gate runs in processes of its own, with a time-out. Its numbers go to experiments/results/gates/<name>.json; the exit code
is 1 when one failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from gate_table import GATES, Found, Gate, difference_bounds, iqm, rise, upper_bound

ROOT = Path(__file__).resolve().parent.parent
HANG, EVERY, MATCHES = "population_hang", "every_environment", "tag_matches"
RESULTS = ROOT / "experiments" / "results" / "gates"


def run_gate(name: str) -> bool:
    """Trains one gate in this process, writes its numbers and says whether it passed."""
    import agentgym_jax

    agentgym_jax.use_cores()

    gate = GATES[name]
    begun = time.perf_counter()
    run = _trained(gate, gate.config)
    summary = run.summary
    per_seed = {policy: summary["evaluation"][policy][gate.metric]["per_seed"] for policy in ("greedy", "sampled")}
    values = np.asarray(per_seed[gate.policy])
    other = _trained(gate, gate.against).summary["evaluation"][gate.policy][gate.metric]["per_seed"] if gate.against else []
    random = _random_values(run.assembly, gate.metric) if gate.beats_random else np.zeros(0)
    seconds = time.perf_counter() - begun
    found = Found(values, random, run.curves["episode_return"], np.asarray(other))
    plan = run.assembly.plan
    rounded = gate.within + plan.points * plan.num_envs * plan.rollout_length  # up to whole iterations and points
    sound = summary["compiles"] == 1 and not summary["diverged"] and summary["total_steps"] <= rounded
    passed = bool(gate.passes(found)) and sound
    record = {
        "gate": name,
        "bar": gate.bar,
        "passed": passed,
        "command": f"make gates ONLY={name}",
        "config": gate.config,
        "seeds": summary["seeds"],
        "total_steps": summary["total_steps"],
        "policy": gate.policy,
        "metric": gate.metric,
        "returns": {"mean": float(values.mean()), "median": float(np.median(values)), "iqm": iqm(values)},
        "rise": dict(zip(("mean", "standard_error"), rise(found.curve), strict=True)),
        "per_seed": per_seed,
        "absolute_per_seed": summary["absolute"]["return"]["per_seed"],
        "compiles": summary["compiles"],
        "seconds": {"all": seconds, **{k: summary[f"{k}_seconds"] for k in ("compile", "train", "evaluation")}},
        "provenance": _provenance(),
    }
    if gate.against:
        low, high = difference_bounds(found)
        record["against"] = {"config": gate.against, "per_seed": other, "difference_95": [low, high]}
    if gate.beats_random:
        bounds = {"mean": float(random.mean()), "upper_95": upper_bound(random), "p95": float(np.percentile(random, 95))}
        record["random"] = {"episodes": len(random), **bounds}
    return _write(name, record)


def _trained(gate: Gate, config: str) -> Any:
    import agentgym_jax

    return agentgym_jax.train(agentgym_jax.load_experiment(config, overrides=list(gate.overrides)), seeds=gate.seeds)


def _provenance() -> dict[str, Any]:
    """Versions, devices and revision; without what tells of one person's machine."""
    from agentgym_jax.io.running.provenance import git_commit, provenance

    known = provenance(())
    machine = {name: known["machine"][name] for name in ("backend", "devices", "cores", "xla_flags")}
    revision = git_commit(ROOT, but=("experiments/results",))  # where the gate before has written
    return {"started": known["started"], "versions": known["versions"], "machine": machine, "git": revision}


def _random_values(assembly: Any, metric: str) -> np.ndarray:
    """A metric of 320 episodes of uniformly random legal actions."""
    import jax

    from agentgym_jax.io.running.assemble import with_agent_axis
    from agentgym_jax.tasks.base import fixed
    from agentgym_jax.training.baseline import play_randomly

    env, params, cap = with_agent_axis(assembly.env), fixed(assembly.params), assembly.plan.cap
    episodes = jax.jit(lambda key: play_randomly(env, params, key, 320, cap))(jax.random.key(1_000))
    return np.asarray(episodes[metric], np.float64)


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


def run_every_environment() -> bool:
    """Two real iterations of PPO on every environment, at the smallest sizes, each with a process and a time-out of its own."""
    begun, rows = time.perf_counter(), []
    script = ROOT / "experiments" / "guards" / "every_environment.py"
    listed = subprocess.run([sys.executable, str(script), "--list"], cwd=ROOT, check=True, capture_output=True, text=True)
    for id in listed.stdout.split():
        started = time.perf_counter()
        try:
            done = subprocess.run([sys.executable, str(script), id], cwd=ROOT, timeout=300, capture_output=True, text=True)
            row = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"error": done.stderr[-300:]}
        except subprocess.TimeoutExpired:
            row = {"error": "still running after 300 s"}
        rows.append({"id": id, **row, "seconds": time.perf_counter() - started})
        print(json.dumps(rows[-1]), flush=True)
    record = {
        "gate": EVERY,
        "bar": "two iterations of PPO end with finite parameters on every environment but MNISTBandit, which needs files",
        "passed": bool(rows) and all(row.get("finite", False) and row.get("moved", False) for row in rows),
        "command": f"make gates ONLY={EVERY}",
        "rows": rows,
        "seconds": {"all": time.perf_counter() - begun},
        "provenance": _provenance(),
    }
    return _write(EVERY, record)


def run_tag_matches() -> bool:
    """Learned predators against scripted prey and the prey of another seed."""
    begun, script = time.perf_counter(), ROOT / "experiments" / "guards" / "tag_matches.py"
    done = subprocess.run([sys.executable, str(script)], cwd=ROOT, timeout=2400, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"rows": []}
    record = {
        "gate": MATCHES,
        "bar": "against scripted prey and the frozen prey of another seed learned predators catch more than random ones"
        " (95 % intervals apart), and catch at all in most episodes",
        "passed": len(found["rows"]) >= 3 and all(row["beaten"] for row in found["rows"]),
        "command": f"make gates ONLY={MATCHES}",
        **found,
        "seconds": {"all": time.perf_counter() - begun},
        "provenance": _provenance(),
    }
    return _write(MATCHES, record)


GUARDS = {HANG: run_hang_guard, EVERY: run_every_environment, MATCHES: run_tag_matches}


def main(names: list[str]) -> int:
    """Runs the gates one after another; 0 when all passed."""
    known = [*GATES, *GUARDS]
    if unknown := [name for name in names if name not in known]:
        print(f"gates: no gate is called {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = [name for name in names or known if not _passes(name)]
    print(f"{len(names or known) - len(failed)} passed, {len(failed)} failed" + (f": {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _passes(name: str) -> bool:
    if name in GUARDS:
        return GUARDS[name]()
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

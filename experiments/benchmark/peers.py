"""What the benchmarks share: an environment of its own for a peer, runs in turn with time-outs, ratios.

A peer needs other versions than this project, so it gets a virtual environment under .cache/peers, made on first use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "experiments" / "results" / "benchmark"
SCHEDULER = "--xla_cpu_enable_concurrency_optimized_scheduler=false"  # for both: without it vmapped training can hang on CPU


def peer_python(name: str, requirements: list[str]) -> str:
    """The Python of the peer's own environment, which is installed on first use."""
    folder = ROOT / ".cache" / "peers" / name
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        done.touch()
    return str(python)


def run_once(python: str, script: Path, arguments: list[str], seconds: float) -> dict[str, Any]:
    """One child process; the JSON of its last line, or {"failed": why}. A hang is a hang, never a speed."""
    environment = {**os.environ, "XLA_FLAGS": SCHEDULER, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)  # both compile anew
    command = [python, str(script), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"hung: no end within {seconds:.0f} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def in_turn(sides: dict[str, tuple[str, Path, list[str]]], rounds: int, seconds: float) -> dict[str, list[dict[str, Any]]]:
    """Runs the sides A, B, A, B, … `rounds` times each, so that a drift of the machine meets both."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for number in range(rounds):
        for side, (python, script, arguments) in sides.items():
            runs[side].append(run_once(python, script, arguments, seconds))
            print(f"round {number + 1} of {rounds}, {side}: {json.dumps(runs[side][-1])}", file=sys.stderr, flush=True)
    return runs


def best(runs: list[dict[str, Any]]) -> dict[str, float | None]:
    """Fastest training and fastest compilation of the runs that ended."""
    ended = [run for run in runs if "failed" not in run]
    if not ended:
        return {"steps_per_second": None, "compile_seconds": None}
    return {
        "steps_per_second": max(run["steps_per_second"] for run in ended),
        "compile_seconds": min(run["compile_seconds"] for run in ended),
    }


def write(name: str, record: dict[str, Any]) -> None:
    """experiments/results/benchmark/<name>.json, printed too."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps({key: value for key, value in record.items() if key != "runs"}, indent=2))

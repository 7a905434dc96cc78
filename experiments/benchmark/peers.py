"""What the benchmarks share: an environment of its own for a peer, processes with time-outs, ratios, what they ran on.

A peer needs other versions than this project, so it gets a virtual environment under .cache/peers, made on first use.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Iterator
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
    environment = {**_environment(), "XLA_FLAGS": SCHEDULER}
    command = [python, str(script), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"hung: no end within {seconds:.0f} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def _environment() -> dict[str, str]:
    """A child finds this checkout and compiles anew."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    return environment


def stream(script: Path, arguments: list[str], seconds: float) -> Iterator[dict[str, Any]]:
    """The JSON lines of a child process as they come; after them {"failed": why} where it broke or did not end in time."""
    command, late = [sys.executable, str(script), *arguments], threading.Event()
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, env=_environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
        timer = threading.Timer(seconds, lambda: (late.set(), child.kill()))
        timer.start()
        try:
            for line in child.stdout or ():
                if line.startswith("{"):
                    yield json.loads(line)
            code = child.wait()
        finally:
            timer.cancel()
            child.kill()
            child.wait()
        errors.seek(0)
        last = errors.read().strip().splitlines()[-1:]
    if late.is_set():
        yield {"failed": f"no end within {seconds:.0f} s"}
    elif code:
        yield {"failed": f"exit {code}: {''.join(last)}"}


def emit(record: dict[str, Any]) -> None:
    """One line of `stream`, from inside the child."""
    print(json.dumps(record), flush=True)


def about() -> dict[str, Any]:
    """Device in words, cores, versions and revision of this process, without what tells of one person's machine."""
    import jax

    from agentgym_jax.io.running import provenance

    known = provenance.machine()
    device = _processor() if known["backend"] == "cpu" else known["device_kind"]
    counts = {"devices": jax.device_count(), "cores": known["cores"]}
    revision = provenance.git_commit(ROOT, but=("docs", "experiments/results"))
    return {"device": device, "backend": known["backend"], **counts, "versions": provenance.versions(), "git": revision}


def in_words(known: dict[str, Any]) -> str:
    """`AMD EPYC, 2 cores` of what `about` says."""
    count = known["cores"] if known["backend"] == "cpu" else known["devices"]
    unit = "core" if known["backend"] == "cpu" else "device"
    return f"{known['device']}, {count} {unit}{'' if count == 1 else 's'}"


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


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

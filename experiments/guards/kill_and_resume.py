"""Kills a run at random moments and resumes it each time; then compares it to the bit with one that nobody disturbed.

    python experiments/guards/kill_and_resume.py --kills 10 --out DIR

Each process is killed by SIGKILL at a moment drawn uniformly from the time that a run needs, compilation and writes included.
A run that is finished before there were enough kills is compared, and another begun. Prints a JSON object: the newest
checkpoint at each kill, and for each run which files are equal to the bit.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

SETTINGS = [
    "gymnax/cartpole_ppo", "env=probe/policy_observation", "network.hidden=[8]", "train.num_envs=4", "train.rollout_length=4",
    "algorithm.epochs=1", "algorithm.minibatches=1", "eval.points=10", "eval.episodes=4", "train.calls=10",
    "train.total_steps=16000", "log.checkpoint=1", "log.tensorboard=true", "--seeds", "2", "--quiet",
]  # fmt: skip


def agentgym(*words: str) -> subprocess.Popen[str]:
    """Starts a command."""
    command = [sys.executable, "-m", "agentgym_jax", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    """Waits for a command that must succeed."""
    _, error = process.communicate(timeout=600)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {error}")


def newest(run: Path) -> int:
    """Steps of the newest checkpoint, 0 without one."""
    return max((int(path.name) for path in (run / "checkpoints").glob("[0-9]*")), default=0)


def kill_often(run: Path, kills: int, seconds: float, draw: random.Random) -> list[dict[str, int | float]]:
    """Starts or resumes until enough processes were killed, or the run is finished; returns where each kill was."""
    killed = []
    while len(killed) < kills and not (run / "summary.json").exists():
        known = (run / "config.yaml").exists()
        words = ["resume", str(run), "--quiet"] if known else ["train", *SETTINGS, "--out", str(run), "--overwrite"]
        begun, process = time.monotonic(), agentgym(*words)
        try:
            process.wait(draw.uniform(0.0, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            killed.append({"after_seconds": round(time.monotonic() - begun, 2), "checkpoint": newest(run)})
            continue
        finish(process)
    return killed


def without_seconds(run: Path) -> dict[str, object]:
    """summary.json, as far as it must be the same."""
    summary = json.loads((run / "summary.json").read_text())
    return {name: x for name, x in summary.items() if not name.endswith("seconds") and name != "steps_per_second"}


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="a new folder for both runs")
    options = parser.parse_args()
    straight, draw = options.out / "straight", random.Random(options.seed)
    finish(agentgym("train", *SETTINGS, "--out", str(straight)))  # fills the compilation cache
    begun = time.monotonic()
    finish(agentgym("train", *SETTINGS, "--out", str(straight), "--overwrite"))
    seconds = time.monotonic() - begun
    killed, equal = [], []
    while len(killed) < options.kills:
        run = options.out / f"killed-{len(equal)}"
        killed += kill_often(run, options.kills - len(killed), seconds, draw)
        if not (run / "summary.json").exists():
            finish(agentgym("resume", str(run), "--quiet"))
        records = ("metrics.jsonl", "evaluations.jsonl")
        same = {name: (run / name).read_text() == (straight / name).read_text() for name in records}
        equal.append(same | {"summary.json": without_seconds(run) == without_seconds(straight)})
    print(json.dumps({"seconds_of_a_run": round(seconds, 1), "kills": killed, "equal_to_the_bit": equal}, indent=2))
    if not all(all(files.values()) for files in equal):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

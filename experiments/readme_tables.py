"""Writes the tables of measured results into README.md, between their markers, from experiments/results.

    python experiments/readme_tables.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from gate_table import GATES

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "experiments" / "results"


def read(folder: str, name: str) -> dict[str, Any] | None:
    """A committed record, None where it was never made."""
    path = RESULTS / folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def gates() -> list[str]:
    """One row a gate, in the order of the table of gates."""
    rows = ["| gate | seeds | steps of each | result (mean of seeds) | bar | seconds, two cores |", "|---|---|---|---|---|---|"]
    for name in GATES:
        record = read("gates", name)
        if record is None:
            continue
        bar = record["bar"] + (f" ({record['random']['upper_95']:.3g})" if "random" in record else "")
        result = f"{record['returns']['mean']:.4g}" + (" of games won" if record.get("metric") == "won" else "")
        if "against" in record:
            result += f", the other {np.mean(record['against']['per_seed']):.4g}"
        if "median" in bar:
            result = f"median {record['returns']['median']:.4g}"
        elif "IQM" in bar:
            result = f"IQM {record['returns']['iqm']:.4g}, {record['policy']}"
        elif name == "ant_ppo":
            result = f"rise {record['rise']['mean']:.0f} ± {record['rise']['standard_error']:.0f}"
        result += "" if record["passed"] else " (**not reached**)"
        numbers = f"{len(record['seeds'])} | {record['total_steps']:,} | {result} | {bar} | {record['seconds']['all']:.0f}"
        rows.append(f"| `{name}` | {numbers} |")
    return rows


def benchmarks() -> list[str]:
    """One row a comparison with a peer."""
    rows = ["| benchmark, training only, two cores | agentgym_jax, steps/s | peer, steps/s | ratio |", "|---|---|---|---|"]
    for name, title in (("rejax_ppo", "PPO CartPole"), ("rejax_dqn", "DQN CartPole")):
        record = read("benchmark", name) or {}
        for seeds in ("1 seeds", "16 seeds"):
            best = record.get(seeds, {}).get("best", {})
            for side in [side for side in best if side != "rejax"]:
                speeds = [best[one]["steps_per_second"] for one in (side, "rejax")]
                ratio = record[seeds]["ratio to rejax"][side]
                told = [f"{speed / 1000:.0f}k" if speed else "none" for speed in speeds]
                what = f"{title}, {seeds.replace('1 seeds', '1 seed') if seeds == '1 seeds' else seeds}, {side.split(', ')[1]}"
                rows.append(f"| {what}, against rejax 0.1.3 | {told[0]} | {told[1]} | {f'{ratio:.2f}' if ratio else 'none'} |")
    return rows


def replace(text: str, marker: str, rows: list[str]) -> str:
    """The text with the lines between `<!-- marker -->` and `<!-- end of marker -->` replaced."""
    pattern = rf"(<!-- {marker} -->\n).*?(<!-- end of {marker} -->)"
    changed, count = re.subn(pattern, lambda found: found[1] + "\n".join(rows) + "\n" + found[2], text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"README.md must hold the markers of `{marker}` once, found {count}")
    return changed


if __name__ == "__main__":
    README.write_text(replace(replace(README.read_text(), "gates", gates()), "benchmarks", benchmarks()))

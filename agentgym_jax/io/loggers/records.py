"""Curves of a call as records, and records as JSON lines and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

_SUMMED = ("episodes",)  # a count: its mean over iterations would say little


def call_means(curves: Mapping[str, np.ndarray]) -> dict[str, float]:
    """One member's curves [K] of a call as one number each: means over the iterations, `episodes` as a sum.

    NaN marks an iteration without a value (no episode ended): it is left out, and a curve of nothing else gives no number,
    unless the member has diverged, where NaN is the news.
    """
    diverged = bool(np.any(np.asarray(curves.get("diverged", 0.0)) > 0))
    result = {}
    for name, values in curves.items():
        known = values if diverged else values[~np.isnan(values)]
        if name in _SUMMED:
            result[name] = float(np.sum(known))
        elif len(known):
            result[name] = float(np.mean(known, dtype=np.float64))
    return result


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a .jsonl file; a last line that was cut off by a crash is left out."""
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records


def finite(value: Any) -> Any:
    """`value` for JSON, which knows neither NaN nor infinity: those become null; numpy becomes plain Python."""
    if isinstance(value, Mapping):
        return {str(name): finite(x) for name, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return finite(value.tolist())
    if isinstance(value, list | tuple):
        return [finite(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

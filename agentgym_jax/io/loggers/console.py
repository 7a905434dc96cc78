"""Lines on standard output, for people and for the log files of job schedulers: one a call, one an evaluation."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from agentgym_jax.io.loggers.base import evaluation_means

# What is told of a call, where the learner has it; the rest is in the files.
_TOLD = ("episode_return", "episode_length", "policy_loss", "value_loss", "loss", "entropy")


class Console:
    """The mean over the members, with the worst and best of them for returns: one line, printed when the last member came."""

    def __init__(self, members: Sequence[Mapping[str, Any]], stream: TextIO | None = None):
        self._members, self._stream = len(members), stream
        self._waiting: list[Mapping[str, float]] = []

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        self._add("train", step, values)

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        self._add("evaluation", step, evaluation_means(results))

    def flush(self) -> None:
        """Every line is written at once."""

    def close(self) -> None:
        """Standard output stays open."""

    def _add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        self._waiting.append(values)
        if len(self._waiting) == self._members:
            told = _TOLD if kind == "train" else [name for name in values if name.endswith(("/return", "/success"))]
            parts = [self._part(name) for name in told]
            if kind == "train" and not parts[0]:
                parts[0] = "no episode ended"
            diverged = sum(bool(x.get("diverged")) for x in self._waiting)
            parts.append(f"{diverged} of {self._members} diverged" if diverged else "")
            self._waiting = []
            # Standard output as it is now: a live display of progress stands in for it, and prints above itself.
            text = " · ".join(part for part in parts if part)
            print(f"{step:>12,} steps · {kind:<10} · {text}", file=self._stream or sys.stdout, flush=True)

    def _part(self, name: str) -> str:
        known = [x[name] for x in self._waiting if math.isfinite(x.get(name, math.nan))]
        if not known:
            return ""
        spread = f" ({min(known):.4g} … {max(known):.4g})" if len(known) > 1 and name.endswith("return") else ""
        return f"{name} {np.mean(known):.4g}{spread}"

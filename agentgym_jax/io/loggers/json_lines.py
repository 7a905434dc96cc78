"""metrics.jsonl and evaluations.jsonl, which every run has."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentgym_jax.io.loggers.records import finite


class JsonLines:
    """One JSON object a line, appended to what is there, which stays readable whenever the run stops."""

    def __init__(self, metrics: Path, evaluations: Path):
        self._metrics = open(metrics, "a", encoding="utf-8")  # noqa: SIM115  open for the whole run, closed by `close`
        self._evaluations = open(evaluations, "a", encoding="utf-8")  # noqa: SIM115

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        _write(self._metrics, {"step": step, "member": index, **member, **values})

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        _write(self._evaluations, {"step": step, "member": index, **member, **results})

    def flush(self) -> None:
        for file in (self._metrics, self._evaluations):
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        self.flush()
        self._metrics.close()
        self._evaluations.close()


def _write(file: Any, record: Mapping[str, Any]) -> None:
    file.write(json.dumps(finite(record), allow_nan=False) + "\n")
    file.flush()

"""Records of a run while it goes on: JSON lines always, TensorBoard files on request. The x of everything is environment steps.

Loggers take plain Python data that is on the host already; they never touch the device.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

_SUMMED = ("episodes",)  # a count: its mean over iterations would say little


class Logger(Protocol):
    """Where records go. `member` is {"seed": …, swept keys}, `index` its place in the population."""

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        """The means of one member over the iterations of one call."""
        ...

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        """The episodes of one member at one point: {greedy, sampled: {name: [E numbers]}}."""
        ...

    def flush(self) -> None:
        """Puts all records so far on the disk."""
        ...

    def close(self) -> None:
        """Flushes and ends the logger."""
        ...


class JsonLines:
    """metrics.jsonl and evaluations.jsonl: one JSON object a line, which stays readable whenever the run stops."""

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


class TensorBoard:
    """Event files, a folder a member."""

    def __init__(self, folder: Path, members: Sequence[Mapping[str, Any]]):
        from tensorboardX import SummaryWriter

        self._writers = [SummaryWriter(logdir=str(folder / label(member))) for member in members]

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writers[index].add_scalar(f"train/{name}", value, step)

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        for policy, values in results.items():
            for name, episodes in values.items():
                self._writers[index].add_scalar(f"evaluation/{policy}/{name}", float(np.mean(episodes)), step)

    def flush(self) -> None:
        for writer in self._writers:
            writer.flush()

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


class WeightsAndBiases:
    """One W&B run; the names of a member's curves begin with its label."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any]):
        import wandb  # type: ignore[reportMissingImports]  # an extra

        self._run = wandb.init(project=project, name=name, config=dict(config))

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        self._run.log({f"{label(member)}/train/{name}": value for name, value in values.items()}, step=step)

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        means = {f"{policy}/{name}": float(np.mean(x)) for policy, values in results.items() for name, x in values.items()}
        self._run.log({f"{label(member)}/evaluation/{name}": mean for name, mean in means.items()}, step=step)

    def flush(self) -> None:
        """W&B sends by itself."""

    def close(self) -> None:
        self._run.finish()


def label(member: Mapping[str, Any]) -> str:
    """A member's name in files: `seed-3_learning_rate-0.001`."""
    return "_".join(f"{key.rpartition('.')[2]}-{value}" for key, value in member.items())


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


def _write(file: Any, record: Mapping[str, Any]) -> None:
    file.write(json.dumps(finite(record), allow_nan=False) + "\n")
    file.flush()

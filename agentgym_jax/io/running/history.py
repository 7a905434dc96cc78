"""What a run has measured so far, on the host: it travels in checkpoints, so that a resumed run knows all of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from agentgym_jax.io.saving.checkpoint import Checkpoint

_CURVES, _EVALUATION = "history/curves/", "history/evaluation/"


class Seconds(NamedTuple):
    """Wall-clock seconds, apart."""

    compile: float = 0.0
    train: float = 0.0
    evaluation: float = 0.0


class History:
    """Curves of every iteration, episodes of every evaluation, and the seconds they took, over all processes of a run."""

    def __init__(self):
        self.iterations = 0  # done and logged
        self.evaluation_steps: list[int] = []
        self.seconds = Seconds()
        self.diverged: set[int] = set()  # members that were told of
        self._curves: list[dict[str, np.ndarray]] = []  # {name: [P, K]} a call
        self._evaluations: list[dict[str, dict[str, np.ndarray]]] = []  # {policy: {name: [P, 1, E]}} a point

    def add_call(self, curves: dict[str, np.ndarray], iterations: int) -> list[int]:
        """Curves {name: [P, K]} of a call; returns the members that have diverged in it and had not before."""
        self._curves.append(curves)
        self.iterations += iterations
        bad = set(map(int, np.flatnonzero(np.any(curves["diverged"] > 0, axis=1)))) - self.diverged
        self.diverged |= bad
        return sorted(bad)

    def add_evaluation(self, results: dict[str, dict[str, np.ndarray]], steps: int) -> None:
        """Episodes {policy: {name: [P, E]}} of one point."""
        self._evaluations.append(jax.tree.map(lambda x: x[:, None], results))
        self.evaluation_steps.append(steps)

    def add_seconds(self, **spent: float) -> None:
        """Seconds by the names of `Seconds`."""
        self.seconds = Seconds(*(getattr(self.seconds, name) + spent.get(name, 0.0) for name in Seconds._fields))

    def curves(self) -> dict[str, np.ndarray]:
        """{name: [P, iterations so far]}."""
        return _joined(self._curves)

    def evaluation(self) -> dict[str, dict[str, np.ndarray]]:
        """{policy: {name: [P, points so far, E]}}."""
        return _joined(self._evaluations)

    def score(self) -> float | None:
        """The mean greedy return at the last evaluation, over the members that have one; None where no member has."""
        returns = np.asarray(np.mean(self._evaluations[-1]["greedy"]["return"], axis=-1, dtype=np.float64))
        known = returns[np.isfinite(returns)]
        return float(known.mean()) if len(known) else None

    # ---- in a checkpoint

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything measured, by name."""
        evaluation = {f"{policy}/{name}": x for policy, values in self.evaluation().items() for name, x in values.items()}
        return {_CURVES + name: x for name, x in self.curves().items()} | {_EVALUATION + n: x for n, x in evaluation.items()}

    def meta(self) -> dict[str, Any]:
        """The rest, as plain data."""
        return {
            "iteration": self.iterations,
            "evaluation_steps": self.evaluation_steps,
            "seconds": self.seconds._asdict(),
        }


def read_history(checkpoint: Checkpoint, members: list[int]) -> History:
    """The history that a checkpoint holds, of these members."""
    history = History()
    history.iterations = checkpoint.meta["iteration"]
    history.evaluation_steps = list(checkpoint.meta["evaluation_steps"])
    history.seconds = Seconds(**checkpoint.meta["seconds"])
    curves, evaluation = {}, {}
    for name, x in checkpoint.arrays.items():
        if name.startswith(_CURVES):
            curves[name.removeprefix(_CURVES)] = x[members]
        elif name.startswith(_EVALUATION):
            policy, _, metric = name.removeprefix(_EVALUATION).partition("/")
            evaluation.setdefault(policy, {})[metric] = x[members]
    history._curves = [curves] if curves else []
    history._evaluations = [evaluation] if evaluation else []
    if curves:
        history.diverged = set(map(int, np.flatnonzero(np.any(curves["diverged"] > 0, axis=1))))
    return history


def _joined(parts: list[Any]) -> Any:
    """Trees side by side along their second axis; {} for none."""
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts) if parts else {}

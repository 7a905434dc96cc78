"""The last evaluation of a run once more: same program, same keys, same states, so the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from agentgym_jax.io.running.devices import make_population
from agentgym_jax.io.running.run import Run

Results = dict[str, dict[str, np.ndarray]]


def evaluate_again(run: Run) -> Results:
    """{greedy, sampled: {name: float32 [P, E]}} of the run's state as it was saved; the run is not changed."""
    assembly = run.assembly
    population, _ = make_population(assembly)
    keys, hyper = (population.place(x) for x in assembly.member_inputs())
    population.compile(keys, hyper)
    _, results = population.evaluate(population.place(run.state), hyper, population.round(0))
    return population.members(results)


def differences(ours: Results, recorded: Results) -> list[str]:
    """Which of the recorded numbers are not these, as `policy.name`; NaN equals NaN."""
    pairs: list[tuple[str, Any, Any]] = [
        (f"{policy}.{name}", values, recorded.get(policy, {}).get(name))
        for policy, metrics in ours.items()
        for name, values in metrics.items()
    ]
    return [name for name, a, b in pairs if b is None or not np.array_equal(_nan(a), _nan(b), equal_nan=True)]


def _nan(values: np.ndarray) -> np.ndarray:
    """What a record can hold: infinity is null there and comes back as NaN."""
    return np.where(np.isfinite(values), values, np.nan)

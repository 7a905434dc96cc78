"""Scores of different tasks on one scale, task by task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError

_EPSILON = 1e-6  # marl-eval's: a task on which all are equal gives 0


def min_max(scores: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """(x − min) / (max − min + 1e-6), with each task's extremes over all algorithms, runs and points (Gorsane et al. 2022).

    As marl-eval does. The result depends on which algorithms are there, so it is no scale for numbers in a paper's text.

    Args:
      scores: {algorithm: [R, T, ...]}, the same T tasks in each.

    Raises:
      ConfigError: no algorithm, other numbers of tasks, scores that are not finite.
    """
    arrays = {name: np.asarray(each, np.float64) for name, each in scores.items()}
    tasks = {name: array.shape[1] for name, array in arrays.items()}
    if len(set(tasks.values())) != 1:
        raise ConfigError(f"scores: every algorithm needs the same tasks, got {tasks}")
    columns = [np.moveaxis(array, 1, 0).reshape(array.shape[1], -1) for array in arrays.values()]
    pooled = np.concatenate(columns, axis=1)
    if not np.all(np.isfinite(pooled)):
        raise ConfigError("scores: hold numbers that are not finite; leave those runs out and state their number")
    low, high = pooled.min(axis=1), pooled.max(axis=1)
    return {name: (array - _on_tasks(low, array)) / _on_tasks(high - low + _EPSILON, array) for name, array in arrays.items()}


def by_reference(scores: Any, low: Any, high: Any) -> np.ndarray:
    """(x − low) / (high − low), with given references of each task, such as a random and an expert policy's return.

    Args:
      scores: [R, T, ...]. low, high: [T], or one number for all tasks.

    Raises:
      ConfigError: a task whose references are equal or not finite.
    """
    array = np.asarray(scores, np.float64)
    low, high = (np.broadcast_to(np.asarray(x, np.float64), array.shape[1:2]) for x in (low, high))
    for task, width in enumerate(high - low):
        if width == 0 or not np.isfinite(width):
            raise ConfigError(f"references of task {task}: must be two different numbers, got {low[task]} and {high[task]}")
    return (array - _on_tasks(low, array)) / _on_tasks(high - low, array)


def _on_tasks(values: np.ndarray, array: np.ndarray) -> np.ndarray:
    """One value a task [T], shaped to meet [R, T, ...]."""
    return values.reshape(1, -1, *(1,) * (array.ndim - 2))

"""What an algorithm is: a tuple of pure functions that the one training loop calls.

An iteration is: unroll T steps -> push into the memory -> U times (sample -> learn -> feedback) -> observe. On-policy and
replay learners differ by their `memory` alone. Any function of the tuple can be replaced with `algorithm._replace(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from agentgym_jax.memory.base import Memory


def _nothing_observed(learner: Any, hyper: Any, trajectory: Any, carry: Any, clock: Any) -> tuple[Any, Any]:
    return learner, carry


class Algorithm(NamedTuple):
    """Pure functions of one member; `spec`, static config, networks and sizes are already inside.

    init(key, hyper) -> learner
    carry(batch_shape) -> the hidden state of fresh agents, [*batch_shape, A, ...]; no leaves when feed-forward
    act(learner, hyper, carry, timestep, world, reset, key, clock, explore) -> carry, action [N, A, ...], extras
        `explore` is static: False is the mode, True the behaviour policy
    learn(learner, hyper, batch, key, clock) -> learner, scalars {name: float32 []}, feedback (() or one number a sample)
    observe(learner, hyper, trajectory, carry, clock) -> learner, carry
        runs last in an iteration and may change statistics; `carry` is the actor's after the rollout
    record: the fields of `Transition` to keep; any other is None and costs nothing
    warmup: iterations of uniform legal acting before the first one that learns, static
    """

    init: Callable[..., Any]
    carry: Callable[..., Any]
    act: Callable[..., tuple[Any, Any, Any]]
    learn: Callable[..., tuple[Any, dict[str, Any], Any]]
    memory: Memory
    record: frozenset[str]
    observe: Callable[..., tuple[Any, Any]] = _nothing_observed
    warmup: int = 0

"""A whole run as one pure function: `train(hyper, key) -> TrainResult`, one XLA program under `jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from agentgym_jax.training.loop import Loop
from agentgym_jax.types import Clock


@struct.dataclass
class TrainResult:
    """The result of one member; `vmap` adds P in front of everything."""

    learner: Any
    curves: dict[str, jax.Array]  # {name: float32 [iterations]}
    evaluation: dict[str, dict[str, jax.Array]]  # {greedy, sampled: {name: float32 [points, E]}}
    absolute: dict[str, jax.Array]  # {name: float32 [10 · E]}: the best policy on fresh episodes


def make_train(loop: Loop) -> Callable[[Any, jax.Array], TrainResult]:
    """The function that trains one member from its numbers and its key; compose it with jit, vmap and grad."""
    plan = loop.plan

    def train(hyper: Any, key: jax.Array) -> TrainResult:
        total = jnp.int32(plan.iterations)

        def call(state, index):
            return loop.advance(state, hyper, Clock(index * plan.iterations_per_call, total))

        def point(state, index):
            calls = index * plan.calls + jnp.arange(plan.calls, dtype=jnp.int32)
            state, curves = jax.lax.scan(call, state, calls)
            state, evaluation = loop.evaluate(state, hyper, jnp.int32(0))
            return state, (curves, evaluation)

        state = loop.init(key, hyper)
        state, (curves, evaluation) = jax.lax.scan(point, state, jnp.arange(plan.points, dtype=jnp.int32))
        curves = jax.tree.map(lambda x: x.reshape(plan.iterations), curves)
        return TrainResult(state.learner, curves, evaluation, _absolute(loop, state, hyper))

    return train


def _absolute(loop: Loop, state: Any, hyper: Any) -> dict[str, jax.Array]:
    def one(_, round):
        return None, loop.evaluate(state, hyper, round)[1]["greedy"]

    rounds = jnp.arange(1, loop.plan.absolute + 1, dtype=jnp.int32)
    _, episodes = jax.lax.scan(one, None, rounds)
    return jax.tree.map(lambda x: x.reshape(-1), episodes)

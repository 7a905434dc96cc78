"""Optimisers, rebuilt from traced numbers inside every program: state is arrays only.

Gradients, moments and clipping live on one flat vector, which is faster on CPU and GPU than a tree of small arrays.
`eps_root` is 1e-16, without which the derivative of Adam at a zero gradient is NaN and no derivative of training exists.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax.flatten_util import ravel_pytree

from agentgym_jax.algorithms.group_steps import GroupSteps
from agentgym_jax.ops.schedules import Schedule
from agentgym_jax.types import Clock

NAMES = ("adam", "adamw", "radam", "sgd", "rmsprop")
# What the numbers of an optimiser may be, ends included.
RANGES = {
    "learning_rate": (0.0, math.inf),
    "max_grad_norm": (0.0, math.inf),
    "optimiser_epsilon": (0.0, math.inf),
    "weight_decay": (0.0, math.inf),
    "momentum": (0.0, 1.0),
}
_EPS_ROOT = 1e-16


@struct.dataclass
class OptimiserState:
    count: jax.Array  # int32 []: gradient steps done; the learning rate's clock
    inner: Any


def norm(vector: jax.Array) -> jax.Array:
    """The Euclidean norm of a flat vector, float32 []; differentiable at zero, where it is 1e-12."""
    return jnp.sqrt(jnp.sum(jnp.square(vector)) + 1e-24)


def clip_by_global_norm(max_norm: jax.Array) -> optax.GradientTransformation:
    """Scales a flat gradient down to norm `max_norm`; a zero gradient, or a zero limit, gives zeros and never NaN."""

    def update(updates, state, params=None):
        del params
        return updates * jnp.minimum(1.0, max_norm / norm(updates)), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def _rectified_adam(epsilon: Any, b1: float = 0.9, b2: float = 0.999) -> optax.GradientTransformation:
    """`optax.scale_by_radam` with derivatives: there the branch not taken in the first steps is NaN (√ of a negative)."""
    adam = optax.scale_by_adam(b1, b2, eps=epsilon, eps_root=_EPS_ROOT)

    def update(updates: Any, state: Any, params: Any = None):
        adapted: Any
        adapted, state = adam.update(updates, state, params)
        count = state.count.astype(jnp.float32)
        longest = 2.0 / (1.0 - b2) - 1.0
        length = longest - 2.0 * count * b2**count / (1.0 - b2**count)
        known = jnp.maximum(length, 5.0)  # the length of the average from which its variance is tractable
        rectification = jnp.sqrt((known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known))
        return jnp.where(length >= 5.0, rectification * adapted, state.mu / (1.0 - b1**count)), state

    return optax.GradientTransformation(adam.init, update)


def _direction(name: str, hyper: Any) -> list[optax.GradientTransformation]:
    if name == "adam":
        return [optax.scale_by_adam(eps=hyper.optimiser_epsilon, eps_root=_EPS_ROOT)]
    if name == "adamw":
        adam = optax.scale_by_adam(eps=hyper.optimiser_epsilon, eps_root=_EPS_ROOT)
        return [adam, optax.add_decayed_weights(hyper.weight_decay)]
    if name == "radam":
        return [_rectified_adam(hyper.optimiser_epsilon)]
    if name == "rmsprop":
        return [optax.scale_by_rms(decay=0.99, eps=hyper.optimiser_epsilon)]
    return [optax.trace(decay=hyper.momentum)]


def _transform(name: str, hyper: Any, learning_rate: jax.Array) -> optax.GradientTransformation:
    return optax.chain(clip_by_global_norm(hyper.max_grad_norm), *_direction(name, hyper), optax.scale(-learning_rate))


def init(name: str, hyper: Any, params: Any) -> OptimiserState:
    """The state before the first step; moments are flat vectors of the size of all `params` together."""
    flat = jnp.zeros_like(ravel_pytree(params)[0])
    return OptimiserState(jnp.int32(0), _transform(name, hyper, jnp.float32(0.0)).init(flat))


def learning_rate(rate: Any, count: jax.Array, clock: Clock, steps_per_iteration: int) -> jax.Array:
    """The learning rate of gradient step `count`, float32 []: x = (count + 1) / all, so the end value is that of the last step.

    With `per: iteration` it is constant during an iteration, x = finished iterations / all, as in PureJaxRL.
    """
    if not isinstance(rate, Schedule):
        return rate
    if rate.per == "iteration":
        return rate.at((count // steps_per_iteration) / jnp.float32(clock.total))
    all_steps = jnp.float32(clock.total) * steps_per_iteration
    return rate.at((count + 1) / all_steps)


def apply_gradient(
    name: str,
    hyper: Any,
    state: OptimiserState,
    params: Any,
    gradient: Any,
    clock: Clock,
    steps_per_iteration: int,
    group_steps: GroupSteps | None = None,
) -> tuple[Any, OptimiserState, dict[str, jax.Array]]:
    """One step: new params, new state, {learning_rate, grad_norm (before clipping)}.

    `hyper` has max_grad_norm, optimiser_epsilon, weight_decay and momentum as numbers, and learning_rate as a number or
    a `Schedule`. `steps_per_iteration` is U times the gradient steps of one `learn`. `group_steps` gives groups of agents a
    pace of their own.
    """
    rate = learning_rate(hyper.learning_rate, state.count, clock, steps_per_iteration)
    flat_params, unravel = ravel_pytree(params)
    flat_gradient, _ = ravel_pytree(gradient)
    updates: Any
    updates, inner = _transform(name, hyper, rate).update(flat_gradient, state.inner, flat_params)
    scalars = {"learning_rate": jnp.asarray(rate, jnp.float32), "grad_norm": norm(flat_gradient)}
    params = group_steps.take(params, unravel(updates), clock) if group_steps else unravel(flat_params + updates)
    return params, OptimiserState(state.count + 1, inner), scalars

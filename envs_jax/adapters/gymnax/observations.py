"""What is shown of a gymnax observation, and the space that holds it.

gymnax's declared spaces are right for most environments; for the others the true bounds stand here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnax.environments import spaces as gymnax_spaces

from envs_jax.spaces import Box

_INF = float("inf")
_ZERO = -1e-6  # 1 - t / n ends here or a little above: XLA may fuse it into 1 - t * (1 / n), which is -1.5e-8 at t = n
_BOARDS = ("Catch-bsuite", "DeepSea-bsuite", "MNISTBandit-bsuite")  # [H, W]

# name -> (environment, time limit) -> low, high. The times of MetaMaze and the bandits are t, or 2 t / 100 - 1.
_BOUNDS: dict[str, Callable[[Any, int], tuple[Any, Any]]] = {
    "MemoryChain-bsuite": lambda env, limit: (
        (_ZERO, 0, *env.num_bits * (-1,)),  # time left, query, context
        (1, env.num_bits - 1, *env.num_bits * (1,)),
    ),
    "UmbrellaChain-bsuite": lambda env, limit: (
        (0, 0, _ZERO, *env.n_distractor * (0,)),  # need, have, time left, distractors
        1,
    ),
    "MetaMaze-misc": lambda env, limit: (
        (*(env.rf_size**2 + 4) * (0,), -_INF, -1),  # walls around, last action, last reward, time
        (*(env.rf_size**2 + 4) * (1,), _INF, limit),
    ),
    "GaussianBandit-misc": lambda env, limit: ((-_INF, 0, 0, -1), (_INF, 1, 1, limit)),  # last reward, last action, time
    "BernoulliBandit-misc": lambda env, limit: ((0, 0, 0, -1), (1, 1, 1, limit)),
    "MNISTBandit-bsuite": lambda env, limit: (-128 / 255, 127 / 255),  # signed bytes
    "Pong-misc": lambda env, limit: (0, 1),
}


def view(name: str, env: Any, params: Any, emitted: jax.ShapeDtypeStruct) -> tuple[Box, Callable[[jax.Array], jax.Array]]:
    """The space of what is shown, and the function that makes it from gymnax's observation (of type `emitted`).

    Raises ValueError for a kind of space that no environment of gymnax 1.0 has.
    """
    space = env.observation_space(params)
    if isinstance(space, gymnax_spaces.Discrete):
        size = int(space.n)
        return Box(0, 1, (size,)), lambda x: jax.nn.one_hot(x, size, dtype=jnp.float32)
    if not isinstance(space, gymnax_spaces.Box):
        raise ValueError(f"the gymnax adapter knows Discrete and Box observations, got {space!r}")
    bounds = _BOUNDS[name](env, int(params.max_steps_in_episode)) if name in _BOUNDS else (space.low, space.high)
    low, high = (_infinite(np.asarray(bound, np.float64)) for bound in bounds)
    if name in _BOARDS:
        return Box(low, high, (*emitted.shape, 1), emitted.dtype), lambda x: x[..., None]
    return Box(low, high, emitted.shape, emitted.dtype), lambda x: x


def _infinite(bound: np.ndarray) -> np.ndarray:
    """gymnax writes the largest float where there is no bound."""
    return np.where(np.abs(bound) >= np.finfo(np.float32).max, np.copysign(np.inf, bound), bound)

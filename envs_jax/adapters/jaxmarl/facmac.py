"""FACMAC's pursuits, Peng et al. 2021, arXiv:2003.06709: the library moves the prey."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from envs_jax.adapters.jaxmarl.base import State
from envs_jax.adapters.jaxmarl.mpe import MPE


class Facmac(MPE):
    """`MPE_simple_facmac_...`: only the adversaries are agents.

    A prey moves as in the library, to the same point, which is found faster: all prey choose among the same 100 points, since
    the library draws them from one key for each, and here they are drawn once (`docs/environments.md` has the speeds).
    """

    def __init__(self, name: str, /, time_limit: int = 25, **kwargs: Any):
        super().__init__(name, time_limit, **kwargs)
        self.library._prey_policy = lambda key, state, entity: self._fled(state, entity, points=state.goal)

    def controlled(self, library: Any) -> tuple[str, ...]:
        return tuple(library.adversaries)

    def play(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        before = state.library
        played = state.replace(library=before.replace(goal=_points(key)))  # in a field that these tasks leave empty
        after, reward = super().play(key, played, action, params)
        return after.replace(library=after.library.replace(goal=before.goal)), reward

    def _fled(self, state: Any, entity: int, points: tuple[jax.Array, jax.Array]) -> jax.Array:
        """The point [2] that the library's rule chooses: the farthest of those that touch others, or no move if none does.

        `score_function` min looks at the adversaries, and how far the first is; sum at everything, also on the way there, and
        how far all adversaries are.
        """
        hunters, nearest = self.library.num_adversaries, self.library.score_function == "min"
        others = slice(hunters if nearest else None)
        close = self.library.rad[others] + self.library.rad[entity]
        touches, distances = jnp.bool_(True), jnp.float32(0)
        for way in (1.0,) if nearest else (0.2, 0.4, 0.6, 0.8, 1.0):
            distances = _distances(state.p_pos[others], state.p_pos[entity], [way * axis for axis in points])
            touches &= jnp.any(distances < close[:, None], axis=0)
        far = distances[0] if nearest else jnp.sum(distances[:hunters], axis=0)
        best = jnp.argmax(jnp.where(touches, far, -1.0))
        return jnp.where(touches[best], jnp.stack([axis[best] for axis in points]), 0.0)


def _points(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where prey may go, seen from where they are: x and y, [100] each; the library's draws.

    One array of both would be fused into every use, and a step with three prey take 1.4 to 1.8 times as long on CPU.
    """
    key, of_length = jax.random.split(key)
    _, of_angle = jax.random.split(key)
    length = jnp.sqrt(jax.random.uniform(of_length, (100,)))
    angle = jnp.pi * jnp.sqrt(jax.random.uniform(of_angle, (100,), maxval=2.0))
    return length * jnp.cos(angle), length * jnp.sin(angle)


def _distances(others: jax.Array, own: jax.Array, points: Sequence[jax.Array]) -> jax.Array:
    """From others [E, 2] to points (x and y, [P] each) seen from `own` [2]: [E, P], the order in which CPUs are fast."""
    x, y = (others[:, axis, None] - (points[axis] + own[axis])[None] for axis in range(2))
    return jnp.sqrt(x * x + y * y)

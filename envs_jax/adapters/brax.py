"""brax's environments, raw: https://github.com/google/brax, Freeman et al. 2021, arXiv:2106.13281.

None of brax's training wrappers is used: they restart every episode from a cached first state and count steps twice. Every
environment takes actions in [-1, 1] and, where its actuators have another range, rescales them inside.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from envs_jax.adapters.common import cast_like, check_arguments, check_time_limit, strong
from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.names import unknown
from envs_jax.spaces import Box

RESET_MODE = "fresh"

_BACKENDS = ("generalized", "spring", "positional", "mjx")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Swallows what brax warns of whenever it is imported, built or traced: that it and what it uses are no longer kept up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# The import also prints that optional packages are missing.
with _quiet(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    from brax.envs.ant import Ant
    from brax.envs.base import State as LibraryState
    from brax.envs.fast import Fast
    from brax.envs.inverted_pendulum import InvertedPendulum

_CLASSES = {"fast": Fast, "inverted_pendulum": InvertedPendulum, "ant": Ant}


@struct.dataclass
class State:
    """What a step and `observe` need of brax's state."""

    pipeline: Any  # the physics
    observation: jax.Array  # float32 [n]
    done: jax.Array  # bool []: a true end
    steps: jax.Array  # int32 []: since the start of the episode


class BraxEnv(Env):
    """One brax environment with a time limit of its own.

    Observations are brax's, unbounded; the episode truly ends when brax says `done`, and is cut after `time_limit` steps.
    """

    def __init__(self, environment: Any, time_limit: int):
        with _quiet():
            start = jax.eval_shape(environment.reset, jax.random.PRNGKey(0))
        if not hasattr(start.obs, "shape"):
            raise ValueError(f"{type(environment).__name__}: the observation must be one array, got {start.obs}")
        self.library = environment
        self._limit = time_limit
        self.spec = EnvSpec(
            observation_space=Box(-jnp.inf, jnp.inf, start.obs.shape),
            action_space=Box(-1.0, 1.0, (environment.action_size,)),
            episode_limit=time_limit,
        )

    def initial(self, key: jax.Array, params: Any) -> State:
        with _quiet():
            start = self.library.reset(key)
        return strong(self._state(start, jnp.int32(0)))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        # Its `step` writes into the dictionaries of the state that it is given, so it gets fresh ones.
        zero = jnp.float32(0)
        start = LibraryState(state.pipeline, state.observation, reward=zero, done=zero, metrics={}, info={})
        with _quiet():
            after = self.library.step(start, action)
        return cast_like(state, self._state(after, state.steps + 1)), jnp.asarray(after.reward, jnp.float32)

    def observe(self, state: State, params: Any) -> TimeStep:
        return TimeStep(
            observation=state.observation,
            reward=jnp.float32(0),
            discount=(~state.done).astype(jnp.float32),
            alive=jnp.bool_(True),
            last=state.done | (state.steps >= self._limit),
        )

    def _state(self, after: LibraryState, steps: jax.Array) -> State:
        return State(after.pipeline_state, jnp.asarray(after.obs, jnp.float32), jnp.asarray(after.done) > 0, steps)


def make(name: str, time_limit: int = 1000, **kwargs: Any) -> Env:
    """Builds brax's environment `name`.

    Args:
        name: `fast` (no physics, for tests), `inverted_pendulum`, `ant`.
        time_limit: steps until an episode is cut.
        kwargs: arguments of brax's own class. `backend`, the physics, is `generalized` unless given (a published
            score holds for one backend, `spring` for many); `n_frames` is how many steps of physics make one of the
            environment.

    Raises ValueError for an unknown name, argument or backend, with the nearest, and for a time limit below 1.
    """
    if name not in _CLASSES:
        raise unknown("brax environment", name, _CLASSES)
    build = _CLASSES[name]
    accepted = [key for key, value in inspect.signature(build).parameters.items() if value.kind is not value.VAR_KEYWORD]
    if "backend" in accepted:
        accepted += ["n_frames"]
        if kwargs.get("backend", _BACKENDS[0]) not in _BACKENDS:
            raise unknown("brax backend", kwargs["backend"], _BACKENDS)
    check_arguments(f"brax/{name}", [*accepted, "time_limit"], kwargs)
    with _quiet():
        environment = build(**kwargs)
    return BraxEnv(environment, check_time_limit(f"brax/{name}", time_limit))

"""What every wrapper shares: it is an environment around another one, `env`, and passes on what it does not change."""

from __future__ import annotations

from typing import Any

import jax

from envs_jax.core import Env, EnvSpec, TimeStep


class Wrapper(Env):
    """An environment around `env` with `spec`. One that keeps state of its own says with `inner` where env's state is."""

    def __init__(self, env: Env, spec: EnvSpec | None = None):
        self.env = env
        self.spec = env.spec if spec is None else spec
        self.default_params = env.default_params
        self.reset_mode, self.ranges = env.reset_mode, env.ranges

    @property
    def unwrapped(self) -> Env:
        """The environment inside all wrappers."""
        return self.env.unwrapped if isinstance(self.env, Wrapper) else self.env

    def inner(self, state: Any) -> Any:
        """The part of `state` that belongs to `env`."""
        return state

    def initial(self, key: jax.Array, params: Any) -> Any:
        return self.env.initial(key, params)

    def advance(self, key: jax.Array, state: Any, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        return self.env.advance(key, state, action, params)

    def observe(self, state: Any, params: Any) -> TimeStep:
        return self.env.observe(self.inner(state), params)

    def render(self, state: Any) -> jax.Array:
        return self.env.render(self.inner(state))

    def world(self, state: Any, params: Any) -> jax.Array:
        return self.env.world(self.inner(state), params)

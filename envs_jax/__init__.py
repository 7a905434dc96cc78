"""envs_jax: many environments as pure JAX functions behind one interface.

>>> env = envs_jax.make("gymnax/CartPole-v1")
>>> state, timestep = env.reset(key, env.default_params)
>>> state, timestep = env.step(key, state, action, env.default_params)

Names are resolved on first use, so that listing the environments does not import jax.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "envs_jax.registry": ("ids", "make", "register", "resolve", "suite"),
    "envs_jax.core": ("Env", "EnvSpec", "Group", "TimeStep"),
    "envs_jax.spaces": ("Box", "Discrete", "MultiDiscrete"),
    "envs_jax.vectorise": ("Vector", "random_policy", "rollout", "vector"),
    "envs_jax.wrappers": ("Wrapper", "apply_wrappers"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'envs_jax' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])

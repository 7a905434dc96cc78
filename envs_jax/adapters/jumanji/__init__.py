"""jumanji's environments: https://github.com/instadeepai/jumanji, Bonnet et al. 2024, arXiv:2306.09884.

One class per environment says what its agents see, which actions are legal and what is measured; `base.JumanjiEnv` does
the rest. To add an environment, write such a class and name it in `_CLASSES`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from envs_jax.adapters.common import check_arguments
from envs_jax.core import Env
from envs_jax.names import unknown

RESET_MODE = "pool"

_CLASSES = {
    "LevelBasedForaging-v0": "level_based_foraging:LevelBasedForaging",
    "Connector-v3": "connector:Connector",
    "Snake-v1": "snake:Snake",
}


def make(name: str, **kwargs: Any) -> Env:
    """Builds the environment with jumanji's id `name`; `kwargs` are the arguments of its class.

    Raises ValueError for an unknown name or argument, with the nearest, and for values that the environment cannot have.
    """
    if name not in _CLASSES:
        raise unknown("jumanji environment", name, _CLASSES)
    module, _, attribute = _CLASSES[name].partition(":")
    environment = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    check_arguments(f"jumanji/{name}", inspect.signature(environment).parameters, kwargs)
    return environment(**kwargs)

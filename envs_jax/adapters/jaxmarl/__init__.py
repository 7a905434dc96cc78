"""jaxmarl's environments: https://github.com/FLAIROX/JaxMARL, Rutherford et al. 2023, arXiv:2311.10090. Extra `jaxmarl`.

| ids | agents | action | pays | truly ends |
|---|---|---|---|---|
| smax_3m and 13 more scenarios | 3 to 27 allies; enemies are played | 5 + enemies (mask) | team | when one side is dead |
| MPE_simple_spread_v3 and 12 more | 1 to 9, of up to 3 kinds | 3 to 50 (mask if kinds differ), or Box | individual | never |
| overcooked_cramped_room and 4 more layouts | 2 | 6 | team, or individual | never |
| overcooked_v2_cramped_room and 22 more layouts | 2 (`long_room`: 1) | 6 | team, or individual | never |

Nothing starts anew by itself, and time limits are exact. `smax`, `mpe` and `overcooked` say what agents see and which
arguments there are.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from envs_jax.core import Env
from envs_jax.names import unknown


def make(name: str, **kwargs: Any) -> Env:
    """Builds the environment `name`; `kwargs` are the arguments of its class.

    Raises ValueError when the library is not installed, for an unknown name or argument, with the nearest, and for values
    that the environment cannot have.
    """
    if importlib.util.find_spec("jaxmarl") is None:
        raise ValueError(f"jaxmarl/{name} needs the package jaxmarl, which is not installed: pip install agentgym-jax[jaxmarl]")
    from envs_jax.adapters.jaxmarl.catalogue import ENVIRONMENTS

    if name not in ENVIRONMENTS:
        raise unknown("jaxmarl environment", name, ENVIRONMENTS)
    build, first = ENVIRONMENTS[name]
    return build(*first, **kwargs)

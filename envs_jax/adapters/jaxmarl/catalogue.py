"""Which names there are, and the class and its first arguments that each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envs_jax.adapters.jaxmarl.facmac import Facmac
from envs_jax.adapters.jaxmarl.library import LAYOUTS, PARTICLES, SCENARIOS
from envs_jax.adapters.jaxmarl.mpe import MPE
from envs_jax.adapters.jaxmarl.overcooked import Overcooked
from envs_jax.adapters.jaxmarl.smax import SMAX

ENVIRONMENTS: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    **{f"smax_{scenario}": (SMAX, (scenario,)) for scenario in SCENARIOS},
    **{name: (Facmac if "facmac" in name else MPE, (name,)) for name in PARTICLES},
    **{f"overcooked_{layout}": (Overcooked, (1, layout)) for layout in LAYOUTS[1]},
    **{f"overcooked_v2_{layout}": (Overcooked, (2, layout)) for layout in LAYOUTS[2]},
}

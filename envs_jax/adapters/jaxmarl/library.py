"""The library itself, imported without its noise. Only this file and those that import it need the extra `jaxmarl`."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Swallows warnings: that Overcooked has a second version, and what brax says of itself when the library imports it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Swallows what is printed at import: which optional parts are missing.

    The library puts the interpreter's first streams into the place of whichever there are, a notebook's for example: here it
    finds the sink in both places, and all four are put back.
    """
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr", "__stdout__", "__stderr__")}
    sink = io.StringIO()
    try:
        for name in streams:
            setattr(sys, name, sink)
        yield
    finally:
        for name, stream in streams.items():
            setattr(sys, name, stream)


with quiet(), _silent():
    from jaxmarl.environments import mpe
    from jaxmarl.environments.overcooked import Overcooked, overcooked_layouts
    from jaxmarl.environments.overcooked_v2 import OvercookedV2, overcooked_v2_layouts
    from jaxmarl.environments.smax import HeuristicEnemySMAX, LearnedPolicyEnemySMAX
    from jaxmarl.environments.smax.smax_env import MAP_NAME_TO_SCENARIO as SCENARIOS

__all__ = ["KITCHENS", "LAYOUTS", "PARTICLES", "SCENARIOS", "HeuristicEnemySMAX", "LearnedPolicyEnemySMAX", "quiet"]

PARTICLES: Mapping[str, Any] = {
    "MPE_simple_v3": mpe.SimpleMPE,
    "MPE_simple_adversary_v3": mpe.SimpleAdversaryMPE,
    "MPE_simple_crypto_v3": mpe.SimpleCryptoMPE,
    "MPE_simple_facmac_v1": mpe.SimpleFacmacMPE,
    "MPE_simple_facmac_3a_v1": mpe.SimpleFacmacMPE3a,
    "MPE_simple_facmac_6a_v1": mpe.SimpleFacmacMPE6a,
    "MPE_simple_facmac_9a_v1": mpe.SimpleFacmacMPE9a,
    "MPE_simple_push_v3": mpe.SimplePushMPE,
    "MPE_simple_reference_v3": mpe.SimpleReferenceMPE,
    "MPE_simple_speaker_listener_v4": mpe.SimpleSpeakerListenerMPE,
    "MPE_simple_spread_v3": mpe.SimpleSpreadMPE,
    "MPE_simple_tag_v3": mpe.SimpleTagMPE,
    "MPE_simple_world_comm_v3": mpe.SimpleWorldCommMPE,
}
# By version of Overcooked: the class, and the kitchens by name.
KITCHENS: Mapping[int, Any] = {1: Overcooked, 2: OvercookedV2}
LAYOUTS: Mapping[int, Mapping[str, Any]] = {1: overcooked_layouts, 2: overcooked_v2_layouts}

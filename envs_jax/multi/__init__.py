"""The project's own multi-agent environments, one file each."""

from __future__ import annotations

from typing import Any

from envs_jax.core import Env
from envs_jax.multi.matrix import Matrix
from envs_jax.multi.reference import Reference
from envs_jax.multi.rendezvous import Rendezvous
from envs_jax.multi.speaker_listener import SpeakerListener
from envs_jax.multi.spread import Spread
from envs_jax.multi.switch import Switch
from envs_jax.multi.tag import Tag
from envs_jax.multi.two_step import TwoStep
from envs_jax.names import check_arguments, unknown

ENVIRONMENTS: dict[str, type[Env]] = {
    "matrix": Matrix,
    "reference": Reference,
    "rendezvous": Rendezvous,
    "speaker_listener": SpeakerListener,
    "spread": Spread,
    "switch": Switch,
    "tag": Tag,
    "two_step": TwoStep,
}


def make(name: str, **kwargs: Any) -> Env:
    """The environment `name`. Raises ValueError for an unknown name or argument, with the nearest."""
    if name not in ENVIRONMENTS:
        raise unknown("environment of multi", name, ENVIRONMENTS)
    check_arguments(f"multi/{name}", ENVIRONMENTS[name].__init__, kwargs)
    return ENVIRONMENTS[name](**kwargs)

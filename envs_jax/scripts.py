"""Scripted policies: hand-written play for a group of agents, to learn against and to be matched with.

An environment lists its own in `Env.scripts`, {group: {name: Script}}; a trained policy can be made into one as well, so that
it plays frozen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Script(NamedTuple):
    """Pure functions that act for the k agents of a group.

    init(k) -> carry: the memory of agents that have seen nothing, leaves [k, ...]; () where there is none
    act(carry, key, observation [k, F], action_mask [k, n] or (), reset bool [k]) -> carry, action [k, ...]
        at the group's own widths, actions in the environment's own units; `reset`: this is an agent's first observation
    sees_all: `act` gets the rows of all A agents instead, as the environment pads them; a trained policy may need them
    """

    init: Callable[[int], Any]
    act: Callable[..., tuple[Any, jax.Array]]
    sees_all: bool = False


def reflex(action: Callable[[jax.Array, Any, Any], jax.Array]) -> Script:
    """A script without memory, from a function `(key, observation [k, F], action_mask) -> action [k, ...]`."""

    def act(carry: Any, key: jax.Array, observation: Any, action_mask: Any, reset: jax.Array) -> tuple[Any, jax.Array]:
        return carry, action(key, observation, action_mask)

    return Script(lambda k: (), act)

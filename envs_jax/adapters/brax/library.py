"""The library itself: imported, built and traced without its noise, and mended where newer versions of jax broke it."""

from __future__ import annotations

import contextlib
import io
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Swallows what brax warns of whenever it is imported, built or traced: that it and what it uses are no longer kept up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# The import also prints that optional packages are missing.
with quiet(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    import mujoco
    from brax import fluid
    from brax.envs.ant import Ant
    from brax.envs.fast import Fast
    from brax.envs.half_cheetah import Halfcheetah
    from brax.envs.hopper import Hopper
    from brax.envs.humanoid import Humanoid
    from brax.envs.humanoidstandup import HumanoidStandup
    from brax.envs.inverted_double_pendulum import InvertedDoublePendulum
    from brax.envs.inverted_pendulum import InvertedPendulum
    from brax.envs.pusher import Pusher
    from brax.envs.reacher import Reacher
    from brax.envs.swimmer import Swimmer
    from brax.envs.walker2d import Walker2d

CLASSES: dict[str, Any] = {
    "ant": Ant,
    "fast": Fast,
    "halfcheetah": Halfcheetah,
    "hopper": Hopper,
    "humanoid": Humanoid,
    "humanoidstandup": HumanoidStandup,
    "inverted_double_pendulum": InvertedDoublePendulum,
    "inverted_pendulum": InvertedPendulum,
    "pusher": Pusher,
    "reacher": Reacher,
    "swimmer": Swimmer,
    "walker2d": Walker2d,
}
_ALL: tuple[str, ...] = ("generalized", "spring", "positional", "mjx")
BACKENDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(CLASSES, _ALL) | {"swimmer": _ALL[:1], "fast": ()}


def _clip(array: Any, a_min: Any) -> Any:
    return jnp.clip(array, min=a_min)


# The drag of the swimmer is the one place where brax names an argument of `clip` that jax no longer knows.
fluid.jp = types.SimpleNamespace(**{**vars(jnp), "clip": _clip})


@contextlib.contextmanager
def building() -> Iterator[None]:
    """Quiet for constructors: MuJoCo prints what it deprecates in brax's models, and writes a log file where one works."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        with quiet():
            yield
    finally:
        mujoco.set_mju_user_warning(before)

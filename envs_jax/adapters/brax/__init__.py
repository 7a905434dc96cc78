"""brax's environments, raw: https://github.com/google/brax, Freeman et al. 2021, arXiv:2106.13281.

None of brax's training wrappers is used: they restart every episode from a cached first state and count steps twice. Every
environment takes actions in [-1, 1] and, where its actuators have another range, rescales them inside. Each of the four
backends, the physics, runs every environment but these: `swimmer` needs `generalized`, and `fast` has no physics.

| name                     | observation | action | truly ends when                    |
|--------------------------|-------------|--------|------------------------------------|
| ant                      | 27          | 8      | the torso is too low or too high   |
| fast (for tests)         | 2           | 1      | never                              |
| halfcheetah              | 17          | 6      | never                              |
| hopper                   | 11          | 3      | it falls                           |
| humanoid                 | 244         | 17     | it falls                           |
| humanoidstandup          | 244         | 17     | never                              |
| inverted_double_pendulum | 8           | 1      | the tip sinks to 1 m               |
| inverted_pendulum        | 4           | 1      | the pole leans more than 0.2 rad   |
| pusher                   | 23          | 7      | never                              |
| reacher                  | 11          | 2      | never                              |
| swimmer                  | 8           | 2      | never                              |
| walker2d                 | 17          | 6      | it falls                           |

All are cut after `time_limit` steps. `Params` are the numbers of the physics that may change from episode to episode.
"""

from __future__ import annotations

from typing import Any

from envs_jax.adapters.brax.arguments import check_values, defaults
from envs_jax.adapters.brax.env import BraxEnv
from envs_jax.adapters.brax.library import BACKENDS, CLASSES, building
from envs_jax.adapters.brax.params import Params
from envs_jax.adapters.common import check_time_limit
from envs_jax.core import Env
from envs_jax.names import unknown

__all__ = ["BACKENDS", "BraxEnv", "Params", "make"]


def make(name: str, time_limit: int = 1000, **kwargs: Any) -> Env:
    """Builds brax's environment `name`.

    Args:
        name: one of the table above.
        time_limit: steps until an episode is cut.
        kwargs: arguments of brax's own class, such as `reset_noise_scale`. `backend` is `generalized`, `spring`,
            `positional` or `mjx`, by default `generalized` (a published score holds for one backend, `spring` for many);
            `n_frames` is how many steps of physics make one of the environment.

    Raises ValueError for an unknown name or argument, with the nearest, for a backend that the environment does not
    support, with those that it does, for a value of the wrong type, and for a time limit below 1.
    """
    if name not in CLASSES:
        raise unknown("brax environment", name, CLASSES)
    environment = f"brax/{name}"
    time_limit = check_time_limit(environment, time_limit)
    check_values(environment, defaults(CLASSES[name]), BACKENDS[name], kwargs)
    with building():
        try:
            library = CLASSES[name](**kwargs)
        except NotImplementedError as error:
            raise ValueError(f"{environment}: {error}") from None
    return BraxEnv(library, time_limit)

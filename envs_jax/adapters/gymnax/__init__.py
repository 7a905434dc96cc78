"""gymnax (1.0 and later): https://github.com/RobertTLange/gymnax, Lange 2022. All 26 environments.

Built on gymnax's own pieces, `reset_env` and `step_env`, so that nothing resets by itself and a time limit is told from a true
end. Parameters are gymnax's own, as arrays; only the time limit is a constructor argument, and its field among them is None.

**Observations** are gymnax's, apart from these. Spaces hold for the default parameters, in the dtype that is really emitted.

| environment | shown |
|---|---|
| MinAtar, Pong, visual FourRooms | images [H, W, C] of 0.0 and 1.0, as gymnax gives them |
| Catch, DeepSea, MNISTBandit | [H, W, 1]: gymnax's boards get a channel axis |
| FrozenLake | the cell as a one-hot vector, [16] (or [64] with `map_name="8x8"`), where gymnax gives its index |
| MemoryChain, UmbrellaChain, MetaMaze, both misc bandits, Pong, MNISTBandit | gymnax's values in a space that holds them |

gymnax, like bsuite, reads MNIST's bytes as signed: what is brighter than 127 / 255 appears 256 / 255 darker.

**Ends.** The discount is 0 where gymnax says `terminated` and stays 1 after a cut by the time limit, which is counted here.
In Freeway, Pendulum, Reacher, Swimmer, PointRobot, MetaMaze and both misc bandits only the limit ends an episode: a cut, also
where the task is of fixed length, since gymnax calls it so and the reward would go on. One departure: DiscountingChain's last
reward is paid at step 100, where bsuite ends the episode for good and gymnax 1.0 calls it truncated. No later reward can reach
anyone, so that is a true end here: a learner that bootstrapped from there would add its own guess to the last reward again and
again. SimpleBandit draws its arms anew in every episode of one step, so nothing can be learnt there. DeepSea's counts over
episodes start anew with each.
"""

from __future__ import annotations

import inspect
from typing import Any

import gymnax

from envs_jax.adapters.common import check_arguments, check_time_limit
from envs_jax.adapters.gymnax import mnist
from envs_jax.adapters.gymnax.base import Gymnax
from envs_jax.core import Env


def make(name: str, time_limit: int | None = None, **kwargs: Any) -> Env:
    """The environment that gymnax calls `name`, with its own constructor arguments.

    `time_limit` is the number of steps after which an episode is cut off; by default gymnax's own. `MNISTBandit-bsuite` also
    takes `path`, a folder with the data. Raises ValueError for a limit below 1 and for arguments that the constructor refuses.
    """
    id = f"gymnax/{name}"
    env = mnist.MNISTBandit(**_checked(id, mnist.MNISTBandit, kwargs)) if name == mnist.NAME else _build(id, name, kwargs)
    params = env.default_params
    time_limit = int(params.max_steps_in_episode) if time_limit is None else time_limit
    return Gymnax(name, env, params, check_time_limit(id, time_limit))


def _build(id: str, name: str, kwargs: dict[str, Any]) -> Any:
    plain = gymnax.make(name)[0]
    kwargs = _checked(id, type(plain), kwargs)
    try:
        return gymnax.make(name, **kwargs)[0] if kwargs else plain
    except (TypeError, ValueError, AssertionError) as error:
        values = ", ".join(f"{key}={value!r}" for key, value in kwargs.items())
        raise ValueError(f"{id} cannot be built with {values}: {str(error) or 'outside what gymnax asserts'}") from error


def _checked(id: str, constructor: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(constructor).parameters
    if kwargs and not known:
        raise ValueError(f"{id} takes no arguments but `time_limit`, got {', '.join(map(repr, kwargs))}")
    check_arguments(id, known, kwargs)
    return kwargs

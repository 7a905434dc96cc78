"""Overcooked: cooks deliver soups together. Version 1 is that of Carroll et al. 2019, arXiv:1910.05789; version 2 that of
Gessler et al. 2025, arXiv:2503.17821, whose layouts may hide the recipe, and what cooks see."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs_jax.adapters.common import check_arguments, check_time_limit
from envs_jax.adapters.jaxmarl.arguments import check_choice, check_values
from envs_jax.adapters.jaxmarl.base import JaxmarlEnv, State
from envs_jax.adapters.jaxmarl.kitchen import draw, kitchen
from envs_jax.adapters.jaxmarl.library import KITCHENS, LAYOUTS, quiet
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_DELIVERY = 20.0  # what the library pays for a soup
_MOST = 20.0  # the largest number that is seen: steps until a soup is cooked
_FLAGS: Mapping[int, tuple[str, ...]] = {
    1: ("random_reset",),
    2: (
        "random_reset",
        "random_agent_positions",
        "start_cooking_interaction",
        "negative_rewards",
        "sample_recipe_on_delivery",
        "indicate_successful_delivery",
    ),
}


@struct.dataclass
class Params:
    """`shaping`: float32 [], the weight of the library's shaped reward in what agents are paid."""

    shaping: jax.Array


@struct.dataclass
class Told:
    """What the last step told beside its reward."""

    shaped: jax.Array  # float32 [], the sum over cooks
    deliveries: jax.Array  # float32 []


class Overcooked(JaxmarlEnv):
    """`overcooked_<layout>`, version 1, and `overcooked_v2_<layout>`. Actions of version 1: up, down, right, left, stay,
    interact; of version 2: right, down, left, up, stay, interact.

    A cook sees the kitchen as an array [height, width, channels] of small whole numbers, int8 in 0 ... 20: its own place and
    direction, those of the others, what stands and lies where, and how far each pot is. Episodes never truly end: `time_limit`
    cuts them. All agents' observations together are the world.

    Every soup that is delivered pays 20 to every cook; version 2 may also charge for a button and for a wrong soup. Beside
    that the library shapes: 3 for an ingredient in a pot, 3 for a plate that is of use, 5 for a soup on a plate, each to the
    cook who did it; in version 2 only for what the recipe wants, and 5 for switching on its pot
    (`start_cooking_interaction`). `params.shaping` times that is paid on top, by default 0. With `reward: team` all cooks are
    paid the sum of all shaping, so that it is one reward and the return counts a soup once. With `reward: individual` each is
    paid its own shaping, as in the library's baselines; there the return is the sum over cooks and `agent_return` counts a
    soup once. Measure with shaping 0: returns are then the library's. Metrics: `deliveries` and `shaped_reward`, each a sum
    over the episode.

    Args:
        version: 1 or 2.
        layout: the library's name of a kitchen.
        time_limit: steps until an episode is cut. In version 1 a channel turns 1 when fewer than 40 are left.
        reward: `team` or `individual`, as above.
        kwargs: of both versions `random_reset` (whatever moves starts anywhere); of version 2 also `agent_view_size` (how far a
            cook sees in every direction, by default everywhere), `random_agent_positions`, `start_cooking_interaction` (a pot
            must be switched on), `negative_rewards` (a wrong soup costs 20), `sample_recipe_on_delivery` and
            `indicate_successful_delivery` (a further channel).

    Raises ValueError for an argument that this version does not take, and for a value that it cannot have.
    """

    def __init__(self, version: int, layout: str, /, time_limit: int = 400, reward: str = "team", **kwargs: Any):
        environment = f"jaxmarl/overcooked_{'v2_' if version == 2 else ''}{layout}"
        limit = check_time_limit(environment, time_limit)
        check_choice(environment, "reward", reward, ("team", "individual"))
        known = dict.fromkeys(_FLAGS[version], False) | ({"agent_view_size": 1} if version == 2 else {})
        check_arguments(environment, (*known, "reward", "time_limit"), kwargs)
        given = {name: value for name, value in kwargs.items() if value is not None or name != "agent_view_size"}
        check_values(environment, known, given)
        with quiet():  # version 1 warns that there is a second
            library = KITCHENS[version](layout=LAYOUTS[version][layout], max_steps=limit, **given)
        self._version, self._team = version, reward == "team"
        self.reset_mode = "fresh" if version == 2 else "pool"  # a start of version 2 costs less than a pool's bookkeeping
        self.default_params = Params(jnp.float32(0))
        seen = jax.eval_shape(library.reset, jax.random.PRNGKey(0))[0]["agent_0"]
        spec = EnvSpec(
            observation_space=Box(0, _MOST, seen.shape, np.int8),
            action_space=Discrete(len(library.action_set)),
            num_agents=library.num_agents,
            reward=reward,
            metrics={"deliveries": "sum", "shaped_reward": "sum"},
            episode_limit=limit,
        )
        super().__init__(library, spec, tuple(library.agents))

    def start(self, library: Any) -> State:
        return super().start(library).replace(told=Told(jnp.float32(0), jnp.float32(0)))

    def play(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        _, library, rewards, _, more = self.library.step_env(key, state.library, self.actions(action))
        paid = jnp.stack([rewards[name] for name in self.names])
        shaped = [more["shaped_reward"][name] for name in self.names]
        # A soup may be paid in the same step as a button or a wrong soup of another cook is charged.
        deliveries = jnp.maximum(jnp.ceil(paid[0] / _DELIVERY), getattr(library, "new_correct_delivery", False))
        total = functools.reduce(jnp.add, shaped)
        on_top = total if self._team else jnp.stack(shaped)
        told = Told(total, jnp.maximum(deliveries, 0.0))
        return state.replace(library=library, told=told), paid + params.shaping * on_top

    def view(self, state: State) -> jax.Array:
        return super().view(state).astype(jnp.int8)

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [24 h, 24 w, 3]; `kitchen.draw` says what is to be seen."""
        return draw(kitchen(self._version, state.library))

    def metrics(self, state: State) -> dict[str, jax.Array]:
        return {"deliveries": state.told.deliveries, "shaped_reward": state.told.shaped}

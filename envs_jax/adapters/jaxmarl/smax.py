"""SMAX: battles of allied units, the agents, against units that the environment plays (Rutherford et al. 2023, section 3)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs_jax.adapters.common import check_arguments, check_time_limit, strong
from envs_jax.adapters.jaxmarl.arguments import check_choice, check_values, defaults
from envs_jax.adapters.jaxmarl.base import JaxmarlEnv, State
from envs_jax.adapters.jaxmarl.battle import draw
from envs_jax.adapters.jaxmarl.library import SCENARIOS, HeuristicEnemySMAX, LearnedPolicyEnemySMAX
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

_CHOICES = {
    "opponent": ("heuristic", "learned"),
    "attack_mode": ("closest", "random"),
    "observation_type": ("unit_list", "conic"),
    "action_type": ("discrete", "continuous"),
}
# Of the library's arguments those that are passed on, with its defaults.
_SETTINGS = {
    "see_enemy_actions": True,
    "walls_cause_death": True,
    "won_battle_bonus": 1.0,
    "use_self_play_reward": False,
    "world_steps_per_env_step": 8,
}


@struct.dataclass
class Params:
    """The numbers of an opponent that has learned; the scripted one has none, and `default_params` are () there."""

    opponent: Any  # a tree of arrays: the parameters of its policy


class SMAX(JaxmarlEnv):
    """`smax_<scenario>`. Actions: up, right, down, left, stop, or shoot an enemy by number; dead units may only stop.

    An agent sees every other unit in its sight range (zeros for those outside and for the dead): health, relative place, last
    move, whom it shot at, cooldown and type; then itself: health, place, cooldown and type. The numbers leave the library's
    own Box(-1, 1), since units that push each other apart leave the map, so the space is declared without bounds. The world is
    the same of every unit, in places of the map, then all teams and types.

    The reward is the team's, the living and the dead alike: the health that the enemies lost, as a share of all that they have,
    and `won_battle_bonus` for a win. An episode truly ends when one side is dead; `time_limit` cuts it. Metric: `won`, 1 where
    all enemies are dead and an ally lives.

    Args:
        scenario: a name of the library, such as 3m.
        time_limit: steps until an episode is cut; exact.
        opponent: `heuristic`, the library's scripted units, or `learned`, a policy of one's own.
        attack_mode: whom scripted units shoot at, the `closest` or a `random` one in range, until it is dead.
        enemy_shoots: whether scripted units shoot at all; those that do not are the weakest opponent.
        policy: with `learned`, an object whose `apply(params, observations [E, n])` gives a pair: a distribution over actions
            with `sample(seed=key)`, and anything.
        policy_params: with `learned`, its parameters. They are `default_params.opponent`, so they may change between episodes.
        observation_type: `unit_list`, as above, or `conic`: two units in each of 32 directions.
        action_type: `discrete`, or `continuous`: 4 numbers in 0 ... 1, from which the library draws what is done.
        settings: the library's own: `see_enemy_actions` (moves and shots of enemies in sight, by default true),
            `walls_cause_death` (of units that touch the border of the map, true), `won_battle_bonus` (1),
            `use_self_play_reward` (pays wins and losses alone, false), `world_steps_per_env_step` (of 1/16 second, 8).

    Raises ValueError for values that these cannot have.
    """

    def __init__(
        self,
        scenario: str,
        /,
        time_limit: int = 100,
        opponent: str = "heuristic",
        attack_mode: str = "closest",
        enemy_shoots: bool = True,
        policy: Any = None,
        policy_params: Any = None,
        observation_type: str = "unit_list",
        action_type: str = "discrete",
        **settings: Any,
    ):
        name = f"jaxmarl/smax_{scenario}"
        limit = check_time_limit(name, time_limit)
        check_arguments(name, (*list(defaults(SMAX))[1:], *_SETTINGS), settings)
        chosen = {"observation_type": observation_type, "action_type": action_type}
        for argument, value in {"opponent": opponent, "attack_mode": attack_mode, **chosen}.items():
            check_choice(name, argument, value, _CHOICES[argument])
        settings = {**_SETTINGS, **settings}
        check_values(name, {**_SETTINGS, "enemy_shoots": True}, {**settings, "enemy_shoots": enemy_shoots})
        _check_policy(name, opponent, policy, policy_params)
        settings |= chosen | {"scenario": SCENARIOS[scenario]}
        settings["won_battle_bonus"] = float(settings["won_battle_bonus"])  # the library mixes it with floats
        self._learned = opponent == "learned"
        if self._learned:
            self.default_params = Params(strong(policy_params))
            build, own = LearnedPolicyEnemySMAX, {"policy": policy, "params": policy_params}
        else:
            build, own = HeuristicEnemySMAX, {"attack_mode": attack_mode, "enemy_shoots": enemy_shoots}
        # The counter is tested before it is raised, so this limit is never reached; what ends is a true end.
        library = build(max_steps=limit + 1, **settings, **own)
        self._masked = action_type == "discrete"
        actions = Discrete(library.num_ally_actions) if self._masked else Box(0.0, 1.0, (4,))
        super().__init__(library, _spec(library, actions, limit), tuple(library.agents))

    def start(self, library: Any) -> State:
        return super().start(library.replace(enemy_policy_state=()) if self._learned else library)

    def play(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        before = state.library.replace(enemy_policy_state=params.opponent) if self._learned else state.library
        after, reward = super().play(key, state.replace(library=before), action, params)
        library = after.library.replace(enemy_policy_state=()) if self._learned else after.library
        return after.replace(library=library, ended=library.state.done), reward

    def action_mask(self, state: State) -> Any:
        if not self._masked:
            return ()
        legal = self.library.get_avail_actions(state.library)
        return jnp.stack([legal[name] for name in self.names]).astype(bool)

    def alive(self, state: State) -> jax.Array:
        return state.library.state.unit_alive[: len(self.names)]

    def metrics(self, state: State) -> dict[str, jax.Array]:
        allies, enemies = jnp.split(state.library.state.unit_alive, [len(self.names)])
        return {"won": (jnp.any(allies) & ~jnp.any(enemies)).astype(jnp.float32)}

    def world(self, state: State, params: Any) -> jax.Array:
        """float32 [12 · units]: health, place, cooldown and type (one-hot) of each, 0 for the dead; all teams; all types."""
        return self.library.get_world_state(state.library).astype(jnp.float32)

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [320, 320, 3]: living allies blue, enemies red; `battle.draw` says what else is to be seen."""
        return draw(self.library, state.library.state)


def _check_policy(name: str, opponent: str, policy: Any, params: Any) -> None:
    if opponent == "learned" and (not hasattr(policy, "apply") or params is None):
        raise ValueError(f"{name}: opponent learned needs policy, an object with `apply`, and policy_params; got {policy!r}")
    if opponent != "learned" and (policy is not None or params is not None):
        raise ValueError(f"{name}: policy and policy_params are for opponent: learned, got opponent {opponent!r}")


def _spec(library: Any, actions: Discrete | Box, limit: int) -> EnvSpec:
    return EnvSpec(
        observation_space=Box(-np.inf, np.inf, (library.obs_size,)),
        action_space=actions,
        num_agents=library.num_allies,
        world_space=Box(-np.inf, np.inf, (library.state_size,)),
        reward="team",
        metrics={"won": "last"},
        episode_limit=limit,
    )

"""Probe environments: each takes a second to learn and has a known right value, so that what a learner gets wrong shows.

A probe is a class with the length of its episodes, spaces, what is drawn at the start (`draw`), what is shown (`show`) and
what is paid (`pay`); its docstring says what is right. Where they are drawn, cues are −1 or 1 with equal odds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.names import check_arguments, unknown
from envs_jax.spaces import Box, Discrete, MultiDiscrete, Space

RESET_MODE = "fresh"


@struct.dataclass
class Params:
    scale: jax.Array  # float32 []: multiplies every reward, and so every right value


@struct.dataclass
class State:
    time: jax.Array  # int32 []
    cue: jax.Array  # what the episode is about
    paid: jax.Array  # float32 []: the last reward, summed over agents, before scaling


class Probe(Env):
    """Shared by all probes: episodes of `length` steps around a cue; the defaults are one step, ±1 shown, two actions."""

    length = 1
    truncates = False  # whether the end is a cut instead of a true end
    agents: int | None = None
    reward = "individual"
    observation_space: Space = Box(-1, 1, (1,))
    action_space: Space = Discrete(2)
    world_space: Box | None = None
    succeeds = False  # whether the metric `success`, paid more than 0 at the last step, says something

    def __init__(self):
        self.default_params = Params(scale=jnp.float32(1))
        self.spec = EnvSpec(
            observation_space=self.observation_space,
            action_space=self.action_space,
            num_agents=self.agents,
            world_space=self.world_space,
            reward=self.reward,
            metrics={"success": "last"} if self.succeeds else {},
            episode_limit=self.length,
        )
        self._axis = () if self.agents is None else (self.agents,)

    def draw(self, key: jax.Array) -> jax.Array:
        """The cue of an episode: float32 [] or [A], −1 or 1."""
        return jax.random.rademacher(key, self._axis, jnp.float32)

    def show(self, state: State) -> jax.Array:
        """The observation."""
        return state.cue[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        """The reward, float32 [] or [A], of acting in `state`."""
        raise NotImplementedError

    def legal(self, state: State) -> Any:
        """The action mask."""
        return ()

    def lives(self, state: State) -> jax.Array:
        """Who may act: bool [] or [A]."""
        return jnp.ones(self._axis, bool)

    def initial(self, key: jax.Array, params: Params) -> State:
        return State(jnp.int32(0), self.draw(key), jnp.float32(0))

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> tuple[State, jax.Array]:
        reward = self.pay(state, action)
        return State(state.time + 1, state.cue, jnp.sum(reward)), reward * params.scale

    def observe(self, state: State, params: Params) -> TimeStep:
        last, alive = state.time >= self.length, self.lives(state)
        goes_on = jnp.bool_(True) if self.truncates else ~last
        return TimeStep(
            observation=self.show(state),
            reward=jnp.zeros(self._axis, jnp.float32),
            discount=(alive & goes_on).astype(jnp.float32),
            alive=alive,
            last=last,
            action_mask=self.legal(state),
            metrics={"success": (state.paid > 0).astype(jnp.float32)} if self.succeeds else {},
        )


def _right(chosen: jax.Array, wanted: jax.Array) -> jax.Array:
    """1 where they agree, else −1, float32."""
    return jnp.where(chosen == wanted, 1.0, -1.0).astype(jnp.float32)


def _index(cue: jax.Array) -> jax.Array:
    """Action 1 for a positive cue, else 0."""
    return (cue > 0).astype(jnp.int32)


class Constant(Probe):
    """One step, the observation is 0, every action is paid 1. V(0) = 1."""

    def show(self, state: State) -> jax.Array:
        return jnp.zeros_like(state.cue)[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.ones_like(state.cue)


class Truncation(Constant):
    """As `constant`, but cut off after ten steps instead of ended. V(0) = 1 / (1 − γ), not the 10 that is collected."""

    length = 10
    truncates = True


class Observation(Probe):
    """One step; the reward is the observation, ±1, whatever the action. V(o) = o."""

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return state.cue


class Discounted(Probe):
    """Two steps, observations 0 and 1; only the second is paid, with 1. V(0) = γ, V(1) = 1."""

    length = 2

    def show(self, state: State) -> jax.Array:
        return jnp.minimum(state.time, 1).astype(jnp.float32)[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return (state.time == 1).astype(jnp.float32)


class Policy(Constant):
    """One step, the observation is 0; action 1 is paid 1, action 0 is paid −1. π(1) = 1, V(0) = 1."""

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return _right(action, jnp.int32(1))


class PolicyObservation(Probe):
    """One step; action 1 is right for observation 1 and action 0 for −1, paid 1 when right, else −1. V = 1 for both."""

    succeeds = True

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return _right(action, _index(state.cue))


class Memory(PolicyObservation):
    """A cue ±1 is shown at the start and asked for after `delay` steps; only the answer is paid, as in `policy_observation`.

    Observations are [cue at the start, else 0; 1 when the answer is due, else 0]. With memory the return is 1 and
    V(start) = γ^delay; without memory nothing does better than a return of 0.
    """

    observation_space = Box((-1, 0), (1, 1), (2,))

    def __init__(self, delay: int = 3):
        if isinstance(delay, bool) or not isinstance(delay, int) or delay < 1:
            raise ValueError(f"probe/memory: delay must be a whole number of at least 1, got {delay!r}")
        self.length = delay + 1
        super().__init__()

    def show(self, state: State) -> jax.Array:
        due = (state.time == self.length - 1).astype(jnp.float32)
        return jnp.stack([jnp.where(state.time == 0, state.cue, 0.0), due])

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.where(state.time == self.length - 1, super().pay(state, action), 0.0)


class Continuous(Probe):
    """One step; the reward is −(a − 1 − o)², with a in [−1, 3] and o = ±1. The action is 1 + o (in [−1, 1]: o / 2), V = 0."""

    action_space = Box(-1, 3, (1,))

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return -jnp.square(action[0] - 1.0 - state.cue)


class Masked(Probe):
    """One step, three actions: 0 is paid 0; of 1 and 2 one is legal, paid 1, the other illegal, and would be paid 10.

    Observation 1 makes action 1 legal, −1 action 2. Only legal actions are taken and V = 1.
    """

    action_space = Discrete(3)

    def legal(self, state: State) -> jax.Array:
        return jnp.stack([jnp.bool_(True), state.cue > 0, state.cue <= 0])

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.where(self.legal(state)[action], jnp.minimum(action, 1), 10).astype(jnp.float32)


class MultiDiscreteActions(Probe):
    """One step, heads of two and three actions, each paid ½ when right, else −½: the first as in `policy_observation`,
    the second is right with 2. V = 1."""

    action_space = MultiDiscrete((2, 3))
    succeeds = True

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.mean(_right(action, jnp.stack([_index(state.cue), jnp.int32(2)])))


class Image(Probe):
    """One step; a grid of bytes 8 × 8 × 1 shows one line, 255 on 0, at a random place. Action 1 is right for an upright
    line, 0 for a level one, paid 1 when right, else −1. V = 1."""

    side = 8
    observation_space = Box(0, 255, (side, side, 1), np.uint8)
    succeeds = True

    def draw(self, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, (2,), 0, jnp.asarray([2, self.side], jnp.int32), jnp.int32)

    def show(self, state: State) -> jax.Array:
        upright, place = state.cue
        line = jnp.where(jnp.arange(self.side) == place, 255, 0).astype(jnp.uint8)
        level = jnp.broadcast_to(line[:, None], (self.side, self.side))
        return jnp.where(upright == 1, level.T, level)[..., None]

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return _right(action, state.cue[0])


class Team(Probe):
    """One step, two agents, a cue each as in `policy_observation`; both are paid 1 when both are right, else 0. V = 1.

    The state of the world is both cues.
    """

    agents = 2
    reward = "team"
    world_space = Box(-1, 1, (2,))
    succeeds = True

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        return jnp.full((2,), jnp.all(action == _index(state.cue)), jnp.float32)

    def world(self, state: State, params: Params) -> jax.Array:
        return state.cue


class Individual(Probe):
    """Two agents, a cue each as in `policy_observation`; agent 0 acts once and dies, agent 1 acts twice.

    Agent 0 is paid 1 when right, agent 1 is paid 2 at each step, else −1 and −2. Observations are [cue, time], zeros when
    dead. V₀ = 1; V₁ = 2 + 2γ at the first step and 2 at the second.
    """

    length = 2
    agents = 2
    observation_space = Box((-1, 0), (1, 1), (2,))

    def lives(self, state: State) -> jax.Array:
        return jnp.stack([state.time == 0, jnp.bool_(True)])

    def show(self, state: State) -> jax.Array:
        time = jnp.full((2,), jnp.minimum(state.time, 1), jnp.float32)
        return jnp.where(self.lives(state)[..., None], jnp.stack([state.cue, time], axis=-1), 0.0)

    def pay(self, state: State, action: jax.Array) -> jax.Array:
        earned = _right(action, _index(state.cue)) * jnp.arange(1, 3, dtype=jnp.float32)
        return jnp.where(self.lives(state), earned, 0.0)


PROBES: dict[str, type[Probe]] = {
    "constant": Constant,
    "observation": Observation,
    "discounted": Discounted,
    "policy": Policy,
    "policy_observation": PolicyObservation,
    "truncation": Truncation,
    "memory": Memory,
    "continuous": Continuous,
    "masked": Masked,
    "multi_discrete": MultiDiscreteActions,
    "image": Image,
    "team": Team,
    "individual": Individual,
}


def make(name: str, **kwargs: Any) -> Probe:
    """The probe `name`. Raises ValueError for an unknown name or argument, with the nearest."""
    if name not in PROBES:
        raise unknown("probe", name, PROBES)
    check_arguments(f"probe/{name}", PROBES[name].__init__, kwargs)
    return PROBES[name](**kwargs)

"""Actions that sometimes stick, so that an environment without chance cannot be learnt by heart."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from envs_jax.core import Env, TimeStep
from envs_jax.spaces import Discrete, MultiDiscrete
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.checks import number


@struct.dataclass
class StickyActionsState:
    inner: Any
    action: jax.Array  # what was done last
    acted: jax.Array  # bool [] or [A]: whether this agent did it, not another one in its slot, and not in another episode


class StickyActions(Wrapper):
    """With `probability` an agent repeats what it did at the step before, whatever it chose now (Machado et al. 2018).

    Each agent draws for itself. What is repeated may be a repetition already, as in the paper ("Revisiting the Arcade Learning
    Environment", arXiv:1709.06009, which uses 0.25). An agent's first action never sticks, neither does one that has become
    illegal. Raises ValueError unless 0 ≤ probability ≤ 1.
    """

    def __init__(self, env: Env, probability: float):
        self.probability = number("sticky_actions.probability", probability, 0, 1)
        super().__init__(env)
        self._axis = () if env.spec.num_agents is None else (env.spec.num_agents,)

    def inner(self, state: StickyActionsState) -> Any:
        return state.inner

    def initial(self, key: jax.Array, params: Any) -> StickyActionsState:
        space = self.spec.action_space
        nothing = jnp.zeros((*self._axis, *space.shape), space.dtype)
        return StickyActionsState(self.env.initial(key, params), nothing, jnp.zeros(self._axis, bool))

    def advance(self, key: jax.Array, state: StickyActionsState, action: jax.Array, params: Any) -> tuple[Any, jax.Array]:
        key_stick, key = jax.random.split(key)
        before = self.env.observe(state.inner, params)
        stick = jax.random.bernoulli(key_stick, self.probability, self._axis) & state.acted & self._legal(before, state.action)
        wide = stick.reshape(*self._axis, *(1 for _ in self.spec.action_space.shape))
        action = jnp.where(wide, state.action, action)
        inner, reward = self.env.advance(key, state.inner, action, params)
        after = self.env.observe(inner, params)
        acted = before.alive & after.alive & (after.discount > 0)  # alive with discount 0: a new agent in the slot
        return StickyActionsState(inner, action, acted), reward

    def _legal(self, timestep: TimeStep, action: jax.Array) -> jax.Array:
        """bool [] or [A]: whether all heads of an action are legal."""
        space = self.spec.action_space
        if isinstance(timestep.action_mask, tuple):
            return jnp.ones(self._axis, bool)
        sizes = (space.n,) if isinstance(space, Discrete) else space.nvec if isinstance(space, MultiDiscrete) else ()
        shape = (*self._axis, len(sizes))
        heads = action.reshape(shape) + np.broadcast_to(np.cumsum([0, *sizes[:-1]], dtype=np.int32), shape)
        return jnp.all(jnp.take_along_axis(timestep.action_mask, heads, axis=-1), axis=-1)

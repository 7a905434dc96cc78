"""How an environment that ended gets its next start, by a static choice.

`fresh` computes a new start for every environment at every step (under vmap both branches of a reset run; on a CPU only in
steps in which some episode ends) and keeps it where an episode ended. `pool` draws new starts in one batch before each
rollout, one for every environment and every eight steps (or the longest episode, if that is shorter): far cheaper where a
reset costs as much as a step. Each environment takes its own starts in turn, so none is used twice. Only one whose episodes
are shorter than that on average runs out of them in a rollout; it goes on with uniformly random ones of the whole pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agentgym_jax.ops.trees import flatten_rows, select
from agentgym_jax.tasks.base import Tasks
from agentgym_jax.types import Across, Clock, Sizes
from envs_jax.core import Env

MODES = ("fresh", "pool")
_STEPS_PER_START = 8


class Start(NamedTuple):
    env_state: Any
    timestep: Any
    task: Any


class Resets(NamedTuple):
    """prepare(tasks, key, clock) -> per-step inputs [T, ...] and what all steps share.
    start(tasks, shared, inputs, ended) -> Start [N]; `ended` [N] counts the episodes that ended before in this rollout."""

    prepare: Callable[[Any, jax.Array, Clock], tuple[Any, Any]]
    start: Callable[[Any, Any, Any, jax.Array], Start]


def new_starts(env: Env, tasks: Tasks, tasks_state: Any, keys: jax.Array, clock: Clock, index: jax.Array) -> Start:
    """A fresh start for every key [n]; `index` int32 [n] is the number of its environment among all of the member."""

    def one(key, index):
        key_task, key_reset = jax.random.split(key)
        task = tasks.sample(tasks_state, key_task, clock, index)
        return Start(*env.reset(key_reset, tasks.params(task)), task)

    return jax.vmap(one)(keys, index)


def restart(last: jax.Array, begin: Callable[[], Start], going_on: Start) -> Start:
    """`going_on` [N], with a start of `begin()` in place of what ended, `last` bool [N].

    A CPU skips all of it in a step that ends no episode. Elsewhere the host would have to wait for the answer whether to skip.
    """

    def replace() -> Start:
        return select(last, begin(), going_on)

    def replace_if_any() -> Start:
        return jax.lax.cond(jnp.any(last), replace, lambda: going_on)

    return jax.lax.platform_dependent(cpu=replace_if_any, default=replace)


def env_numbers(num_envs: int, across: Across = Across()) -> jax.Array:
    """The numbers of this device's environments among all of the member's, int32 [num_envs]."""
    return across.own_part(jnp.arange(num_envs * across.size, dtype=jnp.int32))


def starts_each(env: Env, sizes: Sizes) -> int:
    """K, the starts that a pool holds for each environment: as many as it needs in T steps for episodes of eight or more."""
    return -(-sizes.rollout_length // min(_STEPS_PER_START, env.spec.episode_limit or _STEPS_PER_START))


def make_resets(mode: str, env: Env, tasks: Tasks, sizes: Sizes, across: Across = Across()) -> Resets:
    """The chosen way of resetting: `fresh` or `pool`.

    Where devices share a member, each holds the pool of its own environments, with the starts that they have on one device.
    """
    everywhere, numbers = sizes.num_envs * across.size, lambda: env_numbers(sizes.num_envs, across)
    if mode == "fresh":
        shape = (sizes.rollout_length, everywhere)
        return Resets(
            prepare=lambda tasks_state, key, clock: (across.own_part(jax.random.split(key, shape), axis=1), clock),
            start=lambda tasks_state, clock, keys, ended: new_starts(env, tasks, tasks_state, keys, clock, numbers()),
        )
    each = starts_each(env, sizes)

    def prepare(tasks_state, key, clock):
        key_pool, key_surplus = jax.random.split(key)
        keys = flatten_rows(across.own_part(jax.random.split(key_pool, (each, everywhere)), axis=1))
        surplus_shape = (sizes.rollout_length, sizes.num_envs)
        surplus = jax.random.randint(across.own_key(key_surplus), surplus_shape, 0, keys.shape[0], jnp.int32)
        return surplus, new_starts(env, tasks, tasks_state, keys, clock, jnp.tile(numbers(), each))

    def start(tasks_state, pool, surplus, ended):
        own = ended * sizes.num_envs + jnp.arange(sizes.num_envs, dtype=jnp.int32)
        index = jnp.where(ended < each, own, surplus)
        return jax.tree.map(lambda x: x[index], pool)

    return Resets(prepare, start)

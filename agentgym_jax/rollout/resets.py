"""How an environment that ended gets its next start, by a static choice.

`fresh` computes a new start for every environment at every step (under vmap both branches of a reset run) and keeps it where
an episode ended. `pool` draws M new starts once per rollout and gives an ended environment a uniformly random one: far
cheaper where a reset costs as much as a step. M is an eighth of the rollout's steps, so that one environment's next starts
hardly repeat even when episodes are a few steps long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from agentgym_jax.tasks.base import Tasks
from agentgym_jax.types import Across, Sizes
from envs_jax.core import Env

MODES = ("fresh", "pool")
_STEPS_PER_START = 8


class Start(NamedTuple):
    env_state: Any
    timestep: Any
    task: Any


class Resets(NamedTuple):
    """prepare(tasks, key) -> per-step inputs [T, ...] and what all steps share; start(tasks, shared, inputs) -> Start [N]."""

    prepare: Callable[[Any, jax.Array], tuple[Any, Any]]
    start: Callable[[Any, Any, Any], Start]


def new_starts(env: Env, tasks: Tasks, tasks_state: Any, keys: jax.Array) -> Start:
    """A fresh start for every key [n]."""

    def one(key):
        key_task, key_reset = jax.random.split(key)
        task = tasks.sample(tasks_state, key_task)
        return Start(*env.reset(key_reset, tasks.params(task)), task)

    return jax.vmap(one)(keys)


def pool_size(sizes: Sizes) -> int:
    """M, the starts that one rollout of N environments and T steps draws."""
    return max(sizes.num_envs, -(-sizes.num_envs * sizes.rollout_length // _STEPS_PER_START))


def make_resets(mode: str, env: Env, tasks: Tasks, sizes: Sizes, across: Across = Across()) -> Resets:
    """The chosen way of resetting: `fresh` or `pool`. Devices that share a member have a pool each."""
    shape = (sizes.rollout_length, sizes.num_envs)
    if mode == "fresh":
        everywhere = (sizes.rollout_length, sizes.num_envs * across.size)
        return Resets(
            prepare=lambda tasks_state, key: (across.own_part(jax.random.split(key, everywhere), axis=1), ()),
            start=lambda tasks_state, shared, keys: new_starts(env, tasks, tasks_state, keys),
        )

    def prepare(tasks_state, key):
        key_pool, key_index = jax.random.split(across.own_key(key))
        pool = new_starts(env, tasks, tasks_state, jax.random.split(key_pool, pool_size(sizes)))
        return jax.random.randint(key_index, shape, 0, pool_size(sizes)), pool

    return Resets(prepare, lambda tasks_state, pool, index: jax.tree.map(lambda x: x[index], pool))

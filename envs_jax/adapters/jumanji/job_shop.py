"""JobShop: operations in a fixed order within each job, each on its machine, all done as early as possible."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import JobShop as Library
from jumanji.environments.packing.job_shop.generator import RandomGenerator

from envs_jax.adapters.common import check_time_limit, check_whole
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, MultiDiscrete


class JobShop(JumanjiEnv):
    """`JobShop-v0`, single-agent. Actions: for each machine the job to start now, or num_jobs to start none.

    A job may start on an idle machine that its next operation needs, when its last one is finished. The observation has,
    all in 0 ... 1, for each of num_jobs x max_num_ops operations: its machine one-hot, its duration as a share of
    max_op_duration, and whether it waits to be started (all 0 past the end of a job), [num_jobs max_num_ops (num_machines +
    2)]; then for each machine the job that it works on one-hot, the last place for none, and the time that it still needs as
    a share of max_op_duration, [num_machines (num_jobs + 2)]. The mask lays the machines side by side.

    Each step is a unit of time and pays -1. It truly ends when all is done, and with a reward of -num_jobs max_num_ops
    max_op_duration, the longest possible schedule, when an action is illegal, or when all machines are idle after a step:
    starting nothing is always legal, but deadly when nothing is being worked on. Metrics: `makespan`, the time so far (that
    of the schedule on success), `started`, the share of operations, and `success`, whether all are finished.

    Args:
        time_limit: steps until an episode is cut; None: the longest possible schedule, which cuts nothing.
        num_jobs, num_machines: how many there are.
        max_num_ops: a job has 1 ... max_num_ops operations.
        max_op_duration: an operation takes 1 ... max_op_duration units of time.

    Raises ValueError when an argument is none of these.
    """

    def __init__(
        self,
        time_limit: int | None = None,
        num_jobs: int = 20,
        num_machines: int = 10,
        max_num_ops: int = 8,
        max_op_duration: int = 6,
    ):
        sizes = {
            "num_jobs": num_jobs,
            "num_machines": num_machines,
            "max_num_ops": max_num_ops,
            "max_op_duration": max_op_duration,
        }
        check_whole("JobShop", 1, **sizes)
        longest = num_jobs * max_num_ops * max_op_duration
        size = num_jobs * max_num_ops * (num_machines + 2) + num_machines * (num_jobs + 2)
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (size,)),
            action_space=MultiDiscrete((num_jobs + 1,) * num_machines),
            metrics={"makespan": "last", "started": "last", "success": "last"},
            episode_limit=longest if time_limit is None else check_time_limit("JobShop", time_limit),
        )
        super().__init__(Library(RandomGenerator(**sizes)), spec)

    def emitted(self, observation: Any) -> jax.Array:
        """Whether all actions were legal: one that was not may leave a state that looks like a finished schedule."""
        return jnp.bool_(True)

    def advance(self, key: jax.Array, state: State, action: jax.Array, params: Any) -> tuple[State, jax.Array]:
        after, reward = super().advance(key, state, action, params)
        machines = jnp.arange(self.library.num_machines)
        return after.replace(emitted=jnp.all(state.library.action_mask[machines, action])), reward

    def view(self, state: State) -> jax.Array:
        shop, library = state.library, self.library
        operations = (
            jax.nn.one_hot(shop.ops_machine_ids, library.num_machines, dtype=jnp.float32),
            (jnp.maximum(shop.ops_durations, 0) / library.max_op_duration)[..., None],
            shop.ops_mask[..., None],
        )
        machines = (
            jax.nn.one_hot(shop.machines_job_ids, library.num_jobs + 1, dtype=jnp.float32),
            shop.machines_remaining_times / library.max_op_duration,
        )
        return jnp.concatenate([jnp.concatenate(operations, axis=-1).ravel(), jnp.column_stack(machines).ravel()])

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask.ravel()

    def metrics(self, state: State) -> dict[str, jax.Array]:
        shop = state.library
        exists = shop.ops_machine_ids >= 0
        done = ~jnp.any(shop.ops_mask) & jnp.all(shop.machines_remaining_times == 0) & state.emitted
        return {
            "makespan": shop.step_count.astype(jnp.float32),
            "started": jnp.sum(exists & ~shop.ops_mask) / jnp.sum(exists, dtype=jnp.float32),
            "success": done.astype(jnp.float32),
        }

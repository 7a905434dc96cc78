"""Episode statistics as running sums: nothing is stacked over time, only scalars leave a rollout."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.ops.trees import select
from agentgym_jax.types import EpisodeStats
from envs_jax.core import EnvSpec, TimeStep


def no_stats(spec: EnvSpec, num_envs: int) -> EpisodeStats:
    """Statistics of `num_envs` episodes that have not begun."""
    zeros = jnp.zeros(num_envs, jnp.float32)
    metrics, groups = {name: zeros for name, _ in spec.metrics}, dict.fromkeys(paid_groups(spec), zeros)
    return EpisodeStats(zeros, jnp.zeros(num_envs, jnp.int32), metrics, groups)


def step_return(spec: EnvSpec, reward: jax.Array) -> jax.Array:
    """What one step adds to the episode's return, [N]: a team reward once, individual rewards summed over agents."""
    return reward[..., 0] if spec.reward == "team" else jnp.sum(reward, axis=-1)


def paid_groups(spec: EnvSpec) -> dict[str, slice]:
    """{name: its part of the agent axis} of the groups with a return of their own; {} where all agents share one reward."""
    ends = np.cumsum([group.size for group in spec.groups])
    own = {group.name: slice(int(end) - group.size, int(end)) for group, end in zip(spec.groups, ends, strict=True)}
    return {} if spec.reward == "team" else own


def advance_stats(spec: EnvSpec, stats: EpisodeStats, outcome: TimeStep) -> EpisodeStats:
    """The statistics with one more step [N, A]."""
    metrics = {
        name: outcome.metrics[name] if how == "last" else stats.metrics[name] + outcome.metrics[name]
        for name, how in spec.metrics
    }
    groups = {
        name: stats.groups[name] + jnp.sum(outcome.reward[..., rows], axis=-1) for name, rows in paid_groups(spec).items()
    }
    return EpisodeStats(stats.episode_return + step_return(spec, outcome.reward), stats.length + 1, metrics, groups)


def summarise(spec: EnvSpec, stats: EpisodeStats) -> dict[str, jax.Array]:
    """What is told of finished episodes, {name: float32 [N]}.

    `agent_return` is the mean over agents; `group_return.<group>` the sum over a group's, where groups are paid apart.
    """
    length = jnp.maximum(stats.length.astype(jnp.float32), 1.0)
    metrics = {name: stats.metrics[name] / length if how == "mean" else stats.metrics[name] for name, how in spec.metrics}
    agents = 1.0 if spec.reward == "team" else jnp.float32(spec.agents)
    own = {"return": stats.episode_return, "agent_return": stats.episode_return / agents, "length": length}
    return own | {f"group_return.{name}": value for name, value in stats.groups.items()} | metrics


def no_totals(spec: EnvSpec) -> dict[str, jax.Array]:
    """Sums over the episodes that ended in a rollout, before the first."""
    one = jax.eval_shape(lambda: summarise(spec, no_stats(spec, 1)))
    return {name: jnp.float32(0.0) for name in ("episodes", *one)}


def count_ended(
    spec: EnvSpec, stats: EpisodeStats, totals: dict[str, jax.Array], last: jax.Array
) -> tuple[EpisodeStats, dict[str, jax.Array]]:
    """Moves the episodes that ended (`last` [N]) from the running statistics into the totals."""
    ended = {"episodes": jnp.ones_like(stats.episode_return), **summarise(spec, stats)}
    totals = {name: totals[name] + jnp.sum(jnp.where(last, x, 0.0)) for name, x in ended.items()}
    return select(last, no_stats(spec, last.shape[0]), stats), totals


def means(totals: dict[str, jax.Array]) -> dict[str, Any]:
    """Means over the ended episodes, prefixed `episode_`, NaN where none ended; and how many ended, as `episodes`."""
    count = totals["episodes"]
    mean = {f"episode_{name}": jnp.where(count > 0, x / jnp.maximum(count, 1.0), jnp.nan) for name, x in totals.items()}
    del mean["episode_episodes"]
    return mean | {"episodes": count}

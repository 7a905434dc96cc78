"""Evaluation: E environments that play exactly one episode each, so that short episodes are not counted more often."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.ops.trees import select
from agentgym_jax.rollout.episodes import advance_stats, summarise
from agentgym_jax.rollout.unroll import Acting, restarts, see_world, start
from agentgym_jax.types import Clock


def play(
    acting: Acting, learner: Any, hyper: Any, key: jax.Array, cap: jax.Array, explore: jax.Array | bool
) -> dict[str, jax.Array]:
    """One episode in each of the E environments of `acting.sizes`, by the greedy or the sampled policy.

    Args:
      learner, hyper: taken as constants; no derivative passes. key: fixes starts, noise and actions.
      cap: int32 [], the most steps that are played.
      explore: bool [], False acts by the mode, True by the behaviour policy at its final noise. A traced one lets one
        compiled loop serve both, and the network's pass is done once; with Python's own, the other is not computed.

    Returns:
      {name: float32 [E]}: return, agent_return, length, the environment's metrics, and `cut` (1 where `cap` ended it).
    """
    learner, hyper = jax.lax.stop_gradient((learner, hyper))
    env, tasks, algorithm = acting.env, acting.tasks, acting.algorithm
    clock = Clock(jnp.int32(1), jnp.int32(1))  # the end of training, where schedules have their final value
    key_start, key_play = jax.random.split(key)
    transition = jax.vmap(lambda key, state, action, task: env.transition(key, state, action, tasks.params(task)))

    def act(actor, world, key):
        seen = (learner, hyper, actor.carry, actor.timestep, world, actor.reset, key, clock)
        if isinstance(explore, bool):
            return algorithm.act(*seen, explore)[:2]
        carry, mode, _ = algorithm.act(*seen, False)
        _, sample, _ = algorithm.act(*seen, True)
        return carry, jnp.where(explore, sample, mode)

    def step(carried):
        t, playing, actor = carried
        key_act, key_step = jax.random.split(jax.random.fold_in(key_play, t))
        world = ()
        if "world" in algorithm.record:
            world = see_world(env, tasks, actor.env_state, actor.task, actor.timestep)
        carry, action = act(actor, world, key_act)
        keys = jax.random.split(key_step, playing.shape[0])
        env_state, outcome = transition(keys, actor.env_state, action, actor.task)
        after = actor.replace(
            env_state=env_state,
            timestep=outcome,
            carry=carry,
            reset=restarts(actor.timestep, outcome),
            stats=advance_stats(env.spec, actor.stats, outcome),
        )
        return t + 1, playing & ~outcome.last, select(playing, after, actor)

    def going(carried):
        t, playing, _ = carried
        return (t < cap) & jnp.any(playing)

    actor = start(acting, tasks.init(), key_start, clock)
    begin = (jnp.int32(0), jnp.ones(acting.sizes.num_envs, bool), actor)
    _, playing, actor = jax.lax.while_loop(going, step, begin)
    return summarise(env.spec, actor.stats) | {"cut": jnp.where(playing, 1.0, 0.0)}

"""Acting: T steps of N environments, recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.ops.teams import newcomers
from agentgym_jax.ops.trees import strong
from agentgym_jax.rollout.episodes import advance_stats, count_ended, no_stats, no_totals
from agentgym_jax.rollout.resets import Resets, Start, env_numbers, make_resets, new_starts, restart
from agentgym_jax.tasks.base import Tasks
from agentgym_jax.types import Across, ActorState, Clock, Sizes, Trajectory, Transition
from envs_jax.core import Env, TimeStep


class Acting(NamedTuple):
    """The static parts of a rollout."""

    env: Env  # with an agent axis
    tasks: Tasks
    algorithm: Algorithm
    sizes: Sizes
    resets: Resets
    across: Across

    @property
    def all_envs(self) -> int:
        """The environments of one member on all devices together."""
        return self.sizes.num_envs * self.across.size


def make_acting(
    env: Env, tasks: Tasks, algorithm: Algorithm, sizes: Sizes, reset_mode: str, across: Across = Across()
) -> Acting:
    """Bundles the static parts; `reset_mode` is `fresh` or `pool`."""
    return Acting(env, tasks, algorithm, sizes, make_resets(reset_mode, env, tasks, sizes, across), across)


def start(acting: Acting, tasks_state: Any, key: jax.Array, clock: Clock = Clock(0, 1)) -> ActorState:
    """N environments at their first steps; `clock` is the time of the run, else its beginning."""
    num_envs = acting.sizes.num_envs
    keys = acting.across.own_part(jax.random.split(key, acting.all_envs))
    numbers = env_numbers(num_envs, acting.across)
    first = new_starts(acting.env, acting.tasks, tasks_state, keys, clock, numbers)
    return ActorState(
        env_state=first.env_state,
        timestep=first.timestep,
        task=first.task,
        carry=acting.algorithm.carry((num_envs,)),
        reset=jnp.ones((num_envs, acting.env.spec.agents), bool),
        stats=no_stats(acting.env.spec, num_envs),
    )


def see_world(env: Env, tasks: Tasks, env_state: Any, task: Any, timestep: TimeStep) -> jax.Array:
    """The world state [N, W]: the environment's own, else all agents' observations side by side."""
    if env.spec.world_space is None:
        return timestep.observation.reshape(timestep.observation.shape[0], -1)
    return jax.vmap(lambda state, task: env.world(state, tasks.params(task)))(env_state, task)


def restarts(before: TimeStep, outcome: TimeStep) -> jax.Array:
    """bool [N, A]: the next observation is an agent's first: a new episode, or a new agent in a slot that was free."""
    return outcome.last[:, None] | newcomers(before.alive, outcome.discount, outcome.alive)


def unroll(
    acting: Acting, learner: Any, hyper: Any, actor: ActorState, tasks_state: Any, key: jax.Array, clock: Clock, uniform: bool
) -> tuple[ActorState, Trajectory, dict[str, jax.Array]]:
    """T steps of acting. `uniform` (static) replaces the policy's actions by uniformly random legal ones.

    Returns the actor afterwards, the trajectory [T, N, A, ...], and totals over the episodes that ended.
    """
    env, tasks, algorithm, sizes, resets, across = acting
    key_act, key_step, key_reset = jax.random.split(key, 3)
    inputs, shared = resets.prepare(tasks_state, key_reset, clock)
    act = _act(acting, learner, hyper, clock, uniform)
    transition = jax.vmap(lambda key, state, action, task: env.transition(key, state, action, tasks.params(task)))

    def step(carried, inputs):
        actor, totals, ended = carried
        key_act, keys_step, reset_inputs = inputs
        carry, action, extras, world = act(actor, key_act)
        env_state, outcome = transition(keys_step, actor.env_state, action, actor.task)
        recorded = {
            "observation": lambda: actor.timestep.observation,
            "action": lambda: action,
            "reward": lambda: outcome.reward,
            "discount": lambda: outcome.discount,
            "alive": lambda: actor.timestep.alive,
            "next_alive": lambda: outcome.alive,
            "last": lambda: outcome.last,
            "reset": lambda: actor.reset,
            "action_mask": lambda: actor.timestep.action_mask,
            "next_action_mask": lambda: outcome.action_mask,
            "next_observation": lambda: outcome.observation,
            "world": lambda: world,
            "next_world": lambda: see_world(env, tasks, env_state, actor.task, outcome),
            "extras": lambda: extras,
        }
        recorded = Transition(**{name: make() for name, make in recorded.items() if name in algorithm.record})
        stats, totals = count_ended(env.spec, advance_stats(env.spec, actor.stats, outcome), totals, outcome.last)
        begin = functools.partial(resets.start, tasks_state, shared, reset_inputs, ended)
        env_state, timestep, task = restart(outcome.last, begin, Start(env_state, outcome, actor.task))
        reset = restarts(actor.timestep, outcome)
        after = ActorState(env_state, timestep, task, carry, reset, stats)
        return (after, totals, ended + outcome.last.astype(jnp.int32)), recorded

    keys_step = across.own_part(jax.random.split(key_step, (sizes.rollout_length, acting.all_envs)), axis=1)
    per_step = (jax.random.split(across.own_key(key_act), sizes.rollout_length), keys_step, inputs)
    none_ended = jnp.zeros(sizes.num_envs, jnp.int32)
    (after, totals, _), steps = jax.lax.scan(step, (actor, no_totals(env.spec), none_ended), per_step)
    return strong(after), Trajectory(steps, actor.carry), totals


def _act(acting: Acting, learner: Any, hyper: Any, clock: Clock, uniform: bool) -> Callable[..., tuple[Any, ...]]:
    env, tasks, algorithm = acting.env, acting.tasks, acting.algorithm

    def act(actor: ActorState, key: jax.Array):
        timestep, world = actor.timestep, ()
        if "world" in algorithm.record:
            world = see_world(env, tasks, actor.env_state, actor.task, timestep)
        carry, action, extras = algorithm.act(
            learner, hyper, actor.carry, timestep, world, actor.reset, key, clock, True
        )
        if uniform:  # the policy's choice by the same key is forgotten
            action = env.spec.sample_actions(jax.random.clone(key), timestep)
        return carry, action, extras, world

    return act

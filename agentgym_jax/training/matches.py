"""Matches: episodes in which every group of an environment's agents is played by a policy of its own.

Whoever plays is an `Algorithm` that acts for all agents of the environment in its natural shapes and units, of which a group's
rows are taken; so a learner sees the rows that it saw in training. A match is such an algorithm too, and one evaluation plays
it: a run that plays every group greedily gets the returns of its own evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.ops.trees import strong
from agentgym_jax.rollout.unroll import make_acting
from agentgym_jax.tasks.base import fixed
from agentgym_jax.training.baseline import acting_only
from agentgym_jax.training.evaluate import play
from agentgym_jax.types import Clock, Sizes
from envs_jax.core import Env, EnvSpec, TimeStep
from envs_jax.groups import Part, part_of
from envs_jax.scripts import Script
from envs_jax.spaces import Box
from envs_jax.wrappers import ScaleActions


def trained(algorithm: Algorithm, env: Env, part: Part | None = None) -> Algorithm:
    """A run's algorithm as one that acts in the units of its environment, and, with `part`, for those agents of a larger one.

    `env` is the run's environment in its natural shapes. The world state is not shown: no action depends on it.
    """
    scale = ScaleActions(env) if isinstance(env.spec.action_space, Box) else None

    def act(learner, hyper, carry, timestep, world, reset, key, clock, explore):
        own = timestep if part is None else jax.vmap(part.view)(timestep)
        starts = reset if part is None else reset[:, part.agents]
        carry, action, _ = algorithm.act(learner, hyper, carry, own, (), starts, key, clock, explore)
        action = action if scale is None else scale.own_units(action)
        return carry, action if part is None else _into(part, action), ()

    return acting_only(algorithm.carry, act)


def scripted(script: Script, part: Part) -> Algorithm:
    """A script as an algorithm that acts for the agents of `part`; its learner is its strength, float32 []."""

    def carry(batch_shape):
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (*batch_shape, *x.shape)), script.init(len(part.agents)))

    def act(learner, hyper, carry, timestep, world, reset, key, clock, explore):
        def one(carry, key, timestep, reset):
            return part.follow(script, carry, key, timestep, reset, learner)

        carry, action = jax.vmap(one)(carry, jax.random.split(key, timestep.last.shape[0]), timestep, reset)
        return carry, _into(part, action), ()

    return acting_only(carry, act)


def frozen(algorithm: Algorithm, learner: Any, hyper: Any, part: Part, explore: bool) -> Script:
    """A policy as the script of a group: `algorithm` acts for all agents of the environment, see `trained`."""
    clock = Clock(jnp.int32(1), jnp.int32(1))  # the end of training

    def act(carry, key, observation, action_mask, reset):
        ones = jnp.ones(reset.shape, jnp.float32)
        timestep = TimeStep(observation, 0.0 * ones, ones, ones > 0, jnp.bool_(False), action_mask)
        carry, timestep, reset = jax.tree.map(lambda x: x[None], (carry, timestep, reset))
        carry, action, _ = algorithm.act(learner, hyper, carry, timestep, (), reset, key, clock, explore)
        return jax.tree.map(lambda x: x[0], carry), part.actions(action[0])

    return Script(lambda k: jax.tree.map(lambda x: x[0], algorithm.carry((1,))), act, sees_all=True)


def versus(spec: EnvSpec, algorithms: Sequence[Algorithm], choices: Mapping[str, Sequence[int]]) -> Algorithm:
    """Every group by a policy of its own, as one algorithm.

    `choices`: {group: which of `algorithms` can play it}. The learner is (numbers, seats): numbers[k] = (learner, hyper) of
    algorithm k, leaves [M, ...] for its M members; seats {group: (which of the group's choices, which member)}, int32 [] each,
    traced, so that one program plays every pairing.
    """
    parts = {group: part_of(spec, [group]) for group in choices}
    space = spec.action_space

    def carry(batch_shape):
        return {group: tuple(strong(algorithms[k].carry(batch_shape)) for k in ks) for group, ks in choices.items()}

    def act(learner, hyper, carry, timestep, world, reset, key, clock, explore):
        numbers, seats = learner
        action = jnp.zeros((*reset.shape, *space.shape), space.dtype)
        after = {}
        for place, (group, ks) in enumerate(choices.items()):
            which, member = seats[group]
            key_group = jax.random.fold_in(key, place)

            def branch(index, k, member=member, key=key_group):
                def acts(carries):
                    own, theirs = jax.tree.map(lambda x: x[member], numbers[k])
                    seen = (own, theirs, carries[index], timestep, (), reset, key, clock, explore)
                    new, chosen, _ = algorithms[k].act(*seen)
                    return (*carries[:index], strong(new), *carries[index + 1 :]), chosen.astype(space.dtype)

                return acts

            branches = [branch(index, k) for index, k in enumerate(ks)]
            after[group], chosen = jax.lax.switch(which, branches, carry[group])
            action = action.at[:, parts[group].agents].set(chosen[:, parts[group].agents])
        return after, action, ()

    return acting_only(carry, act)


def make_match(
    env: Env, algorithms: Sequence[Algorithm], choices: Mapping[str, Sequence[int]], episodes: int, explore: bool
) -> Callable[..., dict[str, jax.Array]]:
    """match(params, numbers, seats, key, cap) -> {name: float32 [P, E]}: E = `episodes` of each of P pairings.

    `env` has groups. `numbers` and `seats` are those of `versus`, the seats' leaves [P]; `key` fixes starts, noise and actions,
    the same for every pairing. What is returned is that of `play`. Pairings are played one after another.
    """
    algorithm = versus(env.spec, algorithms, choices)

    def match(params: Any, numbers: Any, seats: Any, key: jax.Array, cap: jax.Array):
        acting = make_acting(env, fixed(params), algorithm, Sizes(episodes, 1), "fresh")
        return jax.lax.map(lambda seats: play(acting, (numbers, seats), (), key, cap, explore), seats)

    return match


def _into(part: Part, action: jax.Array) -> jax.Array:
    """Actions [N, k, ...] of some agents among those of all, [N, A, ...]; the others' are 0."""
    space = part.whole.action_space
    nobody = jnp.zeros((part.whole.agents, *space.shape), space.dtype)
    return jax.vmap(lambda own: part.into(own.astype(space.dtype), nobody))(action)

"""The one training loop: pure functions of one member, for every algorithm and every environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.ops.trees import all_finite, select, strong
from agentgym_jax.rollout.episodes import means
from agentgym_jax.rollout.unroll import Acting, make_acting, start, unroll
from agentgym_jax.tasks.base import Tasks
from agentgym_jax.training.evaluate import play
from agentgym_jax.types import Across, ActorState, Best, Clock, Sizes, TrainState, Trajectory
from envs_jax.core import Env

_EVALUATION = 0x6576616C  # sets the keys of evaluation apart from those of training
Evaluation = dict[str, dict[str, jax.Array]]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The static sizes of a run."""

    num_envs: int  # N
    rollout_length: int  # T
    iterations: int  # of the whole run; points · calls divides it
    points: int  # evaluations
    calls: int  # calls of `advance` between two evaluations
    reset: str  # fresh or pool
    episodes: int  # E, in one evaluation
    cap: int  # the most steps of an evaluation episode
    seed: int  # of evaluation: the same starts for every member, at every point
    absolute: int = 10  # times E episodes of the best policy at the end, ≥ 1

    @property
    def iterations_per_call(self) -> int:
        """K."""
        return self.iterations // (self.points * self.calls)


class Loop(NamedTuple):
    """Pure functions of one member.

    init(key, hyper) -> TrainState, warm-up done
    advance(state, hyper, clock) -> state, curves {name: float32 [K]}: K iterations
    evaluate(state, hyper, round) -> state, {greedy, sampled: {name: float32 [E]}}
        round 0 plays the current policy and keeps the best; round r ≥ 1 plays the best policy greedily on other episodes
        (`sampled` is zeros then), changes nothing, and is a part of the absolute metric
    """

    init: Callable[[jax.Array, Any], TrainState]
    advance: Callable[[TrainState, Any, Clock], tuple[TrainState, dict[str, jax.Array]]]
    evaluate: Callable[[TrainState, Any, jax.Array], tuple[TrainState, Evaluation]]
    plan: Plan
    acting: Acting  # what it is made of
    shards: int = 1  # devices that share the environments of one member; all hold the same learner


def local_sizes(plan: Plan, across: Across) -> Sizes:
    """The sizes on one device, where `across.size` of them share the environments."""
    return Sizes(plan.num_envs // across.size, plan.rollout_length)


def make_loop(
    env: Env,
    tasks: Tasks,
    algorithm: Algorithm,
    plan: Plan,
    on_trace: Callable[[], None] = lambda: None,
    across: Across = Across(),
    held_out: Tasks | None = None,
) -> Loop:
    """The loop of an environment with an agent axis. `on_trace` is called when `advance` is traced, never when it runs.

    `across`: the devices that share a member's environments; the algorithm was made with the same, and `local_sizes`.
    `held_out`: the tasks of evaluation, where they are not those of training.
    """
    acting = make_acting(env, tasks, algorithm, local_sizes(plan, across), plan.reset, across)
    # Evaluation never resets, so `fresh` costs nothing there. Devices that share a member all play the same episodes.
    playing = make_acting(env, held_out or tasks, algorithm, Sizes(plan.episodes, 1), "fresh")

    def init(key: jax.Array, hyper: Any) -> TrainState:
        return _warm_up(acting, _initial_state(acting, key, hyper), hyper)

    def advance(state: TrainState, hyper: Any, clock: Clock):
        on_trace()

        def body(state, offset):
            return _iterate(acting, state, hyper, Clock(clock.iteration + offset, clock.total))

        return jax.lax.scan(body, state, jnp.arange(plan.iterations_per_call, dtype=jnp.int32))

    def evaluate(state: TrainState, hyper: Any, round: jax.Array):
        return _evaluate(playing, plan, state, hyper, round)

    return Loop(init, advance, evaluate, plan, acting, across.size)


def _initial_state(acting: Acting, key: jax.Array, hyper: Any) -> TrainState:
    key_learner, key_actor, key = jax.random.split(key, 3)
    learner = acting.algorithm.init(key_learner, hyper)
    tasks = acting.tasks.init()
    actor = start(acting, tasks, key_actor)
    shapes = jax.eval_shape(lambda *args: first_rollout(acting, *args), learner, hyper, actor, tasks, key_actor)
    memory = acting.algorithm.memory.init(jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes))
    best = Best(jnp.float32(-jnp.inf), jax.tree.map(jnp.copy, learner))
    return strong(TrainState(learner, actor, memory, tasks, best, key))


def first_rollout(
    acting: Acting, learner: Any, hyper: Any, actor: ActorState, tasks: Any, key: jax.Array
) -> Trajectory:
    """What a rollout at the start of training records; for its shapes."""
    return unroll(acting, learner, hyper, actor, tasks, key, Clock(jnp.int32(0), jnp.int32(1)), uniform=False)[1]


def _warm_up(acting: Acting, state: TrainState, hyper: Any) -> TrainState:
    """Iterations −w … −1: uniform legal acting that fills memories and statistics, and teaches nothing."""

    def body(state, iteration):
        key_unroll, key = jax.random.split(state.key)
        clock = Clock(iteration, jnp.int32(1))
        actor, trajectory, _ = unroll(
            acting, state.learner, hyper, state.actor, state.tasks, key_unroll, clock, uniform=True
        )
        memory = acting.algorithm.memory.push(state.memory, trajectory, clock)
        learner, carry = acting.algorithm.observe(state.learner, hyper, trajectory, actor.carry, clock)
        actor = actor.replace(carry=carry)
        return state.replace(learner=learner, actor=actor, memory=memory, key=key), None

    if acting.algorithm.warmup == 0:
        return state
    return jax.lax.scan(body, state, jnp.arange(-acting.algorithm.warmup, 0, dtype=jnp.int32))[0]


def _iterate(acting: Acting, state: TrainState, hyper: Any, clock: Clock) -> tuple[TrainState, dict[str, jax.Array]]:
    """unroll -> push -> U × (sample -> learn -> feedback) -> observe."""
    algorithm = acting.algorithm
    key_unroll, key_updates, key = jax.random.split(state.key, 3)
    actor, trajectory, totals = unroll(
        acting, state.learner, hyper, state.actor, state.tasks, key_unroll, clock, uniform=False
    )
    memory = algorithm.memory.push(state.memory, trajectory, clock)

    def update(carried, key):
        learner, memory = carried
        key_sample, key_learn = jax.random.split(key)
        batch = algorithm.memory.sample(memory, trajectory, acting.across.own_key(key_sample), clock)
        learner, scalars, feedback = algorithm.learn(learner, hyper, batch, key_learn, clock)
        return (learner, algorithm.memory.feedback(memory, batch, feedback)), scalars

    keys = jax.random.split(key_updates, algorithm.memory.updates)
    (learner, memory), scalars = jax.lax.scan(update, (state.learner, memory), keys)
    learner, carry = algorithm.observe(learner, hyper, trajectory, actor.carry, clock)
    totals = jax.tree.map(lambda x: acting.across.mean(x) * acting.across.size, totals)
    curves = jax.tree.map(lambda x: jnp.mean(x, axis=0), scalars) | means(totals)
    curves["diverged"] = jnp.where(all_finite(learner), 0.0, 1.0)
    state = state.replace(learner=learner, actor=actor.replace(carry=carry), memory=memory, key=key)
    return state, curves


def evaluation_keys(seed: int, round: Any) -> jax.Array:
    """The keys [2] of the greedy and of the sampled episodes of an evaluation; none is a key of a member with this seed."""
    root = jax.random.fold_in(jax.random.key(seed), _EVALUATION)
    return jax.random.split(jax.random.fold_in(root, round))


def _evaluate(
    playing: Acting, plan: Plan, state: TrainState, hyper: Any, round: jax.Array
) -> tuple[TrainState, Evaluation]:
    absolute = round > 0
    learner = select(absolute, state.best.learner, state.learner)
    keys = evaluation_keys(plan.seed, round)
    caps = jnp.stack([jnp.int32(plan.cap), jnp.where(absolute, 0, plan.cap)])

    def one(_, inputs):
        return None, play(playing, learner, hyper, *inputs)

    _, both = jax.lax.scan(one, None, (keys, caps, jnp.array([False, True])))
    greedy, sampled = (jax.tree.map(lambda x, i=i: x[i], both) for i in range(2))
    sampled = jax.tree.map(lambda x: jnp.where(absolute, 0.0, x), sampled)
    score = jnp.mean(greedy["return"])
    better = ~absolute & (score > state.best.score)
    best = select(better, Best(score, state.learner), state.best)
    return state.replace(best=best), {"greedy": greedy, "sampled": sampled}

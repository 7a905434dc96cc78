"""Small loops for the tests of training, and the comparisons that they share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import envs_jax
from agentgym_jax.algorithms.ppo import PPOHyper
from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.ops.schedules import Schedule, as_hyper
from agentgym_jax.tasks.base import fixed
from agentgym_jax.training.loop import Loop, Plan, local_sizes, make_loop
from agentgym_jax.training.parallel import Population
from agentgym_jax.training.train import make_train
from agentgym_jax.types import Across, Clock
from envs_jax.core import Box, Discrete, Env, EnvSpec, TimeStep
from envs_jax.wrappers import AgentAxis, ScaleActions

# LLVM's optimisation is most of the time to compile, and nothing where a program runs for a moment.
QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


def quick(function: Callable[..., Any]) -> Any:
    """`jax.jit` without LLVM's optimisation."""
    return jax.jit(function, compiler_options=QUICK)


class Drift(Env):
    """A point on a line, pushed left or right with noise: random starts, deaths, time limits, a metric and float dynamics."""

    spec = EnvSpec(Box(-4, 4, (2,)), Discrete(2), metrics={"distance": "mean"}, episode_limit=10)

    def initial(self, key, params):
        return {"place": jax.random.uniform(key, (), jnp.float32, -1.0, 1.0), "time": jnp.int32(0)}

    def advance(self, key, state, action, params):
        noise = 0.2 * jax.random.normal(key, (), jnp.float32)
        place = state["place"] + jnp.where(action == 1, 0.3, -0.3) + noise
        return {"place": place, "time": state["time"] + 1}, 1.0 - jnp.abs(place)

    def observe(self, state, params):
        place, fallen = state["place"], jnp.abs(state["place"]) > 1.5
        return TimeStep(
            observation=jnp.stack([place, state["time"] / jnp.float32(10)]),
            reward=jnp.float32(0),
            discount=(~fallen).astype(jnp.float32),
            alive=jnp.bool_(True),
            last=fallen | (state["time"] >= 10),
            metrics={"distance": jnp.abs(place)},
        )


def with_agent_axis(env: Env) -> Env:
    """The environment as the loop wants it."""
    env = ScaleActions(env) if isinstance(env.spec.action_space, Box) else env
    return AgentAxis(env) if env.spec.num_agents is None else env


def small_loop(
    env: str | Env,
    name: str = "ppo",
    network: Any = None,
    config: Any = None,
    on_trace=lambda: None,
    across: Across = Across(),
    **plan: Any,
) -> Loop:
    """A loop with a tiny network and a plan of two points, a call of one iteration each; every part can be replaced."""
    env = with_agent_axis(envs_jax.make(env) if isinstance(env, str) else env)
    sizes = {"num_envs": 4, "rollout_length": 8, "iterations": 2, "points": 2, "calls": 1, "reset": "fresh"}
    evaluation = {"episodes": 4, "cap": env.spec.episode_limit or 20, "seed": 0, "absolute": 2}
    plan = Plan(**(sizes | evaluation | plan))
    entry = get_algorithm(name)
    passes = {"epochs": 2, "minibatches": 2} if hasattr(entry.config, "minibatches") else {}
    config = entry.config(**(passes | dict(entry.defaults) | (config or {})))
    models = entry.networks(NetworkConfig(**({"hidden": (16,)} | (network or {}))), env.spec, config)
    algorithm = entry.make(env.spec, config, models, local_sizes(plan, across), across)
    return make_loop(env, fixed(env.default_params), algorithm, plan, on_trace, across)


class Solo(NamedTuple):
    """The three programs of one member, jitted, and how often `advance` was traced."""

    loop: Loop
    init: Callable[..., Any]
    advance: Callable[..., Any]
    evaluate: Callable[..., Any]
    traces: list[int]

    def run(self, state: Any, numbers: Any, calls: range, total: int = 100, evaluate: bool = False) -> Any:
        """The state after these calls of one iteration, with an evaluation after each if wanted."""
        for call in calls:
            state, _ = self.advance(state, numbers, clock(call, total))
            if evaluate:
                state, _ = self.evaluate(state, numbers, jnp.int32(0))
        return state


@functools.cache
def drift_loop() -> Loop:
    """The loop that most tests share."""
    return small_loop(Drift())


@functools.cache
def drift_solo() -> Solo:
    """Its programs, compiled once in this process."""
    traces: list[int] = []
    loop = small_loop(Drift(), on_trace=lambda: traces.append(1))
    return Solo(loop, quick(loop.init), quick(loop.advance), quick(loop.evaluate), traces)


@functools.cache
def drift_train() -> Callable[..., Any]:
    """A whole run of it as one program."""
    return jax.jit(make_train(drift_loop()))


@functools.cache
def drift_population(size: int, mode: str, devices: int) -> Population:
    """A compiled population of it."""
    population = Population(drift_loop(), size, mode, jax.devices()[:devices])
    population.compile(population.place(root_keys(*range(size))), population.place(points(*[1e-3] * size)))
    return population


@functools.cache
def drift_run(size: int, mode: str, devices: int) -> dict[str, Any]:
    """A whole run of that population with the seeds and learning rates of `members(size)`."""
    return run_population(drift_population(size, mode, devices), *members(size))


def members(size: int) -> tuple[jax.Array, Any]:
    """Keys and numbers of the first members of the runs that tests compare, [P]."""
    return root_keys(*range(10, 10 + size)), points(*[1e-3 * 3**i for i in range(size)])


def hyper(**numbers: Any) -> PPOHyper:
    """PPO's numbers as strong arrays, with some of them changed."""
    return as_hyper(PPOHyper(**({"learning_rate": 1e-3} | numbers)))


def stacked(trees: list[Any]) -> Any:
    """Members side by side, leaves [P, ...]."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def member(tree: Any, index: int) -> Any:
    """One member of leaves [P, ...]."""
    return jax.tree.map(lambda x: x[index], tree)


def root_keys(*seeds: int) -> jax.Array:
    """A root key for every seed, [P]."""
    return jax.vmap(jax.random.key)(jnp.asarray(seeds))


def point(rate: float = 1e-3, **numbers: Any) -> PPOHyper:
    """Numbers that depend on the clock, so that runs differ where their clocks do."""
    return hyper(**({"learning_rate": Schedule(rate), "entropy": Schedule(0.1)} | numbers))


def points(*rates: float) -> PPOHyper:
    """A point for every learning rate, leaves [P]."""
    return stacked([point(rate) for rate in rates])


def clock(iteration: int, total: int) -> Clock:
    return Clock(jnp.int32(iteration), jnp.int32(total))


def run_population(population: Population, keys: jax.Array, hypers: Any) -> dict[str, Any]:
    """A whole run the way a host drives it: members in host order, with the fields of `TrainResult`."""
    plan = population.loop.plan
    keys, hypers = population.place(keys), population.place(hypers)
    states = population.init(keys, hypers)
    curves, evaluations, absolute = [], [], []
    for call in range(plan.points * plan.calls):
        now = population.clock(call * plan.iterations_per_call, plan.iterations)
        states, new = population.advance(states, hypers, now)
        curves.append(population.members(new))
        if (call + 1) % plan.calls == 0:
            states, results = population.evaluate(states, hypers, population.round(0))
            evaluations.append(population.members(results))
    learner = population.members(states).learner
    for number in range(1, plan.absolute + 1):
        states, results = population.evaluate(states, hypers, population.round(number))
        absolute.append(population.members(results)["greedy"])
    return {
        "learner": learner,
        "curves": jax.tree.map(lambda *x: np.concatenate(x, axis=1), *curves),
        "evaluation": jax.tree.map(lambda *x: np.stack(x, axis=1), *evaluations),
        "absolute": jax.tree.map(lambda *x: np.concatenate(x, axis=1), *absolute),
    }


def raw(x: Any) -> np.ndarray:
    """A leaf on the host; keys as their numbers."""
    x = jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
    return np.asarray(jax.device_get(x))


def same_bits(a: Any, b: Any) -> bool:
    """Whether two trees are equal to the bit; a NaN equals itself."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    return all(raw(x).tobytes() == raw(y).tobytes() for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def assert_same_bits(a: Any, b: Any) -> None:
    """Two trees are equal to the bit, and not because they are empty."""
    assert jax.tree.leaves(a)
    different = [
        jax.tree_util.keystr(path)
        for (path, x), y in zip(jax.tree.leaves_with_path(a), jax.tree.leaves(b), strict=True)
        if raw(x).tobytes() != raw(y).tobytes()
    ]
    assert not different


def assert_close(a: Any, b: Any, what: str, floor: float = 0.0) -> None:
    """Integers and booleans agree exactly, floats to 1e-5 of their array's largest; tells whether the bits agree too.

    `floor`: differences below it are rounding, whatever the size of the array (a divergence of 1e-9 is all rounding).
    """
    print(f"{what}: {'equal to the bit' if same_bits(a, b) else 'not equal to the bit'}")
    for (path, x), y in zip(jax.tree.leaves_with_path(a), jax.tree.leaves(b), strict=True):
        x, y, name = raw(x), raw(y), f"{what}{jax.tree_util.keystr(path)}"
        assert x.shape == y.shape and x.dtype == y.dtype, name
        if not np.issubdtype(x.dtype, np.floating):
            np.testing.assert_array_equal(x, y, err_msg=name)
            continue
        scale = np.nanmax(np.abs(y), initial=0.0)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=max(1e-5 * scale, floor), err_msg=name)


def assert_same_run(a: dict[str, Any], b: dict[str, Any], what: str) -> None:
    """Learner, curves, evaluations and absolute metric of two runs of one member agree."""
    for part in ("learner", "curves", "evaluation", "absolute"):
        assert_close(a[part], b[part], f"{what}, {part}", floor=1e-6 if part == "curves" else 0.0)


def result_fields(result: Any) -> dict[str, Any]:
    """A `TrainResult` as a plain mapping."""
    return {name: getattr(result, name) for name in ("learner", "curves", "evaluation", "absolute")}

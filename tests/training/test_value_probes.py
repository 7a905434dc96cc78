"""Every learner of action values on the probes: what its networks say afterwards is the value that is right."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from agentgym_jax.algorithms.action_values import ActionValues
from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.ops.schedules import Schedule, as_hyper
from envs_jax.wrappers import AgentIds

from .support import clock, quick, small_loop, with_agent_axis

GAMMA, EPISODES = 0.9, 64
REPLAY = {"capacity": 2048, "batch_size": 64, "updates": 8, "learning_starts": 256, "target_period": 20}
WINDOWS = REPLAY | {"batch_size": 16}
NEWEST = {"epochs": 2, "minibatches": 4, "optimiser": "adam"}
GRU = {"torso": "gru", "recurrent": 16, "hidden": ()}
CUES = [[[-1.0]], [[1.0]]]  # [B, A, F] of one agent
ONES = (CUES, [[1.0], [1.0]])
PAIRS = [[first, second] for first in (-1.0, 1.0) for second in (-1.0, 1.0)]
TEAM = [[[first], [second]] for first, second in PAIRS]


@dataclasses.dataclass(frozen=True)
class Case:
    """A probe, a learner, and what must come out: greedy values of some observations [B, A, F], and the greedy return."""

    probe: str
    name: str
    config: dict[str, Any]
    network: dict[str, Any] = dataclasses.field(default_factory=dict)
    ids: bool = False
    iterations: int = 150
    values: Any = None  # (observations [B, A, F], values [B, A'])
    returned: float | None = None


def single(name: str, config: dict[str, Any]) -> dict[str, Case]:
    """The probes of one agent."""
    limit = ([[[0.0]]], [[1.0 / (1.0 - GAMMA)]])
    recurrent = config | ({"batch_size": 16} if "capacity" in config else {})
    return {
        f"constant, {name}": Case("constant", name, config, values=([[[0.0]]], [[1.0]])),
        f"truncation, {name}": Case("truncation", name, config, iterations=400, values=limit),
        f"observation, {name}": Case("observation", name, config, values=(CUES, [[-1.0], [1.0]])),
        f"discounted, {name}": Case("discounted", name, config, values=([[[0.0]], [[1.0]]], [[GAMMA], [1.0]])),
        f"policy, {name}": Case("policy", name, config, values=([[[0.0]]], [[1.0]]), returned=1.0),
        f"policy_observation, {name}": Case("policy_observation", name, config, values=ONES, returned=1.0),
        f"masked, {name}": Case("masked", name, config, values=ONES, returned=1.0),
        f"memory, {name}": Case("memory", name, recurrent, network=GRU, iterations=300, returned=1.0),
    }


CASES = single("dqn", REPLAY) | single("pqn", NEWEST)
CASES |= {
    "discounted, n-step dqn": Case(
        "discounted", "dqn", REPLAY | {"n_steps": 3}, values=([[[0.0]], [[1.0]]], [[GAMMA], [1.0]])
    ),
    "truncation, n-step prioritised dqn": Case(
        "truncation",
        "dqn",
        REPLAY | {"n_steps": 3, "prioritised": True},
        iterations=400,
        values=([[[0.0]]], [[1.0 / (1.0 - GAMMA)]]),
    ),
    "policy_observation, prioritised dueling dqn": Case(
        "policy_observation", "dqn", REPLAY | {"prioritised": True}, {"dueling": True}, values=ONES, returned=1.0
    ),
    "policy_observation, one network, huber": Case(
        "policy_observation", "dqn", REPLAY | {"double": False, "loss": "huber"}, values=ONES, returned=1.0
    ),
    "memory, prioritised n-step dqn": Case(
        "memory", "dqn", WINDOWS | {"prioritised": True, "n_steps": 2}, GRU, iterations=300, returned=1.0
    ),
    # To an independent learner a mate that acts at random one time in five is a part of the world: 1 − ε / 2.
    "team, iql": Case("team", "iql", REPLAY, values=(TEAM, [[0.9, 0.9]] * 4), returned=1.0, iterations=300),
    "team, vdn": Case("team", "vdn", REPLAY, values=(TEAM, [[1.0]] * 4), returned=1.0),
    "team, qmix": Case("team", "qmix", REPLAY, values=(TEAM, [[1.0]] * 4), returned=1.0),
    "team, qmix, a network each": Case(
        "team", "qmix", REPLAY, {"sharing": "agent"}, values=(TEAM, [[1.0]] * 4), returned=1.0
    ),
    "team, pqn_vdn": Case("team", "pqn_vdn", NEWEST, values=(TEAM, [[1.0]] * 4), returned=1.0),
    "individual, iql": Case("individual", "iql", REPLAY, ids=True, returned=5.0),
}
GROUPS = {"network": {"sharing": "group"}, "iterations": 300, "returned": 1.0}
CASES |= {
    f"{probe}, {name}": Case(probe, name, NEWEST if name == "pqn_vdn" else REPLAY, **more)
    for name in ("iql", "vdn", "qmix", "pqn_vdn")
    for probe, more in (("two_groups", GROUPS), ("respawn", {"iterations": 300, "returned": 4.0}))
}


def learner_of(case: Case):
    """One program: training from a key, then an evaluation and the greedy values of the case's observations."""
    env = envs_jax.make(f"probe/{case.probe}")
    env = AgentIds(env) if case.ids else env
    plan = {"num_envs": 16, "rollout_length": 8, "points": 1, "iterations": case.iterations, "episodes": EPISODES}
    loop = small_loop(env, case.name, case.network, case.config, **plan)
    entry, spec = get_algorithm(case.name), with_agent_axis(env).spec
    numbers = as_hyper(entry.hyper(gamma=GAMMA, learning_rate=Schedule(1e-2), epsilon=Schedule(1.0, 0.2, over=0.5)))
    config = entry.config(**(dict(entry.defaults) | case.config))
    models = entry.networks(NetworkConfig(**({"hidden": (16,)} | case.network)), spec, config)
    values = ActionValues(spec, models["network"], models.get("mixer"))

    def greedy_values(params):
        if case.values is None:
            return ()
        seen = jnp.asarray(case.values[0], jnp.float32)[None]
        everybody = jnp.ones(seen.shape[:3], bool)
        own, _ = values.model.apply(params["network"], values.model.carry(seen.shape[1:3]), seen, everybody)
        return values.best(params, own, own, (), everybody, seen.reshape(*seen.shape[:2], -1))[0]

    def program(key):
        state, curves = loop.advance(loop.init(key, numbers), numbers, clock(0, case.iterations))
        state, evaluation = loop.evaluate(state, numbers, jnp.int32(0))
        return curves, evaluation, greedy_values(state.learner.params)

    return quick(program)


@pytest.mark.parametrize("name", CASES)
def test_probe(name):
    case = CASES[name]
    curves, evaluation, values = jax.device_get(learner_of(case)(jax.random.key(0)))
    assert not curves["diverged"].any()
    if case.values is not None:
        limit = case.probe == "truncation"
        np.testing.assert_allclose(values, np.float32(case.values[1]), rtol=0.05 if limit else 0, atol=0.1)
    if case.returned is not None:
        np.testing.assert_array_equal(evaluation["greedy"]["return"], np.full(EPISODES, case.returned, np.float32))


def test_without_memory_the_memory_probe_is_a_coin_toss():
    case = dataclasses.replace(CASES["memory, dqn"], network={})
    _, evaluation, _ = jax.device_get(learner_of(case)(jax.random.key(0)))
    assert 0.25 < evaluation["greedy"]["success"].mean() < 0.75

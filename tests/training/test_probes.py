"""Every probe environment is learnt, and what the networks say afterwards is the value or the policy that is right."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.models.actor_critic import separate, shared
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.ops.schedules import Schedule

from .support import clock, hyper, quick, small_loop, with_agent_axis

GAMMA = 0.9
EPISODES = 64


@dataclasses.dataclass(frozen=True)
class Case:
    """A probe, a learner, and what must come out: values of some observations [B, A, F], and the greedy return."""

    probe: str
    name: str = "ppo"
    network: dict[str, Any] = dataclasses.field(default_factory=dict)
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)  # of the probe
    wrappers: tuple[str, ...] = ()
    iterations: int = 150
    entropy: float = 0.0  # weight of its bonus at the start; it falls to 0
    values: Any = None  # (observations, worlds or (), values [B, A])
    returned: float | None = None  # by the greedy policy, in every episode


GRU = {"torso": "gru", "recurrent": 16, "hidden": ()}
CUES = [[[-1.0]], [[1.0]]]  # [B, A, F] of one agent
ONE = (CUES, (), [[1.0], [1.0]])
# Two agents with a cue each: all four worlds.
PAIRS = [[first, second] for first in (-1.0, 1.0) for second in (-1.0, 1.0)]
TEAM = ([[[first], [second]] for first, second in PAIRS], PAIRS, [[1.0, 1.0]] * 4)
JOINT = (np.asarray(PAIRS)[:, None], (), [[1.0]] * 4)
# Agent 0 earns 1 and dies, agent 1 earns 2 twice: observations at both steps, worlds are both side by side.
BEGIN = [[[first, 0.0], [second, 0.0]] for first, second in PAIRS]
LATER = [[[0.0, 0.0], [cue, 1.0]] for cue in (-1.0, 1.0)]
V_BEGIN, V_LATER = [1.0, 2.0 + 2.0 * GAMMA], [np.nan, 2.0]  # nothing is asked of the dead
INDIVIDUAL = (BEGIN + LATER, np.reshape(BEGIN + LATER, (6, 4)), [V_BEGIN] * 4 + [V_LATER] * 2)
WITH_IDS = (np.concatenate([BEGIN + LATER, np.tile(np.eye(2), (6, 1, 1))], axis=-1), (), INDIVIDUAL[2])
# Two scouts with a cue each, and a guard with two: all sixteen worlds.
CUES_OF_ALL = list(itertools.product((-1.0, 1.0), repeat=4))
TWO_GROUPS = ([[[a, 0.0], [b, 0.0], [c, d]] for a, b, c, d in CUES_OF_ALL], CUES_OF_ALL, np.ones((16, 3)))
GROUPS_WITH_IDS = ([[[a, 1, 0, 0, 0], [b, 0, 1, 0, 0], [c, d, 0, 0, 1]] for a, b, c, d in CUES_OF_ALL], (), TWO_GROUPS[2])
ROLES = Case("two_groups", "ippo", network={"sharing": "group"}, entropy=0.1, values=TWO_GROUPS, returned=1.0)
# An elder beside a slot in which somebody dies after the first of three steps, and somebody else is born at the third.
LIVES = [[[0, 1, 0, t], [c, 0, 0, 0]] for t in (0.0, 0.5) for c in (-1.0, 1.0)] + [[[0, 1, 0, 1], [0, 0, 1, 1]]]
LIFE_WORLDS = [[-1, 0], [1, 0], [0, 0.5], [0, 0.5], [0, 1]]
V_START, V_REST = 2.0 + GAMMA + GAMMA**2, 1.0 + GAMMA
SHARED_LIFE = (LIVES, LIFE_WORLDS, [[V_START] * 2] * 2 + [[V_REST, np.nan]] * 2 + [[1.0, 1.0]])
OWN_LIFE = (LIVES, LIFE_WORLDS, [[GAMMA, 2.0]] * 2 + [[1.0, np.nan]] * 2 + [[0.0, 1.0]])
RESPAWN = Case("respawn", "ippo", iterations=250, values=SHARED_LIFE, returned=4.0)
EACH_LIFE = dataclasses.replace(RESPAWN, arguments={"reward": "individual"}, values=OWN_LIFE)

CASES = {
    "constant": Case("constant", values=([[[0.0]]], (), [[1.0]])),
    "truncation": Case("truncation", iterations=300, values=([[[0.0]]], (), [[1.0 / (1.0 - GAMMA)]])),
    "observation": Case("observation", values=(CUES, (), [[-1.0], [1.0]])),
    "discounted": Case("discounted", values=([[[0.0]], [[1.0]]], (), [[GAMMA], [1.0]])),
    "policy": Case("policy", values=([[[0.0]]], (), [[1.0]]), returned=1.0),
    "policy_observation": Case("policy_observation", values=ONE, returned=1.0),
    "memory": Case("memory", network=GRU, iterations=300, returned=1.0),
    "continuous": Case("continuous"),
    "masked": Case("masked", values=ONE, returned=1.0),
    "multi_discrete": Case("multi_discrete", values=ONE, returned=1.0),
    "image": Case("image", network={"hidden": (32,), "activation": "relu"}, iterations=300, returned=1.0),
    "shared trunk": Case("policy_observation", network={"trunk": "shared"}, values=ONE, returned=1.0),
    "truncation, central": Case("truncation", "mappo", iterations=300, values=([[[0.0]]], [[0.0]], [[1.0 / (1.0 - GAMMA)]])),
    "memory, central": Case("memory", "mappo", network=GRU, iterations=300, returned=1.0),
    "squashed": Case("continuous", config={"distribution": "tanh_normal"}),
    "team, ippo": Case("team", "ippo", values=TEAM, returned=1.0),
    "team, mappo": Case("team", "mappo", values=TEAM, returned=1.0),
    "team, ippo, a network each": Case("team", "ippo", network={"sharing": "agent"}, values=TEAM, returned=1.0),
    "team, mappo, a network each": Case("team", "mappo", network={"sharing": "agent"}, values=TEAM, returned=1.0),
    "team, one joint policy": Case("team", wrappers=("joint",), values=JOINT, returned=1.0),
    "individual, ippo": Case("individual", "ippo", wrappers=("agent_ids",), values=WITH_IDS, returned=5.0),
    "individual, mappo": Case("individual", "mappo", values=INDIVIDUAL, returned=5.0),
    "individual, ippo, a network each": Case(
        "individual", "ippo", network={"sharing": "agent"}, values=INDIVIDUAL, returned=5.0
    ),
    "individual, mappo, a network each": Case(
        "individual", "mappo", network={"sharing": "agent"}, values=INDIVIDUAL, returned=5.0
    ),
    "two groups, ippo": ROLES,
    "two groups, mappo": dataclasses.replace(ROLES, name="mappo"),
    "two groups, ippo, a network each": dataclasses.replace(ROLES, network={"sharing": "agent"}),
    "two groups, ippo, one network with ids": dataclasses.replace(
        ROLES, network={"hidden": (32,)}, wrappers=("agent_ids",), values=GROUPS_WITH_IDS
    ),
    "two groups, ippo, one network with learnt ids": dataclasses.replace(ROLES, network={"id_embedding": 4}),
    "respawn, ippo": RESPAWN,
    "respawn, mappo": dataclasses.replace(RESPAWN, name="mappo"),
    "respawn, each alone, ippo": EACH_LIFE,
    "respawn, each alone, mappo": dataclasses.replace(EACH_LIFE, name="mappo"),
    "respawn, memory": dataclasses.replace(RESPAWN, network=GRU, iterations=150, values=None),
}


def learner_of(case: Case):
    """One program: training from a key and a learning rate, then an evaluation and the values of the case's observations."""
    env = envs_jax.apply_wrappers(envs_jax.make(f"probe/{case.probe}", **case.arguments), case.wrappers)
    plan = {"num_envs": 16, "rollout_length": 8, "points": 1, "iterations": case.iterations, "episodes": EPISODES}
    loop = small_loop(env, case.name, case.network, {"epochs": 4, **case.config}, **plan)

    def program(key, rate):
        numbers = hyper(gamma=GAMMA, entropy=Schedule(case.entropy), learning_rate=Schedule(rate))
        state, curves = loop.advance(loop.init(key, numbers), numbers, clock(0, case.iterations))
        state, evaluation = loop.evaluate(state, numbers, jnp.int32(0))
        return curves, evaluation, values_of(case, env, state.learner.params)

    return quick(program)


def values_of(case: Case, env, params):
    """What the critic says of the case's observations, [B, A]."""
    if case.values is None:
        return ()
    entry, spec = get_algorithm(case.name), with_agent_axis(env).spec
    config = entry.config(**(dict(entry.defaults) | case.config))
    models = entry.networks(NetworkConfig(**({"hidden": (16,)} | case.network)), spec, config)
    central = config.critic == "central"
    model = shared(models["network"]) if "network" in models else separate(models["actor"], models["critic"], central)
    observation = jnp.asarray(case.values[0], jnp.float32)
    world = jnp.asarray(case.values[1], jnp.float32)[None] if central else ()
    reset = jnp.ones((1, *observation.shape[:2]), bool)
    inputs = {"observation": observation[None], "world": world}
    return model.apply(params, model.carry(observation.shape[:2]), inputs, reset)[0].value[0]


def run(case: Case, rate: float = 1e-2):
    return jax.device_get(learner_of(case)(jax.random.key(0), jnp.float32(rate)))


@pytest.mark.parametrize("name", CASES)
def test_probe(name):
    case = CASES[name]
    curves, evaluation, values = run(case)
    assert not curves["diverged"].any()
    if case.values is not None:
        wanted = np.broadcast_to(np.float32(case.values[2]), values.shape)
        known = ~np.isnan(wanted)
        np.testing.assert_allclose(values[known], wanted[known], rtol=0.05 if case.probe == "truncation" else 0, atol=0.1)
    if case.returned is not None:
        np.testing.assert_array_equal(evaluation["greedy"]["return"], np.full(EPISODES, case.returned, np.float32))
    if case.probe == "continuous":
        assert np.all(evaluation["greedy"]["return"] > -0.01), "within 0.1 of the target, in a box four wide"


def test_without_memory_the_memory_probe_is_a_coin_toss():
    _, evaluation, _ = run(dataclasses.replace(CASES["memory"], network={}))
    success = evaluation["greedy"]["success"].mean()
    assert 0.25 < success < 0.75


def test_one_network_without_ids_gives_agents_that_see_the_same_one_value():
    """Agents 0 and 1 see the same and earn 1 and 2 + 2 γ: what has ids or networks of its own tells them apart, this cannot."""
    case = dataclasses.replace(CASES["individual, ippo, a network each"], network={})
    _, _, values = run(case)
    alike = values[[0, 3]]  # the cues are equal
    np.testing.assert_array_equal(alike[:, 0], alike[:, 1])
    np.testing.assert_allclose(alike, np.mean(V_BEGIN), atol=0.3)


def test_an_illegal_action_is_never_taken_before_or_after_learning():
    program = learner_of(CASES["masked"])
    for rate in (0.0, 1e-2):
        _, evaluation, _ = jax.device_get(program(jax.random.key(0), jnp.float32(rate)))
        for kind in ("greedy", "sampled"):
            assert set(evaluation[kind]["return"].tolist()) <= {0.0, 1.0}, "an illegal action would be paid 10"
        if rate == 0.0:
            assert set(evaluation["sampled"]["return"].tolist()) == {0.0, 1.0}


def test_every_probe_is_here():
    assert {case.probe for case in CASES.values()} == {id.partition("/")[2] for id in envs_jax.ids() if id.startswith("probe/")}

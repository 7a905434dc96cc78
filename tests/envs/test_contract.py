from __future__ import annotations

import contextlib

import jax.numpy as jnp
import pytest

import envs_jax
from agentgym_jax.algorithms.registry import algorithm_names, get_algorithm
from agentgym_jax.checks import ConfigError
from envs_jax.probes import PROBES
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers import WRAPPERS, AgentAxis

from .contract import check, check_training, check_types, relaxed
from .kinds import KINDS, Zeros, kind_of
from .stubs import Counter, Deaths

NEEDS_FILES = "gymnax/MNISTBandit-bsuite"
ARGUMENTS = {
    "discretise_actions": {"bins": 3},
    "frame_stack": {"size": 3},
    "hook_reward": {"function": lambda state, action, next_state: 1.0},
    "opponent": {"group": "scouts", "policy": "random"},
    "pad": {"observation": 100, "actions": 4},
    "resize": {"height": 5, "width": 6},
    "scale_reward": {"factor": 0.5},
    "sticky_actions": {"probability": 0.25},
    "time_limit": {"limit": 5},
}


# jaxmarl's many environments are of three kinds: `test_jaxmarl.py` plays some and traces all.
@pytest.mark.parametrize("id", [id for id in envs_jax.ids() if id != NEEDS_FILES and not id.startswith("jaxmarl/")])
def test_environment(id):
    """The contract, an iteration of PPO, and that a stub of its kind is tested with every algorithm."""
    strict = envs_jax.suite(id) in ("gymnax", "multi", "probe") and id != "gymnax/Swimmer-misc"
    with contextlib.nullcontext() if strict else relaxed():
        env = check(envs_jax.make(id))
        check_training(env)
        assert kind_of(env) in KINDS, "add this kind of environment to KINDS"


def different_algorithms():
    """Names of algorithms, without those that are another one by its defaults too."""
    entries = {name: get_algorithm(name) for name in algorithm_names()}
    return [name for number, name in enumerate(entries) if entries[name] not in list(entries.values())[:number]]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_stub_is_of_its_kind(kind):
    assert kind_of(Zeros(kind)) == kind


@pytest.mark.parametrize("algorithm", different_algorithms())
def test_every_algorithm_traces_on_every_kind(algorithm):
    """Or refuses it in one line, before anything is traced."""
    traced = 0
    for kind in KINDS:
        try:
            check_training(Zeros(kind), algorithm)
            traced += 1
        except ConfigError as refusal:
            assert "\n" not in str(refusal) and len(str(refusal)) > 20, f"{algorithm} refuses {kind}: {refusal}"
        except Exception as error:
            raise AssertionError(f"{algorithm} on {kind}") from error
    assert traced, f"{algorithm} is for no kind of environment"


def suits(name, env):
    """Whether a wrapper is for this environment; the others must refuse it."""
    spec, several = env.spec, env.spec.num_agents is not None
    continuous, dimensions = isinstance(spec.action_space, Box), len(spec.observation_space.shape)
    return {
        "agent_ids": several and dimensions == 1,
        "discretise_actions": continuous,
        "joint": several,
        "opponent": bool(spec.groups),
        "pad": isinstance(spec.action_space, Discrete),
        "resize": dimensions == 3,
        "scale_actions": continuous,
        "team_reward": several,
    }.get(name, True)


def entry(name):
    return {"name": name, **ARGUMENTS.get(name, {})}


@pytest.mark.parametrize("probe", PROBES)
def test_wrappers_on_probe(probe):
    """Each wrapper by types, or refused where it makes no sense; then all that suit, around each other, in play."""
    env = envs_jax.make(f"probe/{probe}")
    for name in WRAPPERS:
        if suits(name, env):
            check_types(envs_jax.apply_wrappers(env, [entry(name)]))
        else:
            with pytest.raises(ValueError, match=name):
                envs_jax.apply_wrappers(env, [entry(name)])
    order = ("sticky_actions", "scale_reward", "team_reward", "hook_reward", "resize", "flatten", "agent_ids", "frame_stack")
    wrapped = env
    for name in (*order, "pad", "scale_actions", "discretise_actions", "time_limit"):
        if suits(name, wrapped):
            wrapped = envs_jax.apply_wrappers(wrapped, [entry(name)])
    check(AgentAxis(wrapped) if env.spec.num_agents is None else wrapped)


def test_frame_stack_around_an_image():
    check(envs_jax.apply_wrappers(envs_jax.make("probe/image"), [entry("frame_stack")]))


class Weak(Counter):
    def initial(self, key, params):
        return {**super().initial(key, params), "start": jnp.asarray(0.5)}  # a Python number makes it weakly typed


class Outside(Counter):
    def observe(self, state, params):
        timestep = super().observe(state, params)
        return timestep.replace(observation=timestep.observation + 100)


class Early(Counter):
    def observe(self, state, params):
        timestep = super().observe(state, params)
        return timestep.replace(last=state["time"] >= 2, discount=jnp.float32(1))


class PaysTheDead(Deaths):
    def advance(self, key, state, action, params):
        return state + 1, jnp.ones(3, jnp.float32)


class Narrow(Deaths):
    def observe(self, state, params):
        timestep = super().observe(state, params)
        return timestep.replace(action_mask=timestep.action_mask[:, :1])


@pytest.mark.parametrize("broken", [Weak, Outside, Early, PaysTheDead, Narrow])
def test_the_contract_finds_faults(broken):
    with pytest.raises(AssertionError):
        check(broken())


@pytest.mark.parametrize("env", [Counter(), Counter(length=20), Deaths(), Deaths(widths=(1, 3, 2))])
def test_the_contract_holds_for_sound_environments(env):
    check(env)

from __future__ import annotations

import contextlib

import jax.numpy as jnp
import pytest

import envs_jax
from envs_jax.probes import PROBES
from envs_jax.wrappers import WRAPPERS, AgentAxis

from .contract import check, check_types, is_box, relaxed
from .stubs import Counter, Deaths

ARGUMENTS = {"frame_stack": {"size": 3}, "time_limit": {"limit": 5}}


@pytest.mark.parametrize("id", envs_jax.ids())
def test_environment(id):
    ours = envs_jax.suite(id) in ("gymnax", "probe")  # gymnax's classic control runs under the strict rules
    with contextlib.nullcontext() if ours else relaxed():
        check(envs_jax.make(id))


def suits(name, env):
    """Whether a wrapper is for this environment; the others must refuse it."""
    if name == "agent_ids":
        return env.spec.num_agents is not None and len(env.spec.observation_space.shape) == 1
    return {"team_reward": env.spec.num_agents is not None, "scale_actions": is_box(env)}.get(name, True)


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
    order = ("team_reward", "flatten", "agent_ids", "frame_stack", "scale_actions", "time_limit")
    wrapped = env
    for name in order:
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

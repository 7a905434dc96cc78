"""Numbers of an environment: changing over the run, and held out for evaluation."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.running.runner import train
from agentgym_jax.types import Clock
from tests.io.support import tiny
from tests.support import compiled

SCHEDULE = "env.params.scale={start: 3, end: 1, over: 0.5}"  # what the probe `constant` pays at every step


def clock(iteration: int, total: int = 8) -> Clock:
    return Clock(jnp.int32(iteration), jnp.int32(total))


def test_an_episode_keeps_the_number_of_its_start():
    tasks = assemble(tiny("env.id=probe/constant", SCHEDULE)).loop.acting.tasks
    scales = [tasks.params(tasks.sample((), jax.random.key(0), clock(i), jnp.int32(0))).scale for i in (0, 2, 4, 8)]
    np.testing.assert_allclose(scales, [3, 2, 1, 1])
    assert all(x.dtype == jnp.float32 and not x.weak_type for x in scales)


@pytest.mark.parametrize("reset", ["fresh", "pool"])
def test_training_pays_by_the_clock_and_evaluation_by_the_end(reset):
    assembly = assemble(tiny("env.id=probe/constant", SCHEDULE, f"train.reset={reset}", "eval.episodes=2"))
    advance, evaluate = compiled(assembly.loop.advance), compiled(assembly.loop.evaluate)
    state = compiled(assembly.loop.init)(jax.random.key(0), assembly.hyper)
    state, first = advance(state, assembly.hyper, clock(0, 100))
    _, later = advance(state, assembly.hyper, clock(60, 100))
    np.testing.assert_allclose(first["episode_return"], 3)
    np.testing.assert_allclose(later["episode_return"], (3 + 1 + 1 + 1) / 4)  # one was under way when the time had come
    results = evaluate(state, assembly.hyper, jnp.int32(0))[1]["greedy"]
    np.testing.assert_allclose(results["return"], 1)
    assert assembly.params.scale == 1.0


def test_held_out_numbers_are_dealt_to_the_environments_in_turn():
    assembly = assemble(tiny("env.id=probe/constant", "eval.params=[{scale: 2}, {scale: 5}]", "env.params.scale=1"))
    state = compiled(assembly.loop.init)(jax.random.key(0), assembly.hyper)
    results = compiled(assembly.loop.evaluate)(state, assembly.hyper, jnp.int32(0))[1]["greedy"]
    np.testing.assert_allclose(results["return"], [2, 5, 2, 5])
    _, curves = compiled(assembly.loop.advance)(state, assembly.hyper, clock(0))
    np.testing.assert_allclose(curves["episode_return"], 1)


def test_a_summary_tells_of_each_held_out_setting():
    run = train(tiny("env.id=probe/constant", "eval.params=[{scale: 2}, {scale: 5}]"), quiet=True)
    told = [(each["params"], each["evaluation"]["greedy"]["return"]["per_seed"]) for each in run.summary["held_out"]]
    assert told == [({"scale": 2}, [2.0, 2.0]), ({"scale": 5}, [5.0, 5.0])]
    assert run.summary["evaluation"]["greedy"]["return"]["mean"] == 3.5


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("env.params.strength=2", "env.params.strength: must be a finite number between 0 and 1, got 2"),
        ("env.params.strength={start: 0, end: 7}", "env.params.strength.end: must be a finite number between 0 and 1, got 7"),
        ("eval.params=[{}, {strength: -3}]", "eval.params[1].strength: must be a finite number between 0 and 1, got -3"),
        ("env.params.contact_margin=0", "env.params.contact_margin: must be a finite number of at least 1e-06, got 0"),
    ],
)
def test_a_number_stays_in_the_range_that_the_environment_or_its_wrapper_says(params, message):
    env = "env={id: multi/tag, wrappers: [{name: opponent, group: prey, policy: flee}]}"
    with pytest.raises(ValueError, match=re.escape(message)):
        assemble(tiny(env, params))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["env.params.scale=.nan"], "env.params.scale: must be a finite number, got nan"),
        (["env.params.scale={begin: 1}"], "unknown key env.params.scale.begin"),
        (["env.params.scal={start: 1}"], "unknown key env.params.scal; did you mean scale?"),
        (["env.params.scale={start: 1, over: 2}"], "env.params.scale.over: must be between 0 and 1"),
        (["eval.params=[2]"], "eval.params: must be a list of mappings"),
        (["eval.params=[{scal: 2}]"], "unknown key eval.params[0].scal; did you mean scale?"),
        (["eval.params=[{scale: 2}, {scale: 3}, {}]", "eval.episodes=4"], "eval.params (their number)"),
    ],
)
def test_what_an_environment_does_not_have_is_refused(overrides, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        assemble(tiny("env.id=probe/constant", *overrides))

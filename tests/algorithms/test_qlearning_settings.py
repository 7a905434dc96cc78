"""Q-learning's settings: every number counts, one clock for all members, what is logged and what is refused."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms.qlearning import QConfig, QHyper
from agentgym_jax.checks import ConfigError
from agentgym_jax.ops.schedules import Schedule, as_hyper
from agentgym_jax.types import Clock
from tests.algorithms.q_cases import CASES, PLAIN, algorithm_of, batch_of, case, learning
from tests.support import compiled, simulated_devices
from tests.training.support import Drift, small_loop

close, same = np.testing.assert_allclose, np.testing.assert_array_equal

LIVE = {
    "sgd": (
        "learning_rate gamma tau reward_scale max_grad_norm priority_exponent priority_epsilon importance_exponent momentum",
        {"learning_rate": 0.05, "momentum": 0.5, "max_grad_norm": 0.5},
    ),
    "adam": ("optimiser_epsilon", {"optimiser_epsilon": 1e-2}),
    "adamw": ("weight_decay", {"weight_decay": 1e-2}),
}


def test_every_number_changes_what_is_learnt_or_done_where_it_is_live():
    seen = {"epsilon"}  # below, in acting
    for optimiser, (fields, numbers) in LIVE.items():
        which = case(reward="team", mixer="sum", optimiser=optimiser)
        learn, learner = learning(which)
        batch = batch_of(which)

        def twice(hyper, learn=learn, learner=learner, batch=batch):
            after, _, _ = learn(learner, hyper, batch)
            after, _, feedback = learn(after, hyper, batch)
            return jax.tree.leaves((after.params, after.target, feedback))

        base = as_hyper(PLAIN.replace(priority_exponent=0.6, priority_epsilon=0.1, learning_rate=1e-2).replace(**numbers))
        usual = twice(base)
        for field in fields.split():
            changed = twice(base.replace(**{field: getattr(base, field) * jnp.float32(0.5)}))
            assert any(np.any(x != y) for x, y in zip(usual, changed, strict=True)), field
            seen.add(field)
    assert seen == {field.name for field in dataclasses.fields(QHyper)}


def test_a_schedule_may_stand_for_every_number():
    """A fifth of the run is done. The learning rate counts gradient steps: here the second of ten."""
    which = CASES["vdn"]
    learn, learner = learning(which)
    learner = learner.replace(optimiser=learner.optimiser.replace(count=jnp.int32(1)))
    fields = {field.name: getattr(PLAIN, field.name) for field in dataclasses.fields(QHyper)} | {"epsilon": 0.3}
    scheduled = QHyper(**{name: Schedule(x, x * 3.0) for name, x in fields.items()})
    now = QHyper(**{name: x * 1.4 for name, x in fields.items()})
    got, expected = (learn(learner, as_hyper(hyper), batch_of(which)) for hyper in (scheduled, now))
    jax.tree.map(lambda x, y: close(x, y, rtol=1e-4, atol=1e-5), got, expected)


def test_what_is_logged():
    learn, learner = learning(CASES["dqn"])
    _, scalars, _ = learn(learner, as_hyper(PLAIN), batch_of(CASES["dqn"]))
    assert set(scalars) == set("loss td_error q_mean target_mean epsilon buffer_fill grad_norm learning_rate".split())
    assert all(x.shape == () and x.dtype == jnp.float32 and np.isfinite(x) for x in scalars.values())
    assert scalars["learning_rate"] == 1.0
    close(scalars["epsilon"], 1.0 - 0.95 * 0.4, rtol=1e-6)  # the fifth of the run, of a fall over its half
    close(scalars["buffer_fill"], 3 / 8, rtol=1e-6)  # the third push of eight


def test_ring_learning_start_and_epsilon_are_the_same_for_every_member():
    """Two seeds side by side: the same slots are written, the same steps are taken, and only what is in them differs."""
    memory = {"capacity": 96, "batch_size": 8, "learning_starts": 64, "updates": 2, "target_period": 3}
    loop = small_loop(Drift(), "dqn", {"hidden": (4,)}, memory, num_envs=4, rollout_length=8, iterations=5, points=1, calls=5)
    hyper = as_hyper(QHyper())
    init = compiled(jax.vmap(loop.init, in_axes=(0, None)))
    advance = compiled(jax.vmap(loop.advance, in_axes=(0, None, None)))

    def rows(state):
        return np.asarray(state.memory.steps.observation)

    state = init(jax.vmap(jax.random.key)(jnp.arange(2)), hyper)
    assert loop.acting.algorithm.warmup == 1, "64 steps are two rollouts, and the second is that of the first iteration"
    same(np.any(rows(state) != 0, axis=(2, 3, 4)).sum(1), [8, 8])
    same(state.learner.optimiser.count, [0, 0])
    for iteration in range(5):
        before = rows(state)
        state, curves = advance(state, hyper, Clock(jnp.int32(iteration), jnp.int32(5)))
        written = np.any(rows(state) != before, axis=(2, 3, 4))
        slot = (iteration + 1) % 3
        same(written, np.tile(np.arange(24) // 8 == slot, (2, 1)))
        same(state.learner.optimiser.count, [2 * (iteration + 1)] * 2)
        close(curves["buffer_fill"][:, 0], min((iteration + 2) / 3, 1.0), rtol=1e-6)
        close(curves["epsilon"][:, 0], max(1.0 - 0.95 * iteration / 2.5, 0.05), rtol=1e-5)
    kernels = [leaf for leaf in jax.tree.leaves(state.learner.params) if leaf.ndim > 2]
    assert all(np.all(np.any(x[0] != x[1])) for x in (*kernels, state.memory.steps.observation))


# ---- what is refused

WRONG = {
    "mixer": ("qmix", None),
    "mixer_embed": (0, 2.5),
    "mixer_hidden": (-1, True),
    "double": ("yes", 1),
    "n_steps": (0, 1.5),
    "prioritised": ("false", 0),
    "capacity": (0, 1e4),
    "batch_size": (0, "8"),
    "updates": (0, True),
    "learning_starts": (0, -5),
    "target_period": (0, 0.5),
    "burn_in": (-1, 1.0),
    "loss": ("l2", 1),
    "optimiser": ("adm",),
}


@pytest.mark.parametrize("field", WRONG)
def test_wrong_settings_are_refused_in_one_line(field):
    assert set(WRONG) == {field.name for field in dataclasses.fields(QConfig)} - {"group_steps"}
    for value in WRONG[field]:
        with pytest.raises(ConfigError) as caught:
            QConfig(**{field: value})
        message = str(caught.value)
        assert f"algorithm.{field}" in message and repr(value) in message and "\n" not in message


MISFITS = {  # of 12 environments and rollouts of 6 steps: what the message must say
    "a batch does not fit": (case(capacity=72, batch_size=73), "batch_size: 73.*72.*capacity = 72"),
    "no batch of windows": (case(recurrent=True, capacity=144, batch_size=25), "batch_size: 25.*24.*capacity = 144"),
    "no multiple": (case(capacity=100), "capacity: 100.*72.*choose 72 or 144"),
    "longer than stored": (case(capacity=72, n_steps=7), "n_steps: 7.*6 steps"),
    "longer than a window": (case(recurrent=True, n_steps=5, burn_in=2), "n_steps: 5.*4 steps of a window"),
    "nothing to warm up": (case(burn_in=1), "burn_in: only a recurrent network.*gru"),
    "nothing left": (case(recurrent=True, burn_in=6), "n_steps: 1.*0 steps of a window|burn_in: 6.*6"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_together_is_refused_before_anything_is_compiled(name):
    which, message = MISFITS[name]
    with pytest.raises(ConfigError, match=message) as caught:
        algorithm_of(which)
    assert "\n" not in str(caught.value)


def test_devices_that_do_not_divide_the_batch_or_the_memory_are_refused():
    for which, field in ((case(batch_size=9), "batch_size"), (case(capacity=72 * 3), "capacity")):
        with pytest.raises(ConfigError, match=f"algorithm.{field}"):
            algorithm_of(which, across=simulated_devices(2))

"""PQN: its λ-returns and its step against loops over a rollout, minibatches, the dead, numbers, and what it refuses."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms import pqn
from agentgym_jax.algorithms.pqn import PQNConfig, PQNHyper
from agentgym_jax.checks import ConfigError
from agentgym_jax.ops.schedules import Schedule, as_hyper
from agentgym_jax.types import Batch, Clock, Sizes
from tests.algorithms.value_windows import MIXED, Slow, host, models_of, slopes, spec_of, spoilt, windows
from tests.support import compiled

CLOCK = Clock(jnp.int32(2), jnp.int32(10))
SIZES = Sizes(num_envs=12, rollout_length=6)
PLAIN = PQNHyper(learning_rate=1.0, gamma=0.9, trace_decay=0.7, epsilon=0.3, reward_scale=1.5, max_grad_norm=1e9, momentum=0.0)
ONCE = {"epochs": 1, "minibatches": 1, "optimiser": "sgd"}
CASES = {  # agents, reward, mixer, recurrent
    "one agent": (1, "individual", "none", False),
    "individual": (3, "individual", "none", False),
    "team": (3, "team", "none", False),
    "vdn": (2, "team", "sum", False),
    "hypernet": (2, "team", "hypernet", False),
    "recurrent, individual": (2, "individual", "none", True),
    "recurrent, team": (2, "team", "none", True),
    "recurrent vdn": (2, "team", "sum", True),
}
close, same = np.testing.assert_allclose, np.testing.assert_array_equal


def algorithm_of(name: str, sizes: Sizes = SIZES, **config: Any):
    agents, reward, mixer, recurrent = CASES[name]
    settings = PQNConfig(**(MIXED | {"mixer": mixer} | ONCE | config))
    return pqn.make(spec_of(agents, reward), settings, models_of(mixer, agents, recurrent), sizes)


@functools.cache
def learning(name: str, **config: Any):
    """A compiled `learn`, (learner, hyper, batch) -> learner, scalars; and a learner to begin with."""
    algorithm = algorithm_of(name, **config)
    learner = compiled(algorithm.init)(jax.random.key(0), as_hyper(PLAIN))
    draw = np.random.default_rng(1)
    params = jax.tree.map(lambda x: x + jnp.float32(0.5 * draw.normal(size=x.shape)), learner.params)
    learn = compiled(lambda learner, hyper, batch: algorithm.learn(learner, hyper, batch, jax.random.key(9), CLOCK)[:2])
    return learn, learner.replace(params=params)


def batch_of(name: str, survivor: bool = False) -> Batch:
    """A rollout with what is recorded of it."""
    agents, reward, mixer, recurrent = CASES[name]
    batch = windows(SIZES.rollout_length, SIZES.num_envs, agents, reward, recurrent, survivor)
    left = {} if mixer == "hypernet" else {"world": None, "next_world": None}
    return Batch(batch.steps.replace(action_mask=None, **left), batch.carry)


def oracle(name: str, learner: Any, batch: Batch) -> dict[str, Any]:
    """λ-returns from the last step backwards, each an average of all n-step returns as far as the trace goes."""
    _, reward, mixer, _ = CASES[name]
    steps, params = host(batch.steps), host(learner.params)
    slow = Slow(steps, host(batch.carry), reward, mixer)
    here, there = slow.run(params)
    chosen, following, weight = slow.chosen(params, here), slow.following(params, there, there), slow.weight()
    target = np.zeros_like(chosen)
    for b, a in np.ndindex(chosen.shape[1:]):
        for t in reversed(range(len(chosen))):
            future = following[t, b, a]
            if slow.goes_on(t, b, a):
                future = (1 - PLAIN.trace_decay) * future + PLAIN.trace_decay * target[t + 1, b, a]
            target[t, b, a] = PLAIN.reward_scale * steps.reward[t, b, a] + PLAIN.gamma * slow.discount(t, b, a) * future

    def loss(moved):
        error = slow.chosen(moved, slow.run(moved)[0]) - target
        return (error**2 / 2 * weight).sum() / weight.sum()

    rows = weight > 0
    return {
        "loss": loss(params),
        "gradient": slopes(loss, params),
        "td_error": np.abs(chosen - target)[rows].mean(),
        "q_mean": chosen[rows].mean(),
        "target_mean": target[rows].mean(),
        "explained_variance": 1 - (target - chosen)[rows].var() / target[rows].var(),
        "target": target,
        "weight": weight,
        "chosen": chosen,
    }


@pytest.mark.parametrize("name", CASES)
def test_one_full_step_is_the_gradient_of_the_textbook_loss(name):
    """One epoch, one minibatch, plain gradient descent by 1: targets stand still, ends, deaths and slots cut them."""
    learn, learner = learning(name)
    batch = batch_of(name)
    expected = oracle(name, learner, batch)
    after, scalars = learn(learner, as_hyper(PLAIN), batch)
    for scalar in ("loss", "td_error", "q_mean", "target_mean", "explained_variance"):
        close(scalars[scalar], expected[scalar], rtol=1e-4, atol=1e-5, err_msg=scalar)
    gradient = jax.tree.map(lambda old, new: np.float64(old) - new, learner.params, after.params)
    jax.tree.map(lambda x, y: close(x, y, rtol=2e-3, atol=2e-5), gradient, expected["gradient"])


@pytest.mark.parametrize("name", ["individual", "team", "hypernet", "recurrent vdn"])
def test_every_row_has_the_lambda_return_of_its_own_episode(name):
    algorithm = algorithm_of(name)
    _, learner = learning(name)
    batch = batch_of(name)
    expected = oracle(name, learner, batch)
    rows, values = compiled(algorithm.learn.__self__._rows)(learner.params, as_hyper(PLAIN), batch)
    counts = expected["weight"] > 0
    same(rows.weight, expected["weight"])
    close(np.asarray(rows.target)[counts], expected["target"][counts], rtol=1e-4, atol=1e-5)
    close(np.asarray(values)[counts], expected["chosen"][counts], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("vdn", {"epochs": 3, "minibatches": 4}),
        ("vdn", {"epochs": 2, "minibatches": 8, "permutation": "exact"}),
        ("vdn", {"epochs": 2, "minibatches": 3, "minibatch_by": "environment"}),
        ("recurrent vdn", {"epochs": 2, "minibatches": 6}),
    ],
)
def test_minibatches_of_an_epoch_are_the_whole_rollout_with_its_agents_and_windows_together(name, config):
    """While parameters stand still the minibatches' means average to those of the whole, however rows are shuffled."""
    still, batch = as_hyper(PLAIN.replace(learning_rate=0.0)), batch_of(name)
    learn, learner = learning(name, **config)
    whole, same_learner = learning(name)
    jax.tree.map(same, learner.params, same_learner.params)
    (after, scalars), (_, expected) = learn(learner, still, batch), whole(learner, still, batch)
    for scalar in ("loss", "td_error", "q_mean", "target_mean", "explained_variance"):
        close(scalars[scalar], expected[scalar], rtol=1e-4, err_msg=scalar)
    assert after.optimiser.count == config["epochs"] * config["minibatches"]
    assert scalars["grad_norm"] > expected["grad_norm"] * 1.001, "all minibatches were alike"


def test_targets_are_reckoned_once_before_the_epochs():
    """Two passes with the whole rollout: the second step is towards the targets of the parameters that acted."""
    learn, learner = learning("vdn", epochs=2)
    batch, hyper = batch_of("vdn"), as_hyper(PLAIN.replace(learning_rate=0.05))
    expected = oracle("vdn", learner, batch)
    slow, params = Slow(host(batch.steps), (), "team", "sum"), host(learner.params)

    def loss(moved):
        return ((slow.chosen(moved, slow.run(moved)[0]) - expected["target"]) ** 2 / 2).mean()

    for _ in range(2):
        params = jax.tree.map(lambda x, slope: x - 0.05 * slope, params, slopes(loss, params))
    after, _ = learn(learner, hyper, batch)
    close(after.params["network"]["w"], params["network"]["w"], rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if name != "one agent"])
def test_what_dead_agents_hold_changes_nothing(name):
    """Garbage in all that they saw, did and got; with memory somebody lives, else what the dead saw would count later."""
    learn, learner = learning(name)
    batch, reward = batch_of(name, survivor="recurrent" in name), CASES[name][1]
    usual = learn(learner, as_hyper(PLAIN), batch)
    for size in (1.0, 1e3, 1e30):
        jax.tree.map(same, learn(learner, as_hyper(PLAIN), spoilt(batch, reward, size, paid=size)), usual)


def test_a_dead_agents_reward_may_be_anything():
    learn, learner = learning("individual")
    batch = batch_of("individual")
    got = learn(learner, as_hyper(PLAIN), spoilt(batch, "individual", 1.0, paid=np.nan))
    jax.tree.map(same, got, learn(learner, as_hyper(PLAIN), batch))


@pytest.mark.parametrize("name", ["team", "hypernet"])
def test_values_of_illegal_actions_reach_no_target(name):
    """Action 2 is done and legal nowhere, and its value is raised from about 1 to about 1e9."""
    learn, learner = learning(name)
    batch = batch_of(name)
    mask = batch.steps.next_action_mask.at[..., 2].set(False)
    steps = batch.steps.replace(action=batch.steps.action % 2, next_action_mask=mask)

    def outcome(size):
        w = learner.params["network"]["w"].at[:, 2].set(size)
        start = learner.replace(params=learner.params | {"network": {"w": w}})
        after, scalars = learn(start, as_hyper(PLAIN), Batch(steps, batch.carry))
        return after.params["network"]["w"][:, :2], after.params["mixer"], scalars

    jax.tree.map(same, outcome(1.0), outcome(1e9))


LIVE = {
    "sgd": ("learning_rate gamma trace_decay reward_scale max_grad_norm momentum", {"momentum": 0.5, "max_grad_norm": 0.5}),
    "radam": ("optimiser_epsilon", {"optimiser_epsilon": 1e-2, "learning_rate": 1e-2}),
    "adamw": ("weight_decay", {"weight_decay": 1e-2, "learning_rate": 1e-2}),
}


def test_every_number_changes_what_is_learnt_or_done_where_it_is_live():
    seen, batch = {"epsilon"}, batch_of("vdn")  # ε: see the tests of acting
    for optimiser, (fields, numbers) in LIVE.items():
        learn, learner = learning("vdn", epochs=8, optimiser=optimiser)
        learner = learner.replace(optimiser=algorithm_of("vdn", optimiser=optimiser).init(jax.random.key(0), PLAIN).optimiser)
        base = as_hyper(PLAIN.replace(**numbers))
        usual = learn(learner, base, batch)[0].params["network"]["w"]
        for field in fields.split():
            changed = learn(learner, base.replace(**{field: getattr(base, field) * jnp.float32(0.5)}), batch)[0]
            assert np.any(usual != changed.params["network"]["w"]), field
            seen.add(field)
    assert seen == {field.name for field in dataclasses.fields(PQNHyper)}


def test_a_schedule_may_stand_for_every_number():
    """A fifth of the run is done. The learning rate counts gradient steps: here the second of ten."""
    learn, learner = learning("vdn")
    learner = learner.replace(optimiser=learner.optimiser.replace(count=jnp.int32(1)))
    fields = {field.name: getattr(PLAIN, field.name) for field in dataclasses.fields(PQNHyper)}
    scheduled = PQNHyper(**{name: Schedule(x, x * 3.0) for name, x in fields.items()})
    now = PQNHyper(**{name: x * 1.4 for name, x in fields.items()})
    got, expected = (learn(learner, as_hyper(hyper), batch_of("vdn")) for hyper in (scheduled, now))
    jax.tree.map(lambda x, y: close(x, y, rtol=1e-4, atol=1e-5), got, expected)


def test_what_is_logged():
    learn, learner = learning("vdn")
    _, scalars = learn(learner, as_hyper(PLAIN), batch_of("vdn"))
    named = "loss td_error q_mean target_mean explained_variance epsilon grad_norm learning_rate"
    assert set(scalars) == set(named.split()) and scalars["epsilon"] == np.float32(0.3)
    assert all(x.shape == () and x.dtype == jnp.float32 and np.isfinite(x) for x in scalars.values())


WRONG = {
    "mixer": ("vdn", 1),
    "mixer_embed": (0, "32"),
    "mixer_hidden": (-1, 0.5),
    "epochs": (0, 2.0),
    "minibatches": (-4, False),
    "minibatch_by": ("agent", None),
    "permutation": ("sorted",),
    "optimiser": ("lion",),
}


@pytest.mark.parametrize("field", WRONG)
def test_wrong_settings_are_refused_in_one_line(field):
    assert set(WRONG) == {field.name for field in dataclasses.fields(PQNConfig)} - {"group_steps"}
    for value in WRONG[field]:
        with pytest.raises(ConfigError, match=f"algorithm.{field}: .*{value}") as caught:
            PQNConfig(**{field: value})
        assert len(str(caught.value).splitlines()) == 1


def test_minibatches_that_do_not_fit_are_refused_with_the_numbers():
    with pytest.raises(ConfigError, match="minibatches: 5 does not divide .*num_envs · train.rollout_length = 72"):
        algorithm_of("vdn", minibatches=5)
    with pytest.raises(ConfigError, match="minibatches: 8 does not divide train.num_envs = 12"):
        algorithm_of("recurrent vdn", minibatches=8)
    with pytest.raises(ConfigError, match="minibatch_by: `step`.*`environment`"):
        algorithm_of("recurrent vdn", minibatch_by="step")

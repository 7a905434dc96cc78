"""PPO: what its loss sees, that every number counts, and what it refuses."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms import ppo
from agentgym_jax.algorithms.ppo import PPOConfig, PPOHyper
from agentgym_jax.checks import ConfigError
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.ops import losses
from agentgym_jax.ops.schedules import Schedule, as_hyper
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.types import Batch, Clock, Sizes
from envs_jax.spaces import Box, MultiDiscrete
from tests.support import Story, compiled

SIZES = Sizes(num_envs=4, rollout_length=8)
CLOCK = Clock(jnp.int32(2), jnp.int32(10))
MLP = NetworkConfig(hidden=(8,))
GRU = NetworkConfig(torso="gru", hidden=(8,), recurrent=8)
BOX = Box(-1, 1, (2,))
EMPTY = {"actor": (), "critic": ()}  # the carry of feed-forward networks
TEAM, ALONE = Story(reward="team", world=True), Story(reward="individual", world=True)
close = np.testing.assert_allclose


def build(env, network=MLP, config=PPOConfig(), sizes=SIZES, **kwargs):  # noqa: B008  a frozen dataclass
    return ppo.make(env.spec, config, ppo.networks(network, env.spec, config), sizes, **kwargs)


def parts(algorithm):
    """The PPO behind the functions."""
    return algorithm.learn.__self__


NORMALISED = {"normalise_observations": True, "normalise_rewards": True}
FIRST_RATIO = {  # env, network, config, tolerance
    "mlp, central": (ALONE, MLP, {"critic": "central"}, 1e-5),
    "mlp, heads, shared trunk": (Story(action_space=MultiDiscrete((2, 3))), dataclasses.replace(MLP, trunk="shared"), {}, 1e-5),
    "mlp, squashed": (Story(action_space=BOX, reward="team"), MLP, {"distribution": "tanh_normal"}, 1e-4),
    "gru, central": (TEAM, GRU, {"critic": "central"}, 1e-4),
    "gru, continuous": (Story(action_space=BOX), GRU, {}, 1e-4),
    "gru, shared trunk, own parameters": (ALONE, dataclasses.replace(GRU, trunk="shared", sharing="agent"), {}, 1e-4),
}


@functools.cache
def iterations(case):
    """(learner before, batch, scalars) of each of three iterations, all statistics normalised and taken in after each."""
    env, network, config, _ = FIRST_RATIO[case]
    algorithm = build(env, network, PPOConfig(**NORMALISED, **config, epochs=2, minibatches=2))
    acting = make_acting(env, fixed(()), algorithm, SIZES, "fresh")
    hyper = as_hyper(PPOHyper(learning_rate=1e-2))

    @compiled
    def iterate(learner, actor, key):
        key_unroll, key_learn = jax.random.split(key)
        actor, trajectory, _ = unroll(acting, learner, hyper, actor, (), key_unroll, CLOCK, False)
        batch = Batch(trajectory.steps, trajectory.carry)
        after, scalars, _ = algorithm.learn(learner, hyper, batch, key_learn, CLOCK)
        after, carry = algorithm.observe(after, hyper, trajectory, actor.carry, CLOCK)
        return after, actor.replace(carry=carry), batch, scalars

    @compiled
    def begin(key):
        return algorithm.init(key, hyper), start(acting, (), key)

    learner, actor = begin(jax.random.key(0))
    out = []
    for key in jax.random.split(jax.random.key(1), 3):
        after, actor, batch, scalars = iterate(learner, actor, key)
        out.append((learner, batch, scalars))
        learner = after
    return out


@pytest.mark.parametrize("case", FIRST_RATIO)
def test_the_first_minibatch_sees_the_policy_that_acted(case):
    """At the third iteration, with statistics that have moved, parameters that have learnt and ends inside the rollout."""
    learner, batch, scalars = iterations(case)[-1]
    last = np.asarray(batch.steps.last)
    assert last[:-1].any() and not np.asarray(batch.steps.alive).all()
    assert np.all(np.asarray(learner.observation.count) > 20) and float(np.abs(learner.observation.mean).max()) > 0.1
    assert float(scalars["first_ratio_error"]) < FIRST_RATIO[case][-1]
    assert float(scalars["approx_kl"]) > 1e-6, "the policy did not move at all, so the first ratio says nothing"
    assert all(np.isfinite(x) and x.shape == () for x in scalars.values())


@functools.cache
def rollout():
    """A batch made by the policy that `learning` starts with, raw, with what local and central critics need."""
    _, batch, _ = iterations("mlp, central")[0]
    assert float(jnp.abs(batch.steps.observation).max()) < 10  # so normalisation, which had no data yet, changed nothing
    return Batch(batch.steps, EMPTY)


@functools.cache
def learning(config, sizes=SIZES, env=ALONE):
    """A compiled `learn` from the start: (hyper, batch) -> parameters, scalars."""
    algorithm = build(env, MLP, config, sizes)

    @compiled
    def learn(hyper, batch):
        learner = algorithm.init(jax.random.key(0), hyper)
        learner, scalars, _ = algorithm.learn(learner, hyper, batch, jax.random.key(7), CLOCK)
        return learner.params, scalars

    return learn


def differ(x, y):
    return any(bool(np.any(a != b)) for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True))


def equal(x, y):
    jax.tree.map(np.testing.assert_array_equal, x, y)


LIVE = {
    "adam": ("learning_rate gamma gae_lambda clip entropy value max_grad_norm optimiser_epsilon", 1e-2),
    "adamw": ("weight_decay", 1e-2),
    "sgd": ("momentum", 1e-1),
}


def test_every_number_changes_the_learner_where_it_is_live():
    batch = rollout()
    seen = set()
    for optimiser, (fields, rate) in LIVE.items():
        learn = learning(PPOConfig(optimiser=optimiser, epochs=2, minibatches=2))
        base = as_hyper(PPOHyper(learning_rate=rate))
        usual, _ = learn(base, batch)
        for field in fields.split():
            changed, _ = learn(base.replace(**{field: getattr(base, field) * jnp.float32(0.5)}), batch)
            assert differ(usual, changed), field
            seen.add(field)
    assert seen == {field.name for field in dataclasses.fields(PPOHyper)}


def test_a_schedule_may_stand_for_every_number():
    """Constant ones equal the numbers; one that has half run out equals its middle."""
    batch = rollout()
    learn = learning(PPOConfig(epochs=2, minibatches=2))
    numbers = PPOHyper(learning_rate=1e-2)
    fields = {field.name: getattr(numbers, field.name) for field in dataclasses.fields(PPOHyper)}
    constant = PPOHyper(**{name: Schedule(x, x * 3.0) for name, x in fields.items()})
    constant = constant.replace(learning_rate=Schedule(1e-2, 1e-2))
    now = {name: x * 1.4 for name, x in fields.items()} | {"learning_rate": 1e-2}  # a fifth of the run is done
    scheduled, _ = learn(as_hyper(constant), batch)
    plain, _ = learn(as_hyper(PPOHyper(**now)), batch)
    jax.tree.map(lambda x, y: close(x, y, rtol=1e-4, atol=1e-6), scheduled, plain)


def test_what_dead_rows_hold_changes_nothing():
    """Individual reward: garbage in observation, action, reward and log-probability of the dead leaves the learner as it is."""
    batch = rollout()
    steps = batch.steps.replace(action_mask=())  # which would keep the policy's gradient from the dead by itself
    dead = ~np.asarray(steps.alive)
    assert dead.any()
    draw = np.random.default_rng(0)

    def spoil(x, garbage):
        shape = dead.shape + (1,) * (x.ndim - dead.ndim)
        return jnp.where(dead.reshape(shape), jnp.asarray(garbage, x.dtype), x)

    learn = learning(PPOConfig(epochs=2, minibatches=2))
    hyper = as_hyper(PPOHyper(learning_rate=1e-2))
    clean_params, clean_scalars = learn(hyper, Batch(steps, EMPTY))
    for size in (1.0, 1e3, 1e30):
        spoilt = steps.replace(
            observation=spoil(steps.observation, size * draw.normal(size=steps.observation.shape)),
            next_observation=jnp.where(
                np.asarray(steps.next_alive)[..., None],
                steps.next_observation,
                jnp.float32(size * draw.normal(size=steps.next_observation.shape)),
            ),
            action=spoil(steps.action, draw.integers(0, 3, size=dead.shape)),
            reward=spoil(steps.reward, size * draw.normal(size=dead.shape)),
            extras={"log_prob": spoil(steps.extras["log_prob"], size * draw.normal(size=dead.shape))},
        )
        params, scalars = learn(hyper, Batch(spoilt, batch.carry))
        equal(params, clean_params)
        equal(scalars, clean_scalars)


def test_one_full_step_is_the_gradient_of_the_textbook_loss():
    """One epoch, one minibatch, plain gradient descent, against losses and GAE written out by hand."""
    batch = rollout()
    config = PPOConfig(epochs=1, minibatches=1, optimiser="sgd", clip_value=False)
    algorithm, steps = build(ALONE, MLP, config), batch.steps
    hyper = PPOHyper(learning_rate=0.1, max_grad_norm=1e9, momentum=0.0)
    params = compiled(algorithm.init)(jax.random.key(0), as_hyper(hyper)).params
    model, alive = parts(algorithm).model, np.asarray(steps.alive)

    def outputs(params, observation):
        result, _ = model.apply(params, EMPTY, {"observation": observation, "world": ()}, steps.reset)
        return jnp.where(steps.action_mask, result.policy, -1e9), result.value

    value = np.asarray(outputs(params, steps.observation)[1])
    next_value = np.asarray(outputs(params, steps.next_observation)[1])
    advantage, following = np.zeros(alive.shape), np.zeros(alive.shape[1:])
    for t in reversed(range(SIZES.rollout_length)):
        gamma = hyper.gamma * np.asarray(steps.discount[t])
        new_agent = steps.reset[t + 1] if t + 1 < SIZES.rollout_length else False
        goes_on = ~(np.asarray(steps.last[t])[:, None] | np.asarray(new_agent))
        delta = steps.reward[t] + gamma * next_value[t] - value[t]
        advantage[t] = following = delta + gamma * hyper.gae_lambda * goes_on * following
    target = value + advantage
    standard = (advantage - advantage[alive].mean()) / advantage[alive].std()

    @compiled
    @jax.grad
    def gradient(params):
        logits, value = outputs(params, steps.observation)
        log_p = jax.nn.log_softmax(logits)
        chosen = jnp.take_along_axis(log_p, steps.action[..., None], -1)[..., 0]
        entropy = -jnp.sum(jnp.exp(log_p) * log_p, -1)
        row = -standard * jnp.exp(chosen - steps.extras["log_prob"])
        row = row + hyper.value * 0.5 * jnp.square(value - target) - hyper.entropy * entropy
        return jnp.sum(jnp.where(alive, row, 0.0)) / alive.sum()

    expected = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient(params))
    got, scalars = learning(config)(as_hyper(hyper), batch)
    jax.tree.map(lambda x, y: close(x, y, rtol=1e-3, atol=1e-5), got, expected)
    close(scalars["value_mean"], value[alive].mean(), rtol=1e-4)
    close(scalars["advantage_std"], advantage[alive].std(), rtol=1e-4)
    close(scalars["explained_variance"], 1 - np.var(advantage[alive]) / np.var(target[alive]), rtol=1e-3, atol=1e-4)
    assert scalars["clip_fraction"] == 0.0


def test_a_team_has_one_value_and_one_discount():
    """What credit assignment gets: dead rows hold the mean of the living, before and after each step."""
    seen = {}

    def spy(steps, values, next_values, policy, hyper):
        seen.update(steps=steps, values=values, next_values=next_values)
        return jnp.zeros_like(values), jnp.zeros_like(values)

    batch = rollout()
    steps = batch.steps.replace(discount=batch.steps.discount.at[0, 0].set(jnp.float32([0.0, 1.0])))
    algorithm = build(TEAM, MLP, PPOConfig(epochs=1, minibatches=1), advantages=spy)
    learner = compiled(algorithm.init)(jax.random.key(0), as_hyper(PPOHyper()))
    parts(algorithm)._rows(learner, PPOHyper(), Batch(steps, EMPTY))
    for values, alive in ((seen["values"], steps.alive), (seen["next_values"], steps.next_alive)):
        values, alive = np.asarray(values), np.asarray(alive)
        assert (~alive[..., 1]).any()
        np.testing.assert_array_equal(values[..., 1][~alive[..., 1]], values[..., 0][~alive[..., 1]])
        assert np.all(values[..., 1][alive[..., 1]] != values[..., 0][alive[..., 1]])
    np.testing.assert_array_equal(seen["steps"].discount[0, 0], 1.0)


def test_a_central_critics_memory_is_cut_by_a_new_episode_and_not_by_one_new_agent():
    model = parts(build(TEAM, GRU, PPOConfig(critic="central"))).model
    draw = np.random.default_rng(0)
    inputs = {"observation": jnp.float32(draw.normal(size=(4, 3, 2, 6))), "world": jnp.float32(draw.normal(size=(4, 3, 3)))}
    params, apply = compiled(model.init)(jax.random.key(0)), compiled(model.apply)
    nobody = np.zeros((4, 3, 2), bool)
    one, everybody = nobody.copy(), nobody.copy()
    one[2, :, 1] = everybody[2] = True
    usual, renewed, ended = (apply(params, model.carry((3, 2)), inputs, reset)[0] for reset in (nobody, one, everybody))
    np.testing.assert_array_equal(renewed.value, usual.value)
    np.testing.assert_array_equal(ended.value[:2], usual.value[:2])
    assert np.all(np.asarray(ended.value)[2:] != np.asarray(usual.value)[2:])
    assert np.all(np.any(renewed.policy[2:, :, 1] != usual.policy[2:, :, 1], axis=-1))
    np.testing.assert_array_equal(renewed.policy[:, :, 0], usual.policy[:, :, 0])


@pytest.mark.parametrize("permutation", ["affine", "exact"])
@pytest.mark.parametrize("by", ["step", "environment"])
def test_an_epoch_takes_every_row_once_and_keeps_agents_and_windows_together(permutation, by):
    """Rows are marked 100 t + 10 n + a; every minibatch must hold whole agents, and whole windows in order of time."""
    sizes = Sizes(num_envs=8, rollout_length=6)
    algorithm = parts(build(ALONE, MLP, PPOConfig(epochs=3, minibatches=4, minibatch_by=by, permutation=permutation), sizes))
    t, n, a = np.indices((6, 8, 2))
    marks = jnp.float32(100 * t + 10 * n + a)
    rows = ppo.Rows(**{field.name: marks for field in dataclasses.fields(ppo.Rows)})
    order = algorithm.minibatches.order(jax.random.key(3))
    assert len(order) == 12
    epochs = []
    for index in order:
        part, carry = algorithm.minibatches.gather(rows, {"memory": marks[0]} if by == "environment" else (), index)
        assert all(np.array_equal(leaf, part.target) for leaf in jax.tree.leaves(part))
        got = np.asarray(part.target)
        assert got.shape == ((6, 2, 2) if by == "environment" else (1, 12, 2))
        np.testing.assert_array_equal(got[..., 1] - got[..., 0], 1)
        if by == "environment":
            np.testing.assert_array_equal(np.diff(got, axis=0), 100)
            np.testing.assert_array_equal(got[0], carry["memory"])
        epochs.append(got.ravel())
    for epoch in np.split(np.array(epochs), 3):
        np.testing.assert_array_equal(np.sort(epoch.ravel()), np.sort(np.ravel(marks)))
    assert not np.array_equal(epochs[0], epochs[4])


WRONG = {
    "epochs": (0, 1.5, True),
    "minibatches": (0, -1, "4"),
    "minibatch_by": ("enviroment",),
    "permutation": ("random",),
    "distribution": ("tanh",),
    "critic": ("centralised",),
    "advantages": ("gea",),
    "normalise_advantages": ("no",),
    "clip_value": (0.2,),
    "optimiser": ("adm",),
    "normalise_observations": ("false",),
    "normalise_rewards": (1,),
    "group_steps": ("guard", 3),
}


@pytest.mark.parametrize("field", WRONG)
def test_wrong_choices_are_refused_in_one_line_that_names_field_and_value(field):
    assert set(WRONG) == {field.name for field in dataclasses.fields(PPOConfig)}
    for value in WRONG[field]:
        with pytest.raises(ConfigError) as caught:
            PPOConfig(**{field: value})
        message = str(caught.value)
        assert f"algorithm.{field}" in message and repr(value) in message and "\n" not in message


def test_a_near_miss_is_answered_with_what_was_meant():
    with pytest.raises(ConfigError, match="did you mean 'environment'"):
        PPOConfig(minibatch_by="enviroment")


@pytest.mark.parametrize(
    "network, by, sizes, numbers",
    [
        (MLP, "step", Sizes(10, 7), ("4", "70")),
        (MLP, "environment", Sizes(10, 8), ("4", "10")),
        (GRU, "auto", Sizes(6, 8), ("4", "6")),
    ],
)
def test_minibatches_that_do_not_divide_are_refused_with_both_numbers(network, by, sizes, numbers):
    with pytest.raises(ConfigError, match=f"minibatches: {numbers[0]} does not divide .*{numbers[1]}"):
        build(ALONE, network, PPOConfig(minibatch_by=by), sizes)


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ConfigError, match="minibatch_by: `step`.*`environment`"):
        build(ALONE, GRU, PPOConfig(minibatch_by="step"))
    with pytest.raises(ConfigError, match="trunk.*central"):
        build(ALONE, dataclasses.replace(MLP, trunk="shared"), PPOConfig(critic="central"))


def test_a_minibatch_of_one_row_stays_finite():
    """32 steps in 32 minibatches: advantages have no deviation, and nothing is NaN."""
    batch = rollout()
    one_agent = Story(agents=1)
    pick = {"observation", "action", "reward", "discount", "alive", "next_alive", "reset", "action_mask", "next_observation"}
    steps = batch.steps.replace(**{name: getattr(batch.steps, name)[:, :, :1] for name in pick})
    steps = steps.replace(extras=jax.tree.map(lambda x: x[:, :, :1], steps.extras))
    params, scalars = learning(PPOConfig(epochs=1, minibatches=32), env=one_agent)(as_hyper(PPOHyper()), Batch(steps, EMPTY))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((params, scalars)))
    assert losses.standardise(jnp.float32([3.0]), jnp.ones(1)) == 0.0

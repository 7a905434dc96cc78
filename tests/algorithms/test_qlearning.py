"""Q-learning from replay: loss, gradient and priorities against loops over windows, masks, the dead, the target network."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms.qlearning import QHyper
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.types import Batch
from tests.algorithms.q_cases import CASES, CLOCK, COUNT, PLAIN, Case, algorithm_of, batch_of, case, learning
from tests.algorithms.value_windows import Slow, host, slopes, spoilt
from tests.support import compiled, simulated_devices

close, same = np.testing.assert_allclose, np.testing.assert_array_equal


def oracle(case: Case, learner: Any, batch: Batch, hyper: QHyper = PLAIN) -> dict[str, Any]:
    """Loss, its gradient, errors, targets and priorities, written out."""
    config, steps = case.settings, host(batch.steps)
    params, behind = host(learner.params), host(learner.target)
    slow = Slow(steps, host(batch.carry), case.reward, config.mixer)
    here, own_next = slow.run(params)
    _, their_next = slow.run(behind)
    following = slow.following(behind, their_next, own_next if config.double else their_next)
    first, rows = config.burn_in, len(steps.last) if case.recurrent else 1
    chosen, weight = slow.chosen(params, here), slow.weight()[first:rows]
    target = np.zeros_like(chosen)
    for s, b, a in np.ndindex(rows, *chosen.shape[1:]):
        reach, t = 1.0, s
        while True:
            target[s, b, a] += reach * hyper.reward_scale * steps.reward[t, b, a]
            reach *= hyper.gamma * slow.discount(t, b, a)
            if reach == 0 or t + 1 - s == config.n_steps or not slow.goes_on(t, b, a):
                break
            t += 1
        target[s, b, a] += reach * following[t, b, a]
    importance = host(batch.probability) ** -hyper.importance_exponent
    importance = (importance / importance.max())[None, :, None]

    def loss(moved):
        error = (slow.chosen(moved, slow.run(moved, first, params)[0]) - target)[first:rows]
        size = np.abs(error)
        each = np.where(size > 1, size - 0.5, error**2 / 2) if config.loss == "huber" else error**2 / 2
        return (each * importance * weight).sum() / weight.sum()

    error = np.abs(chosen - target)[first:rows]
    sizes = [error[:, b][weight[:, b] > 0] for b in range(COUNT)]
    return {
        "loss": loss(params),
        "gradient": slopes(loss, params),
        "td_error": (error * weight).sum() / weight.sum(),
        "q_mean": (chosen[first:rows] * weight).sum() / weight.sum(),
        "target_mean": (target[first:rows] * weight).sum() / weight.sum(),
        "priority": [0.9 * size.max() + 0.1 * size.mean() if len(size) else 0.0 for size in sizes],
    }


@pytest.mark.parametrize("name", CASES)
def test_loss_gradient_and_priorities_are_those_of_a_walk_through_the_windows(name):
    case, hyper = CASES[name], as_hyper(PLAIN)
    learn, learner = learning(case)
    batch = batch_of(case)
    expected = oracle(case, learner, batch)
    after, scalars, feedback = learn(learner, hyper, batch)
    for scalar in ("loss", "td_error", "q_mean", "target_mean"):
        close(scalars[scalar], expected[scalar], rtol=1e-4, atol=1e-5, err_msg=scalar)
    close(feedback, expected["priority"], rtol=1e-4, atol=1e-5)
    gradient = jax.tree.map(lambda old, new: np.float64(old) - new, learner.params, after.params)
    jax.tree.map(lambda x, y: close(x, y, rtol=2e-3, atol=2e-5), gradient, expected["gradient"])
    norm = np.sqrt(sum(np.sum(x**2) for x in jax.tree.leaves(expected["gradient"])))
    assert norm > 0.1
    close(scalars["grad_norm"], norm, rtol=1e-3)


def test_the_windows_of_these_tests_hold_everything_that_can_happen():
    for reward in ("individual", "team"):
        steps = host(batch_of(case(agents=2, reward=reward, recurrent=True)).steps)
        nobody, inside = ~steps.alive.any(-1), slice(1, -1)
        renewed = steps.reset[1:] & ~steps.last[:-1, :, None]
        ended = (steps.discount == 0).all(-1) & steps.last
        assert nobody[inside].any() and (nobody & ~steps.last).any() and renewed.any()
        assert ended[inside].any() and (steps.last & ~ended)[inside].any()
        assert (~steps.next_action_mask.any(-1)).any() and not steps.next_action_mask.all()
        assert (steps.reset[1:] & steps.alive[:-1])[~steps.last[:-1]].any() == (reward == "individual"), "reuse without a rest"


@pytest.mark.parametrize("steps", [1, 3])
def test_a_time_limit_bootstraps_and_a_true_end_does_not(steps):
    """Q is 2 everywhere, the first step pays 1 and ends the episode, γ 0.5: worth 1 at a true end, 2 at a limit."""
    which = case(agents=1, n_steps=steps)
    learn, learner = learning(which)
    two = {"network": {"w": jnp.full_like(learner.params["network"]["w"], 2.0)}, "mixer": {}}
    batch = batch_of(which)
    everywhere = jnp.ones_like(batch.steps.alive)
    unit = jnp.zeros_like(batch.steps.observation).at[..., 0].set(1.0)
    recorded = batch.steps.replace(
        observation=unit,
        next_observation=unit.at[1:].multiply(1e9),  # of the next episode, as are these rewards
        reward=jnp.ones_like(batch.steps.reward).at[1:].set(1e9),
        discount=jnp.ones_like(batch.steps.discount).at[0, ::2].set(0.0),
        last=jnp.zeros_like(batch.steps.last).at[0].set(True),
        reset=~everywhere.at[1:2].set(False),
        alive=everywhere,
        next_alive=everywhere,
    )
    hyper = as_hyper(PLAIN.replace(gamma=0.5, reward_scale=1.0))
    _, _, size = learn(learner.replace(params=two, target=two), hyper, dataclasses.replace(batch, steps=recorded))
    same(size, np.tile([1.0, 0.0], COUNT // 2))


@pytest.mark.parametrize("name", ["iql, team, 3 steps", "qmix, one network", "recurrent qmix, 2 steps, burn-in"])
def test_values_of_illegal_actions_reach_no_target(name):
    """Action 2 is legal nowhere, and its value, of both networks, is raised from about 0 to about 1e9."""
    which, hyper = CASES[name], as_hyper(PLAIN)
    learn, learner = learning(which)
    batch = batch_of(which)
    recorded = batch.steps.replace(
        action=jnp.minimum(batch.steps.action, 1),
        next_action_mask=batch.steps.next_action_mask.at[..., 2].set(False),
    )

    def outcome(size):
        def spoil(params):
            return params | {"network": params["network"] | {"w": params["network"]["w"].at[:, 2].set(size)}}

        spoilt_ = learner.replace(params=spoil(learner.params), target=spoil(learner.target))
        after, scalars, feedback = learn(spoilt_, hyper, dataclasses.replace(batch, steps=recorded))
        gradient = jax.tree.map(lambda old, new: new - old, spoilt_.params, after.params)
        return gradient["network"]["w"][:, :2], gradient["mixer"], scalars, feedback

    jax.tree.map(same, outcome(1.0), outcome(1e9))


@pytest.mark.parametrize("name", [name for name in CASES if "dqn" not in name and "huber" not in name])
def test_what_dead_agents_hold_changes_nothing(name):
    """Garbage in all that they saw and did leaves learner, scalars and priorities as they are, to the bit.

    With memory somebody must live: what the dead saw is remembered for when nobody does and their rows count.
    """
    which, hyper = CASES[name], as_hyper(PLAIN)
    learn, learner = learning(which)
    batch = batch_of(which, survivor=which.recurrent)
    assert not batch.steps.alive.all()
    usual = learn(learner, hyper, batch)
    for size in (1.0, 1e3, 1e30):
        jax.tree.map(same, learn(learner, hyper, spoilt(batch, which.reward, size, paid=size)), usual)


def test_a_dead_agents_reward_may_be_anything():
    which, hyper = CASES["iql, individual, 3 steps"], as_hyper(PLAIN)
    learn, learner = learning(which)
    batch = batch_of(which)
    jax.tree.map(same, learn(learner, hyper, spoilt(batch, "individual", 1.0, paid=np.nan)), learn(learner, hyper, batch))


def test_rows_of_the_burn_in_set_the_hidden_state_and_nothing_else():
    which, hyper = CASES["recurrent qmix, 2 steps, burn-in"], as_hyper(PLAIN)
    learn, learner = learning(which)
    batch, rows = batch_of(which), which.settings.burn_in
    usual = learn(learner, hyper, batch)
    steps = batch.steps

    def spoil(x):
        return x.at[:rows].set(1e9)

    names = ("reward", "next_observation", "world", "next_world")
    paid = steps.replace(**{name: spoil(getattr(steps, name)) for name in names})
    done = {"action": (steps.action + 1) % 3, "next_action_mask": ~steps.next_action_mask, "alive": ~steps.alive}
    done = {name: x.at[rows:].set(getattr(steps, name)[rows:]) for name, x in done.items()}
    jax.tree.map(same, learn(learner, hyper, dataclasses.replace(batch, steps=paid.replace(**done))), usual)
    for changed in (
        dataclasses.replace(batch, carry=batch.carry + 1),
        dataclasses.replace(batch, steps=steps.replace(observation=steps.observation.at[:rows].add(1.0))),
    ):
        assert np.any(np.asarray(learn(learner, hyper, changed)[2]) != np.asarray(usual[2]))


# ---- target network


@pytest.mark.parametrize(
    ("tau", "period", "expected"),
    [(0.1, 1, (0.1, 0.19, 0.271)), (1.0, 3, (0, 0, 1)), (0.1, 3, (0, 0, 0.1)), (1.0, 1, (1, 1, 1))],
)
def test_the_target_network_moves_by_tau_every_period(tau, period, expected):
    """Online parameters 1, those behind 0, network and mixer; the online ones stand still."""
    which = case(reward="team", mixer="hypernet", target_period=period)
    learn, learner = learning(which)
    ones, zeros = (jax.tree.map(make, learner.params) for make in (jnp.ones_like, jnp.zeros_like))
    assert len(jax.tree.leaves(ones)) > 10
    learner, hyper = learner.replace(params=ones, target=zeros), as_hyper(PLAIN.replace(learning_rate=0.0, tau=tau))
    for value in expected:
        learner, _, _ = learn(learner, hyper, batch_of(which))
        for leaf in jax.tree.leaves(learner.target):
            close(leaf, np.full(leaf.shape, value), rtol=1e-6)
            assert value not in (0, 1) or np.all(np.asarray(leaf) == value), "a copy is one to the bit"


def test_the_target_network_follows_the_parameters_after_the_step():
    which = CASES["vdn"]
    learn, learner = learning(which)
    after, _, _ = learn(learner, as_hyper(PLAIN.replace(tau=1.0)), batch_of(which))
    jax.tree.map(same, after.target, after.params)


def test_a_fresh_target_network_is_the_online_one_in_arrays_of_its_own():
    learner = compiled(algorithm_of(CASES["dqn"]).init)(jax.random.key(0), as_hyper(PLAIN))
    jax.tree.map(same, learner.target, learner.params)
    places = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves((learner.params, learner.target))]
    assert len(set(places)) == len(places)


# ---- priorities


def test_priorities_are_errors_with_a_floor_to_a_power_and_weights_take_their_bias_back():
    which = CASES["iql, individual, 3 steps"]
    learn, learner = learning(which)
    batch = batch_of(which)
    error = np.asarray(learn(learner, as_hyper(PLAIN), batch)[2])
    _, _, feedback = learn(learner, as_hyper(PLAIN.replace(priority_exponent=0.6, priority_epsilon=0.1)), batch)
    close(feedback, (error + 0.1) ** 0.6, rtol=1e-5)
    for beta in (0.0, 0.4, 1.0):
        hyper = PLAIN.replace(importance_exponent=beta)
        close(learn(learner, as_hyper(hyper), batch)[1]["loss"], oracle(which, learner, batch, hyper)["loss"], rtol=1e-4)


def test_without_priorities_all_windows_weigh_alike_and_nothing_is_fed_back():
    usual = CASES["iql, individual, 3 steps"]
    learn, learner = learning(dataclasses.replace(usual, config=(*usual.config, ("prioritised", False))))
    batch = batch_of(usual)
    _, scalars, feedback = learn(learner, as_hyper(PLAIN), batch)
    assert feedback == ()
    close(scalars["loss"], oracle(usual, learner, batch, PLAIN.replace(importance_exponent=0.0))["loss"], rtol=1e-4)


def test_a_batch_on_two_devices_is_learnt_as_on_one():
    """Half the windows each: the same step, the same weights against the largest of both, priorities for each own window."""
    which, hyper = CASES["iql, individual, 3 steps"], as_hyper(PLAIN)
    learn, learner = learning(which)
    batch = batch_of(which)
    split = algorithm_of(which, across=simulated_devices(2))

    @compiled
    def shared(steps, probability):
        def one(steps, probability):
            return split.learn(learner, hyper, Batch(steps, (), None, probability), jax.random.key(9), CLOCK)

        return jax.vmap(one, in_axes=(2, 0), axis_name="device")(steps, probability)

    halves = jax.tree.map(lambda x: x.reshape(x.shape[0], 2, -1, *x.shape[2:]).swapaxes(1, 2), batch.steps)
    after, scalars, feedback = shared(halves, batch.probability.reshape(2, -1))
    usual, expected, priorities = learn(learner, hyper, batch)
    for device in range(2):
        jax.tree.map(lambda x, y, d=device: close(x[d], y, rtol=1e-5, atol=1e-6), after, usual)
        for name in ("loss", "td_error", "q_mean", "target_mean", "grad_norm"):
            close(scalars[name][device], expected[name], rtol=1e-5)
    close(np.ravel(feedback), priorities, rtol=1e-6)

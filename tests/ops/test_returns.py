"""Returns and advantages against numpy loops and rlax, exact through every kind of episode end."""

from __future__ import annotations

import importlib
import warnings

import hypothesis
import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.ops.returns import gae, lambda_returns, n_step, trace_cuts

T, N, A = 12, 3, 2
GAMMA, DECAY = 0.9, 0.8
close = np.testing.assert_allclose

jit_gae, jit_lambda_returns, jit_cuts, jit_n_step = (jax.jit(f) for f in (gae, lambda_returns, trace_cuts, n_step))


@pytest.fixture(scope="module")
def rlax():
    """The oracle; importing it and its dependencies warns of names that jax is about to drop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("rlax")


def numbers(seed=0, shape=(T, N, A)):
    """Rewards, values and next values, all independent: what follows an end has nothing to do with what came before."""
    draw = np.random.default_rng(seed)
    return (draw.normal(size=shape).astype(np.float32) for _ in range(3))


def fragments(cut):
    """(start, stop) of the stretches [start, stop) between cuts, cut: bool [T]."""
    stops = [*(np.flatnonzero(cut[:-1]) + 1), len(cut)]
    return zip([0, *stops[:-1]], stops, strict=True)


def slow_gae(reward, discount, values, next_values, cut, decay):
    """A[t] = Σ_k (Π d λ)ᵏ δ[t + k], each stretch between cuts alone, float64."""
    reward, discount, values, next_values = (x.astype(np.float64) for x in (reward, discount, values, next_values))
    delta = reward + discount * next_values - values
    advantages = np.zeros_like(delta)
    for place in np.ndindex(delta.shape[1:]):
        for start, stop in fragments(cut[(slice(None), *place)]):
            for t in range(start, stop):
                weight = 1.0
                for k in range(t, stop):
                    advantages[(t, *place)] += weight * delta[(k, *place)]
                    weight *= discount[(k, *place)] * decay
    return advantages


def slow_lambda_returns(reward, discount, next_values, cut, decay):
    """The λ-weighted mean of n-step returns (Sutton & Barto 2018, eq. 12.3), each stretch between cuts alone."""
    out = np.zeros(reward.shape)
    for place in np.ndindex(reward.shape[1:]):
        for start, stop in fragments(cut[(slice(None), *place)]):
            for t in range(start, stop):
                collected, reach, weight = 0.0, 1.0, 1.0
                for k in range(t, stop):
                    here = (k, *place)
                    collected += reach * float(reward[here])
                    reach *= float(discount[here])
                    n_step = collected + reach * float(next_values[here])
                    share = weight * (1.0 - decay) if k < stop - 1 else weight
                    out[(t, *place)] += share * n_step
                    weight *= decay
    return out


flags = arrays.arrays(bool, (T, N, A))


@hypothesis.settings(max_examples=30)
@hypothesis.given(last=arrays.arrays(bool, (T, N)), dies=flags, renewed=flags, seed=st.integers(0, 99))
def test_random_ends_equal_loops_over_each_stretch_alone(last, dies, renewed, seed):
    reward, values, next_values = numbers(seed)
    discount = np.where(dies, 0.0, GAMMA).astype(np.float32)
    cut = np.asarray(jit_cuts(last, renewed))
    expected_cut = last[..., None] | np.concatenate([renewed[1:], np.zeros((1, N, A), bool)])
    np.testing.assert_array_equal(cut, expected_cut)
    advantages, targets = jit_gae(reward, discount, values, next_values, cut, DECAY)
    close(advantages, slow_gae(reward, discount, values, next_values, cut, DECAY), rtol=1e-4, atol=1e-5)
    close(targets, advantages + values, rtol=1e-6, atol=1e-6)
    returns = jit_lambda_returns(reward, discount, next_values, cut, DECAY)
    close(returns, slow_lambda_returns(reward, discount, next_values, cut, DECAY), rtol=1e-4, atol=1e-5)


@hypothesis.settings(max_examples=15)
@hypothesis.given(last=arrays.arrays(bool, (T, N)), seed=st.integers(0, 99))
def test_gae_targets_are_lambda_returns_where_values_shift_within_episodes(last, seed):
    """The two recursions are one where v'[t] = v[t + 1] inside an episode."""
    reward, values, next_values = numbers(seed)
    cut = np.broadcast_to(last[..., None], (T, N, A))
    next_values[:-1] = np.where(cut[:-1], next_values[:-1], values[1:])
    discount = np.full((T, N, A), GAMMA, np.float32)
    _, targets = jit_gae(reward, discount, values, next_values, cut, DECAY)
    close(targets, jit_lambda_returns(reward, discount, next_values, cut, DECAY), rtol=1e-4, atol=1e-5)


def test_without_ends_both_equal_rlax(rlax, relaxed_rank_promotion):
    reward, values, _ = numbers(3, (T + 1, N))
    reward, discount, cut = reward[:T], np.full((T, N), GAMMA, np.float32), np.zeros((T, N), bool)
    advantages, _ = gae(reward, discount, values[:-1], values[1:], cut, DECAY)
    returns = lambda_returns(reward, discount, values[1:], cut, DECAY)
    for n in range(N):
        theirs = rlax.truncated_generalized_advantage_estimation(reward[:, n], discount[:, n], DECAY, jnp.asarray(values[:, n]))
        close(advantages[:, n], theirs, rtol=1e-5, atol=1e-5)
        theirs = rlax.lambda_returns(reward[:, n], discount[:, n], jnp.asarray(values[1:, n]), DECAY)
        close(returns[:, n], theirs, rtol=1e-5, atol=1e-5)


def test_vmap_and_jit_change_nothing():
    reward, values, next_values = numbers(1)
    discount = np.full((T, N, A), GAMMA, np.float32)
    cut = np.random.default_rng(0).random((T, N, A)) < 0.3
    plain, _ = gae(reward, discount, values, next_values, cut, DECAY)
    mapped, _ = jax.jit(jax.vmap(gae, in_axes=(1, 1, 1, 1, 1, None), out_axes=1))(
        reward, discount, values, next_values, cut, DECAY
    )
    close(mapped, plain, rtol=1e-5, atol=1e-6)
    decays = jnp.float32([0.0, DECAY])
    swept, _ = jax.vmap(gae, in_axes=(None,) * 5 + (0,))(reward, discount, values, next_values, cut, decays)
    close(swept[0], reward + discount * next_values - values, rtol=1e-5, atol=1e-5)
    close(swept[1], plain, rtol=1e-5, atol=1e-6)


def test_a_time_limit_bootstraps_from_its_own_next_value_and_a_true_end_does_not():
    one = np.ones((1,), np.float32)
    args = {"reward": one, "values": 5 * one, "next_values": 7 * one, "cut": np.ones(1, bool), "trace_decay": DECAY}
    truncated, _ = gae(discount=GAMMA * one, **args)
    terminated, _ = gae(discount=0 * one, **args)
    close(truncated, [1 + GAMMA * 7 - 5], rtol=1e-6)
    close(terminated, [1 - 5])


def test_both_kinds_of_end_cut_the_trace_and_only_they_do():
    """An end at step 2 leaves steps 0 … 2 untouched by anything later; without it they change."""
    reward, values, next_values = numbers(2, (6, 1))
    changed = reward.copy()
    changed[3:] += 100.0
    cut = np.zeros((6, 1), bool)
    cut[2] = True
    for at_end in (0.0, GAMMA):
        discount = np.full((6, 1), GAMMA, np.float32)
        discount[2] = at_end
        results = [gae(r, discount, values, next_values, cut, DECAY)[0] for r in (reward, changed)]
        np.testing.assert_array_equal(results[0][:3], results[1][:3])
        assert np.all(np.asarray(results[1][3:] - results[0][3:]) > 1.0)
    open_ended = [
        gae(r, np.full((6, 1), GAMMA, np.float32), values, next_values, np.zeros((6, 1), bool), DECAY)[0]
        for r in (reward, changed)
    ]
    assert np.all(np.abs(np.asarray(open_ended[1] - open_ended[0])) > 1.0)


@pytest.mark.parametrize("shift", [-1, 1])
def test_flags_that_are_one_step_off_break_the_result(shift):
    """The property that the tests above rest on: shifted flags do not go unnoticed."""
    reward, values, next_values = numbers(4)
    last = np.arange(T) % 4 == 3
    flags = np.broadcast_to(last[:, None, None], (T, N, A))
    moved, goes_on = np.roll(flags, shift, axis=0), np.full_like(reward, GAMMA)
    in_time, _ = jit_gae(reward, goes_on, values, next_values, flags, DECAY)
    shifted_cut, _ = jit_gae(reward, goes_on, values, next_values, moved, DECAY)
    assert np.max(np.abs(shifted_cut - in_time)) > 0.1
    right = slow_gae(reward, np.where(flags, 0.0, GAMMA), values, next_values, flags, DECAY)
    shifted_end, _ = jit_gae(reward, np.where(moved, 0.0, GAMMA).astype(np.float32), values, next_values, flags, DECAY)
    assert np.max(np.abs(shifted_end - right)) > 0.1


def test_episodes_of_one_step_have_reward_minus_value_as_advantage():
    values = np.random.default_rng(0).normal(size=(T, 1)).astype(np.float32)
    reward = np.arange(T, dtype=np.float32)[:, None]
    ends = np.ones((T, 1), bool)
    advantages, targets = gae(reward, np.zeros_like(reward), values, values[::-1].copy(), ends, 0.95)
    np.testing.assert_array_equal(advantages, reward - values)
    close(targets, reward, atol=1e-6)


def test_the_correction_at_a_time_limit_is_gamma_times_the_value_of_the_final_observation():
    """V(observation) = observation, observations count 0 … limit, nothing is paid: the limit is worth γ · limit."""
    limit = 5
    values = np.arange(limit, dtype=np.float32)[:, None]
    zeros = np.zeros((limit, 1), np.float32)
    cut = (np.arange(limit) == limit - 1)[:, None]
    _, targets = gae(zeros, zeros + GAMMA, values, values + 1, cut, 1.0)
    close(targets[-1], GAMMA * limit, rtol=1e-6)
    close(targets[:, 0], [GAMMA ** (limit - t) * limit for t in range(limit)], rtol=1e-5)


def test_a_slot_that_is_used_again_starts_with_a_trace_of_its_own():
    """Agent 1 dies with step 1, rests during step 2, and its successor's first row is 3; agent 0 lives on."""
    reset = np.zeros((5, 1, 2), bool)
    reset[0] = reset[3, 0, 1] = True
    cut = np.asarray(trace_cuts(np.zeros((5, 1), bool), reset))
    np.testing.assert_array_equal(cut[:, 0, 1], [False, False, True, False, False])
    assert not cut[:, 0, 0].any()
    reward, values, next_values = numbers(5, (5, 1, 2))
    changed = reward.copy()
    changed[3:] += 10.0
    discount = np.full((5, 1, 2), GAMMA, np.float32)
    before, after = (np.asarray(gae(r, discount, values, next_values, cut, DECAY)[0]) for r in (reward, changed))
    np.testing.assert_array_equal(before[:3, 0, 1], after[:3, 0, 1])
    assert np.all(after[:, 0, 0] - before[:, 0, 0] > 1.0)


def test_derivatives_by_discount_and_trace_decay_are_finite_and_right():
    reward, values, next_values = numbers(6, (T, 1))
    cut = (np.arange(T) % 5 == 4)[:, None]

    def total(gamma, decay):
        discount = gamma * jnp.ones((T, 1))
        return jnp.sum(jnp.square(gae(reward, discount, values, next_values, cut, decay)[0]))

    by_gamma, by_decay = jax.grad(total, argnums=(0, 1))(GAMMA, DECAY)
    step = 1e-2
    close(by_gamma, (total(GAMMA + step, DECAY) - total(GAMMA - step, DECAY)) / (2 * step), rtol=1e-2)
    close(by_decay, (total(GAMMA, DECAY + step) - total(GAMMA, DECAY - step)) / (2 * step), rtol=1e-2)


def slow_n_step(reward, discount, cut):
    """Walks on from the first row of each window until something ends: (return, discount of the value, its row)."""
    out = np.zeros((3, *reward.shape[1:]))
    for place in np.ndindex(reward.shape[1:]):
        collected, reach, k = 0.0, 1.0, 0
        while True:
            collected += reach * float(reward[(k, *place)])
            reach *= float(discount[(k, *place)])
            if cut[(k, *place)] or discount[(k, *place)] == 0 or k == len(reward) - 1:
                break
            k += 1
        out[(slice(None), *place)] = collected, reach, k
    return out


@hypothesis.settings(max_examples=30)
@hypothesis.given(
    last=arrays.arrays(bool, (T, N), elements=st.sampled_from([False] * 5 + [True])),
    dies=arrays.arrays(bool, (T, N, A), elements=st.sampled_from([False] * 8 + [True])),
    renewed=arrays.arrays(bool, (T, N, A), elements=st.sampled_from([False] * 8 + [True])),
    seed=st.integers(0, 99),
)
def test_n_step_returns_equal_a_walk_to_the_first_end(last, dies, renewed, seed):
    reward, _, _ = numbers(seed)
    discount = np.where(dies, 0.0, GAMMA).astype(np.float32)
    cut = jit_cuts(last, renewed)
    value, weight, index = jit_n_step(reward, discount, cut)
    assert index.dtype == jnp.int32
    expected = slow_n_step(reward, discount, np.asarray(cut))
    close(value, expected[0], rtol=1e-4, atol=1e-5)
    close(weight, expected[1], rtol=1e-5)
    np.testing.assert_array_equal(index, expected[2])


def test_n_step_of_one_row_is_that_row():
    reward, discount = np.float32([[3.0, 3.0]]), np.float32([[GAMMA, 0.0]])
    value, weight, index = n_step(reward, discount, np.zeros((1, 2), bool))
    assert value.tolist() == [3, 3] and index.tolist() == [0, 0]
    close(weight, [GAMMA, 0.0])


@pytest.mark.parametrize(("at_end", "bootstrap"), [(GAMMA, GAMMA**2), (0.0, 0.0)])
def test_n_step_stops_at_an_end_and_bootstraps_through_a_time_limit(at_end, bootstrap):
    """The episode ends with the second of four rows; the rows after it are worth a million and belong to the next."""
    reward = jnp.float32([1, 2, 1e6, 1e6])
    discount = jnp.float32([GAMMA, at_end, GAMMA, GAMMA])
    value, weight, index = n_step(reward, discount, jnp.array([False, True, False, False]))
    close([value, weight], [1 + GAMMA * 2, bootstrap], rtol=1e-6)
    assert index == 1


def test_n_step_of_a_dead_agent_stops_at_its_death_and_its_successor_adds_nothing():
    reward, discount = jnp.float32([1, 2, 0, 1e6]), jnp.float32([GAMMA, 0, GAMMA, GAMMA])
    value, weight, index = n_step(reward, discount, jnp.zeros(4, bool))  # no cut: the discount alone says it
    close([value, weight], [1 + GAMMA * 2, 0], rtol=1e-6)
    assert index == 1


def test_the_derivative_of_n_step_returns_by_the_discount_is_right_at_an_end_too():
    reward, ends = jnp.float32([1, 2, 3, 4]), jnp.float32([1, 1, 0, 1])

    def total(gamma):
        value, weight, _ = n_step(reward, gamma * ends, jnp.zeros(4, bool))
        return value + 10 * weight

    close(jax.grad(total)(GAMMA), 2 + 2 * GAMMA * 3, rtol=1e-5)

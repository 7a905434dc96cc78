"""One member's loop: exact repetition, streams of randomness, and states that a second call accepts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.ops.schedules import Schedule

from .support import Drift, assert_same_bits, clock, drift_solo, hyper, quick, raw, same_bits, small_loop


class WeaklyTyped(Drift):
    """What a user may well write: Python numbers in a TimeStep."""

    def observe(self, state, params):
        timestep = super().observe(state, params)
        return timestep.replace(discount=jnp.where(timestep.discount > 0, 1.0, 0.0), reward=jnp.asarray(0.0))


class Wind(Drift):
    """Noise alone moves the point; the state keeps the newest two moves, and no episode ends."""

    def initial(self, key, params):
        return super().initial(key, params) | {"step": jnp.float32(0), "before": jnp.float32(0)}

    def advance(self, key, state, action, params):
        moved = jax.random.normal(key, (), jnp.float32)
        return state | {"time": jnp.int32(0), "place": jnp.float32(0), "step": moved, "before": state["step"]}, moved


VARIANTS = {
    "mlp": {},
    "shared trunk": {"network": {"trunk": "shared"}},
    "gru": {"network": {"torso": "gru", "recurrent": 8}},
    "normalised": {"config": {"normalise_observations": True, "normalise_rewards": True}},
    "pool": {"reset": "pool"},
    **{name: {"config": {"optimiser": name}} for name in ("adamw", "radam", "sgd", "rmsprop")},
    "tanh normal": {"env": "probe/continuous", "config": {"distribution": "tanh_normal"}},
    "masked": {"env": "probe/masked"},
    "heads": {"env": "probe/multi_discrete"},
    "bytes": {"env": "probe/image"},
    "team": {"env": "probe/team", "name": "mappo"},
    "weakly typed environment": {"env": WeaklyTyped()},
    "weakly typed environment, warm-up": {"env": WeaklyTyped(), "config": {"normalise_rewards": True}},
    "individual": {"env": "probe/individual", "name": "mappo", "network": {"torso": "gru", "sharing": "agent"}},
}


@pytest.fixture(scope="module")
def solo():
    return drift_solo()


@pytest.fixture(scope="module")
def begun(solo):
    """A state after one iteration."""
    return solo.run(solo.init(jax.random.key(0), hyper()), hyper(), range(1))


def test_two_runs_are_equal_to_the_bit(solo):
    first, second = (solo.run(solo.init(jax.random.key(3), hyper()), hyper(), range(3)) for _ in range(2))
    assert_same_bits(first, second)


def test_evaluation_between_iterations_changes_no_training(solo):
    start = solo.init(jax.random.key(3), hyper())
    without = solo.run(start, hyper(), range(3))
    between = solo.run(start, hyper(), range(3), evaluate=True)
    assert_same_bits(without.replace(best=()), between.replace(best=()))
    assert not same_bits(without.best, between.best)


def test_an_evaluation_repeats_and_changes_nothing_but_the_best(solo, begun):
    once, results = solo.evaluate(begun, hyper(), jnp.int32(0))
    twice, again = solo.evaluate(once, hyper(), jnp.int32(0))
    assert_same_bits(results, again)
    assert_same_bits(begun.replace(best=()), once.replace(best=()))
    assert_same_bits(once, twice)
    assert once.best.score == jnp.mean(results["greedy"]["return"])


def test_absolute_rounds_change_nothing_at_all(solo, begun):
    for number in (1, 2):
        after, _ = solo.evaluate(begun, hyper(), jnp.int32(number))
        assert_same_bits(begun, after)


def test_every_stream_changes_with_the_seed(solo):
    one, two = (solo.init(jax.random.key(seed), hyper()) for seed in (0, 1))
    pairs = zip(*(map(raw, jax.tree.leaves(state.learner.params)) for state in (one, two)), strict=True)
    kernels = [(x, y) for x, y in pairs if x.ndim == 2]
    assert kernels and not any(np.any(x == y) for x, y in kernels)
    assert not np.any(raw(one.actor.env_state["place"]) == raw(two.actor.env_state["place"]))
    assert not np.array_equal(raw(one.key), raw(two.key))


def test_the_key_of_the_state_drives_acting_and_learning(solo, begun):
    other = begun.replace(key=jax.random.key(77))
    one, two = (solo.advance(state, hyper(), clock(1, 100))[0] for state in (begun, other))
    assert not np.any(raw(one.actor.env_state["place"]) == raw(two.actor.env_state["place"]))
    assert not same_bits(one.learner.params, two.learner.params)
    assert not np.array_equal(raw(one.key), raw(two.key))
    assert not np.array_equal(raw(one.key), raw(begun.key))


def test_environments_start_and_go_on_differently(solo, begun):
    start = solo.init(jax.random.key(5), hyper())
    for state in (start, begun):
        places = raw(state.actor.timestep.observation)[:, 0, 0]
        assert len(np.unique(places)) == len(places) == 4


def test_noise_differs_between_environments_and_steps():
    """Without resets and whatever the action, environments that were in one place go apart, and not by one step repeated."""
    loop = small_loop(Wind(), rollout_length=2, config={"epochs": 1, "minibatches": 1})
    state, advance = quick(loop.init)(jax.random.key(0), hyper()), quick(loop.advance)
    one_place = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), state.actor)
    after, _ = advance(state.replace(actor=one_place), hyper(), clock(0, 100))
    second, first = raw(after.actor.env_state["step"]), raw(after.actor.env_state["before"])
    assert len(np.unique([first, second])) == 8


def test_other_numbers_trace_nothing_anew(solo, begun):
    solo.advance(begun, hyper(), clock(0, 100))
    before = len(solo.traces)
    for rate in (1, 0.5, np.float64(0.1), np.float32(0.1), np.array(0.2), jnp.float32(0.3), jnp.asarray(1)):
        solo.advance(begun, hyper(learning_rate=rate, gamma=rate, entropy=rate), clock(0, 100))
    for iteration, total in ((5, 100), (5, 1_000_000), (0, 1)):
        solo.advance(begun, hyper(), clock(iteration, total))
    assert len(solo.traces) == before


def test_another_schedule_and_run_length_trace_nothing_anew():
    traces = []
    loop = small_loop(Drift(), config={"epochs": 1, "minibatches": 1}, on_trace=lambda: traces.append(1))
    schedules = [Schedule(1e-3), Schedule(np.float32(2e-3), 1, over=0.5), Schedule(jnp.float32(1), 0.1, 1, warmup=0.1)]
    numbers = [hyper(learning_rate=rate, clip=rate) for rate in schedules]
    state, advance = quick(loop.init)(jax.random.key(0), numbers[0]), quick(loop.advance)
    rates = [
        float(advance(state, each, clock(0, total))[1]["learning_rate"][0])
        for each, total in [(numbers[0], 10), (numbers[0], 20), (numbers[1], 10), (numbers[2], 10)]
    ]
    np.testing.assert_allclose(rates, [9e-4, 9.5e-4, 2e-3 + 0.2 * (1 - 2e-3), 1.0], rtol=1e-5)
    assert len(traces) == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_state_comes_back_with_the_types_it_had(variant):
    loop = small_loop(**({"env": Drift()} | VARIANTS[variant]))
    state = jax.eval_shape(loop.init, jax.random.key(0), hyper())
    assert not any(x.weak_type for x in jax.tree.leaves(state))
    after, curves = jax.eval_shape(loop.advance, state, hyper(), clock(0, 1))
    evaluated, results = jax.eval_shape(loop.evaluate, state, hyper(), jnp.int32(0))
    for new in (after, evaluated):
        assert jax.tree.structure(new) == jax.tree.structure(state)
        for (path, x), y in zip(jax.tree.leaves_with_path(new), jax.tree.leaves(state), strict=True):
            assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type), jax.tree_util.keystr(path)
    assert all(x.shape == (1,) and x.dtype == jnp.float32 for x in jax.tree.leaves(curves))
    assert all(x.shape == (4,) and x.dtype == jnp.float32 for x in jax.tree.leaves(results))

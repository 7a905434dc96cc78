"""Replay against a numpy model of the ring, in which every row knows its time and its environment."""

from __future__ import annotations

import dataclasses
import functools
import warnings

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from agentgym_jax.checks import ConfigError
from agentgym_jax.memory.replay import LEAST, MOST, replay
from agentgym_jax.types import Clock, Sizes, Trajectory, Transition
from tests.support import compiled

N, T, A, SLOTS, BATCH, WARMUP = 2, 3, 2, 3, 6, 1
SIZES, ROWS = Sizes(N, T), SLOTS * T


def rollout(number, sizes=SIZES) -> Trajectory:
    """The push `number` (0, 1, …): each row holds its time, environment and agent as bytes, its carry the push."""
    num_envs, length = sizes
    time, env, agent = jnp.meshgrid(number * length + jnp.arange(length), jnp.arange(num_envs), jnp.arange(A), indexing="ij")
    steps = Transition(
        observation=jnp.stack([time, env, agent], axis=-1).astype(jnp.uint8),
        reward=time.astype(jnp.float32),
        last=time[..., 0] % 4 == 3,
        action_mask=(),
    )
    return Trajectory(steps, {"hidden": jnp.full((num_envs, A, 1), number, jnp.float32)})


@dataclasses.dataclass(frozen=True)
class Form:
    """A kind of memory and the programs of it, each compiled once."""

    length: int
    whole: bool
    prioritised: bool

    @functools.cached_property
    def memory(self):
        return replay(SIZES, ROWS * N, BATCH, self.length, self.whole, 0, self.prioritised, WARMUP)

    def empty(self):
        return self.memory.init(jax.tree.map(jnp.zeros_like, rollout(0)))

    @functools.cached_property
    def push(self):
        return compiled(lambda memory, number: self.memory.push(memory, rollout(number), clock(number)))

    @functools.cached_property
    def sample(self):
        return compiled(lambda memory, key, number: self.memory.sample(memory, rollout(number), key, clock(number)))

    @functools.cached_property
    def feedback(self):
        return compiled(self.memory.feedback)

    @property
    def window(self):
        """Steps of a window."""
        return T if self.whole else self.length


def clock(number):
    return Clock(number - jnp.int32(WARMUP), jnp.int32(100))


class Model:
    """{(first time, environment): priority} of the windows that can be drawn."""

    def __init__(self, form: Form):
        self.form, self.time, self.priority, self.highest = form, 0, {}, 1.0

    def push(self):
        self.time += T
        stride = T if self.form.whole else 1
        oldest, newest = max(0, self.time - ROWS), self.time - self.form.window
        begins = [time for time in range(oldest, newest + 1) if time % stride == 0]
        windows = [(time, env) for time in begins for env in range(N)]
        self.priority = {window: self.priority.get(window, self.highest) for window in windows}

    def feedback(self, windows, value):
        for window in set(windows):
            self.priority[window] = max(v for w, v in zip(windows, value, strict=True) if w == window)
        self.highest = max(self.highest, *value)

    @property
    def leaves(self):
        """The priorities where the memory should keep them."""
        out = np.zeros((ROWS, N))
        for (time, env), priority in self.priority.items():
            out[time % ROWS, env] = priority
        return out[:: T if self.form.whole else 1].reshape(-1)


def check_batch(form: Form, model: Model, batch) -> list[tuple[int, int]]:
    """Every window is whole, of one environment, with all its agents, and one that may be drawn; returns which they are."""
    seen = np.asarray(batch.steps.observation)
    assert seen.shape == (form.window, BATCH, A, 3) and seen.dtype == np.uint8
    first = seen[0, :, 0, 0].astype(int)
    times = first[None, :, None] + np.arange(form.window)[:, None, None]
    np.testing.assert_array_equal(seen[..., 0], np.broadcast_to(times, seen.shape[:3]))
    np.testing.assert_array_equal(seen[..., 1], np.broadcast_to(seen[:1, :, :1, 1], seen.shape[:3]))
    np.testing.assert_array_equal(seen[..., 2], np.broadcast_to(np.arange(A), seen.shape[:3]))
    np.testing.assert_array_equal(batch.steps.reward, seen[..., 0])
    np.testing.assert_array_equal(batch.steps.last, seen[:, :, 0, 0] % 4 == 3)
    assert batch.steps.action is None and batch.steps.action_mask == ()
    windows = [(int(time), int(env)) for time, env in zip(first, seen[0, :, 0, 1], strict=True)]
    odds = np.array([model.priority[window] for window in windows]) / sum(model.priority.values())
    np.testing.assert_allclose(batch.probability, odds, rtol=1e-5)
    if form.whole:
        np.testing.assert_array_equal(batch.carry["hidden"][:, 0, 0], first // T)
    else:
        assert batch.carry == ()
    return windows


FORMS = [
    Form(length, whole, prioritised)
    for length, whole in ((1, False), (3, False), (5, False), (1, True))
    for prioritised in (False, True)
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.length}-{form.whole}-{form.prioritised}")
@hypothesis.settings(max_examples=6)
@hypothesis.given(pushes=st.integers(1, 9), seed=st.integers(0, 1000))
def test_every_sample_comes_from_what_the_model_holds(form, pushes, seed):
    """From the first push that can be learned from, through exactly full, to wrapped around more than once.

    A batch is about as large as what two rollouts hold, so it has duplicates; the model gives those the largest priority.
    """
    draw = np.random.default_rng(seed)
    memory, model = form.empty(), Model(form)
    for number in range(WARMUP + pushes):
        memory = form.push(memory, jnp.int32(number))
        model.push()
        if number < WARMUP:
            continue
        for _ in range(2):
            batch = form.sample(memory, jax.random.key(draw.integers(1 << 30)), jnp.int32(number))
            windows = check_batch(form, model, batch)
            if form.prioritised:
                value = draw.exponential(size=BATCH).astype(np.float32) * 3
                memory = form.feedback(memory, batch, value)
                model.feedback(windows, value)
                stored = memory.tree.priority(jnp.arange(len(model.leaves)))
                np.testing.assert_allclose(stored, model.leaves, rtol=1e-6)
                assert memory.highest == np.float32(model.highest)


def many(form: Form, memory, number: int, draws: int) -> np.ndarray:
    """How often each window came up, [ROWS, N] by the time of its first row modulo the ring."""
    keys = jax.random.split(jax.random.key(number), draws)
    sampled = compiled(jax.vmap(lambda key: form.memory.sample(memory, (), key, clock(number)).steps.observation))
    first = np.asarray(sampled(keys))[:, 0, :, 0].reshape(-1, 3).astype(int)
    return np.bincount(first[:, 0] % ROWS * N + first[:, 1], minlength=ROWS * N).reshape(ROWS, N)


def flashbax_counts(length: int, pushes: int, draws: int) -> np.ndarray:
    with warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("ignore")
        from flashbax import make_trajectory_buffer

        buffer = make_trajectory_buffer(
            add_batch_size=N,
            sample_batch_size=BATCH,
            sample_sequence_length=length,
            period=1,
            min_length_time_axis=length,
            max_length_time_axis=ROWS,
        )
        add = compiled(lambda state, number: buffer.add(state, jnp.swapaxes(rollout(number).steps.observation, 0, 1)))
        state = functools.reduce(add, jnp.arange(pushes), buffer.init(rollout(0).steps.observation[0, 0]))
        keys = jax.random.split(jax.random.key(7), draws)
        first = np.asarray(compiled(jax.vmap(lambda key: buffer.sample(state, key).experience))(keys))
    first = first[:, :, 0, 0].reshape(-1, 3).astype(int)
    return np.bincount(first[:, 0] % ROWS * N + first[:, 1], minlength=ROWS * N).reshape(ROWS, N)


@pytest.mark.parametrize(("length", "pushes"), [(3, 2), (5, 7)])
def test_uniform_windows_are_those_of_flashbax_and_equally_likely(length, pushes):
    form, draws = Form(length, False, False), 2000
    memory = functools.reduce(form.push, jnp.arange(pushes), form.empty())
    ours, theirs = many(form, memory, pushes - 1, draws), flashbax_counts(length, pushes, draws)
    np.testing.assert_array_equal(ours > 0, theirs > 0)
    possible = ours > 0
    assert possible.sum() == N * (min(pushes, SLOTS) * T - length + 1)
    assert scipy.stats.chisquare(ours[possible]).pvalue > 0.01
    assert scipy.stats.chi2_contingency([ours[possible], theirs[possible]]).pvalue > 0.01


def test_prioritised_windows_come_up_as_often_as_told():
    form = Form(3, False, True)
    memory = functools.reduce(form.push, jnp.arange(4), form.empty())
    batch = form.sample(memory, jax.random.key(0), jnp.int32(3))
    memory = form.feedback(memory, batch, jnp.linspace(0.1, 5.0, BATCH))
    odds = np.asarray(memory.tree.priority(jnp.arange(ROWS * N)), np.float64)
    counts = many(form, memory, 3, 2000).reshape(-1)
    np.testing.assert_array_equal(counts > 0, odds > 0)
    expected = odds / odds.sum() * counts.sum()
    assert scipy.stats.chisquare(counts[odds > 0], expected[odds > 0]).pvalue > 0.01


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, -1.0])
def test_useless_priorities_leave_every_window_drawable(bad):
    form = Form(1, False, True)
    memory = form.push(form.push(form.empty(), jnp.int32(0)), jnp.int32(1))
    for key in jax.random.split(jax.random.key(0), 6):
        batch = form.sample(memory, key, jnp.int32(1))
        assert np.isfinite(batch.probability).all() and np.all(batch.probability > 0)
        assert np.all(np.asarray(batch.steps.reward) < 2 * T)
        memory = form.feedback(memory, batch, jnp.full(BATCH, bad))
    stored = np.unique(memory.tree.priority(batch.index))
    np.testing.assert_allclose(stored, [MOST if bad == np.inf else LEAST])


def test_members_of_a_population_agree_mapped_vmapped_and_alone():
    """Pushes, samples and feedback inside one scan, as in training; members differ by key."""
    form = Form(3, False, True)

    def run(key, iterations):
        def step(memory, inputs):
            number, key = inputs
            memory = form.memory.push(memory, rollout(number), clock(number))
            batch = form.memory.sample(memory, rollout(number), key, clock(number))
            memory = form.memory.feedback(memory, batch, jnp.mean(batch.steps.reward, axis=(0, 2)) + 0.1)
            return memory, (batch.index, batch.steps.observation)

        first = form.memory.push(form.empty(), rollout(0), clock(0))
        return jax.lax.scan(step, first, (iterations, jax.random.split(key, len(iterations))))

    keys, iterations = jax.random.split(jax.random.key(0), 3), jnp.arange(1, 8, dtype=jnp.int32)
    alone, vmapped = compiled(run), compiled(jax.vmap(run, in_axes=(0, None)))
    mapped = compiled(lambda keys, iterations: jax.lax.map(lambda key: run(key, iterations), keys))
    expected = jax.tree.map(lambda *x: jnp.stack(x), *(alone(key, iterations) for key in keys))
    for program in (vmapped, mapped):
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5), program(keys, iterations), expected)
    assert not np.array_equal(expected[1][0][0], expected[1][0][1])


def test_a_push_into_a_population_writes_slices():
    """The slot follows from the unmapped clock, so that no member's ring is written by a scatter."""
    form = Form(1, False, False)
    states = jax.tree.map(lambda x: jnp.stack([x, x]), form.empty())
    push = jax.vmap(lambda memory, clock: form.memory.push(memory, rollout(0), clock), in_axes=(0, None))
    text = jax.jit(push).lower(states, clock(jnp.int32(5))).compile().as_text()
    assert "dynamic-update-slice(" in text and "scatter(" not in text and "while(" not in text


@pytest.mark.parametrize("form", [Form(3, False, True), Form(1, True, True)])
def test_a_memory_is_strong_arrays_of_one_signature_and_nothing_unrecorded(form):
    memory = form.empty()
    pushed = form.push(memory, jnp.int32(0))
    fed = form.feedback(pushed, form.sample(pushed, jax.random.key(0), jnp.int32(0)), jnp.ones(BATCH))
    for tree in (pushed, fed):
        assert jax.tree.structure(tree) == jax.tree.structure(memory)
        for before, after in zip(jax.tree.leaves(memory), jax.tree.leaves(tree), strict=True):
            assert (before.shape, before.dtype, before.weak_type) == (after.shape, after.dtype, False)
    assert memory.steps.observation.shape == (ROWS, N, A, 3) and memory.steps.observation.dtype == jnp.uint8
    assert memory.steps.next_observation is None
    assert (memory.carry == ()) != form.whole


ARGUMENTS = {"sizes": SIZES, "capacity": 18, "batch_size": 8}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 20}, r"algorithm\.capacity: 20 is not a multiple of .* = 6; choose 18 or 24"),
        ({"capacity": 4, "batch_size": 1}, r"algorithm\.capacity: 4 .* = 6; choose 6 or 12"),
        ({"capacity": 2.5}, r"algorithm\.capacity: must be a whole number"),
        ({"capacity": 6 * 2**29}, r"algorithm\.capacity: must be below 2\^31"),
        ({"batch_size": 19}, r"algorithm\.batch_size: 19 is more than the 18 steps that algorithm\.capacity = 18 holds"),
        ({"whole": True}, r"algorithm\.batch_size: 8 is more than the 6 windows of 3 steps that .*capacity = 18 holds"),
        ({"whole": True, "batch_size": 6, "burn_in": 3}, r"algorithm\.burn_in: 3 leaves nothing .*rollout_length = 3"),
        ({"burn_in": -1}, r"algorithm\.burn_in: must be a whole number of at least 0"),
        ({"length": 4}, r"algorithm\.n_steps: 4 is more than the 3 steps of an environment that are stored"),
        ({"length": 10, "warmup": 9}, r"algorithm\.n_steps: 10 is more than the 9 steps"),
        ({"length": 0}, r"algorithm\.n_steps: must be a whole number of at least 1"),
        ({"updates": 0}, r"algorithm\.updates: must be a whole number of at least 1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_both_numbers(arguments, message):
    with pytest.raises(ConfigError, match=message):
        replay(**(ARGUMENTS | arguments))


def test_sizes_at_their_limits_are_accepted():
    assert replay(SIZES, 18, 18, length=9, warmup=2, updates=5).updates == 5
    assert replay(SIZES, 18, 6, whole=True, burn_in=2).updates == 1

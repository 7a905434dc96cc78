"""Optimisers on one flat vector equal optax on the tree, and have derivatives where Adam usually has none."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import struct

from agentgym_jax.algorithms import optim
from agentgym_jax.ops.schedules import Schedule, as_hyper
from agentgym_jax.types import Clock

close = np.testing.assert_allclose
CLOCK = Clock(jnp.int32(0), jnp.int32(4))
STEPS = 12


@struct.dataclass
class Hyper:
    """The numbers that every optimiser reads."""

    learning_rate: object = 0.02
    max_grad_norm: object = 0.5
    optimiser_epsilon: object = 1e-5
    weight_decay: object = 1e-2
    momentum: object = 0.9


LIVE = {
    "adam": {"learning_rate", "max_grad_norm", "optimiser_epsilon"},
    "adamw": {"learning_rate", "max_grad_norm", "optimiser_epsilon", "weight_decay"},
    "radam": {"learning_rate", "max_grad_norm", "optimiser_epsilon"},
    "rmsprop": {"learning_rate", "max_grad_norm", "optimiser_epsilon"},
    "sgd": {"learning_rate", "max_grad_norm", "momentum"},
}


def params():
    draw = np.random.default_rng(0)
    return {"a": {"kernel": jnp.float32(draw.normal(size=(3, 2))), "bias": jnp.zeros(2)}, "b": jnp.float32([1.5])}


def gradients():
    """Twelve gradients [STEPS, ...], some far above the clipping norm and some below."""
    draw = np.random.default_rng(1)
    size = np.float32(np.geomspace(0.01, 3.0, STEPS))
    return jax.tree.map(lambda x: jnp.float32(draw.normal(size=(STEPS, *x.shape))) * size.reshape(-1, *[1] * x.ndim), params())


@functools.partial(jax.jit, static_argnums=0)
def ours(name, hyper, gradients):
    def step(carried, gradient):
        params, state = carried
        params, state, scalars = optim.apply_gradient(name, hyper, state, params, gradient, CLOCK, 3)
        return (params, state), (params, scalars)

    start = params()
    return jax.lax.scan(step, (start, optim.init(name, hyper, start)), gradients)


def optax_transform(name, h):
    rate = float(h.learning_rate)
    return {
        "adam": lambda: optax.adam(rate, eps=h.optimiser_epsilon, eps_root=1e-16),
        "adamw": lambda: optax.adamw(rate, eps=h.optimiser_epsilon, eps_root=1e-16, weight_decay=h.weight_decay),
        "radam": lambda: optax.radam(rate, eps=h.optimiser_epsilon, eps_root=1e-16),
        "rmsprop": lambda: optax.rmsprop(rate, decay=0.99, eps=h.optimiser_epsilon),
        "sgd": lambda: optax.sgd(rate, momentum=h.momentum),
    }[name]()


@pytest.mark.parametrize("name", optim.NAMES)
def test_each_step_on_the_flat_vector_equals_optax_on_the_tree(name):
    hyper = Hyper()
    chain = optax.chain(optax.clip_by_global_norm(hyper.max_grad_norm), optax_transform(name, hyper))

    def step(carried, gradient):
        params, state = carried
        updates, state = chain.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), params

    _, expected = jax.jit(lambda g: jax.lax.scan(step, (params(), chain.init(params())), g))(gradients())
    (_, state), (got, scalars) = ours(name, as_hyper(hyper), gradients())
    jax.tree.map(lambda x, y: close(x, y, rtol=1e-5, atol=1e-7), got, expected)
    assert state.count == STEPS and state.count.dtype == jnp.int32
    norms = np.sqrt(sum(np.sum(np.square(g.reshape(STEPS, -1)), -1) for g in jax.tree.leaves(gradients())))
    close(scalars["grad_norm"], norms, rtol=1e-5)
    close(scalars["learning_rate"], np.full(STEPS, 0.02), rtol=1e-6)
    assert norms[0] < hyper.max_grad_norm < norms[-1]


@pytest.mark.parametrize("name", optim.NAMES)
def test_every_field_changes_the_result_where_it_is_live(name):
    base, (path, _) = as_hyper(Hyper()), ours(name, as_hyper(Hyper()), gradients())[1]
    for field in dataclasses.fields(Hyper):
        changed = base.replace(**{field.name: getattr(base, field.name) * 0.5 + 1e-3})
        other, _ = ours(name, changed, gradients())[1]
        moved = any(bool(np.any(x != y)) for x, y in zip(jax.tree.leaves(path), jax.tree.leaves(other), strict=True))
        assert moved == (field.name in LIVE[name]), field.name


@pytest.mark.parametrize("limit", [0.0, 0.5])
def test_clipping_a_zero_gradient_or_to_zero_gives_zeros(limit):
    clip = optim.clip_by_global_norm(jnp.float32(limit))
    for gradient in (jnp.zeros(4), jnp.ones(4)):
        clipped, _ = clip.update(gradient, clip.init(gradient))
        close(optax.tree.norm(clipped), min(limit, float(jnp.linalg.norm(gradient))), atol=1e-6)
        slope = jax.jacobian(lambda g: clip.update(g, optax.EmptyState())[0])(gradient)
        assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("name", optim.NAMES)
@pytest.mark.parametrize("size", [0.0, 1.0])
def test_derivatives_through_steps_are_finite_even_at_a_zero_gradient(name, size):
    """By the size of the gradient and by every number of the optimiser."""

    def final(hyper, size):
        (last, _), _ = ours(name, hyper, jax.tree.map(lambda g: size * g, gradients()))
        return sum(jnp.sum(x) for x in jax.tree.leaves(last))

    by_hyper, by_size = jax.grad(final, argnums=(0, 1))(as_hyper(Hyper()), jnp.float32(size))
    assert np.all(np.isfinite(jax.tree.leaves(by_hyper))) and np.isfinite(by_size)
    if size:
        assert by_hyper.learning_rate != 0.0


def test_the_learning_rate_follows_its_schedule_over_all_gradient_steps():
    """Four iterations of three gradient steps; beyond them it stays at the end and nothing turns negative."""
    rates = {}
    for per in ("step", "iteration"):
        hyper = as_hyper(Hyper(learning_rate=Schedule(0.12, 0.0, per=per)))
        rates[per] = np.asarray(ours("adam", hyper, gradients())[1][1]["learning_rate"])
    close(rates["step"], 0.12 * (1 - np.arange(1, 13) / 12), atol=1e-7)
    close(rates["iteration"], 0.12 * (1 - np.repeat(np.arange(4), 3) / 4), atol=1e-7)
    beyond = optim.learning_rate(Schedule(0.12, 0.0), jnp.int32(100), CLOCK, 3)
    assert beyond == 0.0


def test_a_swept_learning_rate_is_one_program_and_equals_single_runs():
    """A constant rate through the mapped and the single path, as a number and as a schedule."""
    rates = jnp.float32([0.001, 0.02])
    hyper = as_hyper(Hyper()).replace(learning_rate=rates)
    axes = jax.tree.map(lambda _: None, as_hyper(Hyper())).replace(learning_rate=0)
    (swept, _), _ = jax.vmap(lambda h: ours("adam", h, gradients()), in_axes=(axes,))(hyper)
    for row, rate in enumerate(rates):
        for one in (rate, Schedule(rate, 0.0, kind="constant")):
            (single, _), _ = ours("adam", as_hyper(Hyper(learning_rate=one)), gradients())
            jax.tree.map(lambda x, y, row=row: close(x[row], y, rtol=1e-5, atol=1e-7), swept, single)

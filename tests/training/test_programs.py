"""What the programs of training contain: no callbacks, no effects, no key used twice."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.extend import core

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.training.train import make_train

from .support import Drift, clock, hyper, quick, small_loop

LOOPS = {
    "ppo": {"env": Drift()},
    "gru, normalised": {
        "env": Drift(),
        "network": {"torso": "gru", "recurrent": 8},
        "config": {"normalise_observations": True, "normalise_rewards": True},
    },
    "continuous": {"env": "probe/continuous", "reset": "pool"},
    "mappo": {"env": "probe/team", "name": "mappo"},
    "ippo": {"env": "probe/individual", "name": "ippo", "network": {"sharing": "agent"}},
}
REPLAY = {"capacity": 256, "batch_size": 4, "learning_starts": 8}
LEARNERS = LOOPS | {
    "dqn": {"env": "probe/policy", "name": "dqn", "config": REPLAY | {"prioritised": True}},
    "qmix, gru": {"env": "probe/team", "name": "qmix", "network": LOOPS["gru, normalised"]["network"], "config": REPLAY},
    "pqn": {"env": "probe/policy", "name": "pqn"},
}


def equations(jaxpr):
    """All equations of a jaxpr, those of its inner programs included."""
    if isinstance(jaxpr, core.ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    for equation in jaxpr.eqns:
        yield equation
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda x: isinstance(x, core.Jaxpr | core.ClosedJaxpr)):
            if isinstance(inner, core.Jaxpr | core.ClosedJaxpr):
                yield from equations(inner)


def primitives(jaxpr):
    """The names of all primitives in a jaxpr."""
    return {equation.primitive.name for equation in equations(jaxpr)}


def factorisations(jaxpr):
    """The rank of every matrix, or batch of matrices, that LAPACK factorises."""
    names = ("qr", "geqrf", "householder_product", "cholesky", "lu", "eigh", "svd")
    return [equation.invars[0].aval.ndim for equation in equations(jaxpr) if equation.primitive.name in names]


def host_trips(names):
    return {name for name in names if "callback" in name or "debug" in name or name in ("infeed", "outfeed")}


def test_a_callback_would_be_found():
    def body(x, _):
        jax.lax.cond(x > 0, lambda: jax.debug.print("{}", x), lambda: None)
        return x, None

    def function(x):
        return jax.vmap(lambda x: jax.lax.scan(body, x, length=2)[0])(x)

    assert host_trips(primitives(jax.make_jaxpr(function)(jnp.ones(3))))


@pytest.mark.parametrize("name", LOOPS)
def test_a_run_never_leaves_the_device(name):
    program = jax.make_jaxpr(make_train(small_loop(**LOOPS[name])))(hyper(), jax.random.key(0))
    names = primitives(program)
    assert {"scan", "while", "dot_general"} <= names, "the walk must reach the inner programs"
    assert not host_trips(names)
    assert not program.effects


@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_uses_no_key_twice(name):
    loop = small_loop(**LEARNERS[name])
    numbers = as_hyper(get_algorithm(LEARNERS[name].get("name", "ppo")).hyper(learning_rate=1e-3))
    with jax.debug_key_reuse(True):
        state = quick(loop.init)(jax.random.key(0), numbers)
        state, _ = quick(loop.advance)(state, numbers, clock(0, 1))
        quick(loop.evaluate)(state, numbers, jnp.int32(0))


def test_a_key_used_twice_would_be_found():
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(lambda key: jax.random.normal(key) + jax.random.uniform(key))(jax.random.key(0))


def test_a_program_moves_nothing_between_host_and_device():
    loop = small_loop(Drift())
    numbers, key, now, number = hyper(), jax.random.key(0), clock(0, 1), jnp.int32(0)
    init, advance, evaluate = (quick(f) for f in (loop.init, loop.advance, loop.evaluate))
    with jax.transfer_guard("disallow"):
        state, _ = advance(init(key, numbers), numbers, now)
        jax.block_until_ready(evaluate(state, numbers, number))


@pytest.mark.parametrize("name", LOOPS)
def test_init_factorises_one_matrix_at_a_time(name):
    """Batched QR on two virtual CPU devices deadlocks in jaxlib: each device blocks a thread of the pool that both need."""
    found = factorisations(jax.make_jaxpr(small_loop(**LOOPS[name]).init)(jax.random.key(0), hyper()))
    assert found and max(found) == 2


def test_a_batched_factorisation_would_be_found():
    assert max(factorisations(jax.make_jaxpr(jax.vmap(jnp.linalg.qr))(jnp.ones((3, 2, 2))))) == 3

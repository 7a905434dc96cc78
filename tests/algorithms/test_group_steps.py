"""Groups of agents at a pace of their own: frozen, slow or seldom, while nobody else's step changes."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from agentgym_jax.algorithms import optim
from agentgym_jax.algorithms.group_steps import GroupSteps
from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.models.sharing import GROUPS
from agentgym_jax.ops.schedules import as_hyper
from agentgym_jax.types import Clock
from envs_jax.core import EnvSpec, Group
from envs_jax.spaces import Box, Discrete
from tests.training.support import quick, small_loop

ITERATIONS = 6
SEE, ACT = Box(-1, 1, (1,)), Discrete(2)
SPEC = EnvSpec(SEE, ACT, 3, groups=(Group("actor", 1, SEE, ACT), Group("guard", 2, SEE, ACT)))


@struct.dataclass
class Hyper:
    learning_rate: object = 0.1
    max_grad_norm: object = 1e9
    optimiser_epsilon: object = 1e-5
    weight_decay: object = 0.0
    momentum: object = 0.0


def params():
    """Of an actor with a network for each group, one of which is called like the role, and of a critic that all share."""
    return {
        "actor": {GROUPS: {"actor": {"w": jnp.float32([1.0, 2.0])}, "guard": {"w": jnp.float32([3.0])}}},
        "critic": {"actor": jnp.float32([4.0, 5.0])},
    }


@functools.partial(jax.jit, static_argnums=(0, 1))
def path(name, steps):
    """Parameters after each of six iterations of one step with gradient 1."""
    hyper = as_hyper(Hyper())

    def step(carried, iteration):
        params, state = carried
        gradient, clock = jax.tree.map(jnp.ones_like, params), Clock(iteration, jnp.int32(ITERATIONS))
        params, state, _ = optim.apply_gradient(name, hyper, state, params, gradient, clock, 1, steps)
        return (params, state), params

    return jax.lax.scan(step, (params(), optim.init(name, hyper, params())), jnp.arange(ITERATIONS, dtype=jnp.int32))[1]


def of(path, group):
    return np.asarray(path["actor"][GROUPS][group]["w"])


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_factor_nought_freezes_a_group_exactly_and_nobody_else(name):
    plain, frozen = path(name, None), path(name, GroupSteps({"guard": {"learning_rate": 0}}))
    np.testing.assert_array_equal(of(frozen, "guard"), np.full((ITERATIONS, 1), 3.0, np.float32))
    assert np.all(of(plain, "guard") != 3.0)
    np.testing.assert_array_equal(of(frozen, "actor"), of(plain, "actor"))
    np.testing.assert_array_equal(frozen["critic"]["actor"], plain["critic"]["actor"])


def test_steps_are_multiplied_and_taken_in_every_kth_iteration():
    """With plain gradient descent and a gradient of 1 each step is the learning rate, 0.1."""
    steps = GroupSteps({"actor": {"learning_rate": 0.5, "period": 2}, "guard": {"period": 3}})
    taken, plain = path("sgd", steps), path("sgd", None)
    np.testing.assert_allclose(of(taken, "actor")[:, 0], 1 - 0.05 * np.array([1, 1, 2, 2, 3, 3]), rtol=1e-6)
    np.testing.assert_allclose(of(taken, "guard")[:, 0], 3 - 0.1 * np.array([1, 1, 1, 2, 2, 2]), rtol=1e-6)
    np.testing.assert_array_equal(of(taken, "actor")[1::2], of(taken, "actor")[::2])
    np.testing.assert_array_equal(taken["critic"]["actor"], plain["critic"]["actor"])


def test_an_empty_mapping_is_no_mapping():
    assert not GroupSteps({}) and GroupSteps({}) == {}
    jax.tree.map(np.testing.assert_array_equal, path("adam", GroupSteps({})), path("adam", None))


def test_it_is_hashable_and_plain_data_again():
    steps = GroupSteps({"guard": {"period": 2}})
    assert steps == GroupSteps({"guard": {"learning_rate": 1, "period": 2}}) and hash(steps) == hash(GroupSteps(steps))
    assert steps != GroupSteps({"guard": {"period": 3}})
    assert {name: dict(pace) for name, pace in steps.items()} == {"guard": {"learning_rate": 1.0, "period": 2}}


def test_what_fits_no_group_is_refused_in_one_line():
    known = {"guard": {"period": 2}}
    GroupSteps(known).check(SPEC, lambda key: params())
    GroupSteps({}).check(EnvSpec(SEE, ACT, 3), lambda key: {})
    for given, spec, tree, message in (
        ({"guards": {}}, SPEC, params(), "'guards' is not one of actor, guard; did you mean 'guard'"),
        (known, EnvSpec(SEE, ACT, 3), params(), "form no groups"),
        (known, SPEC, {"actor": {"guard": jnp.zeros(1)}}, "guard shares its parameters .* network.sharing: group"),
    ):
        with pytest.raises(ConfigError, match=message):
            GroupSteps(given).check(spec, lambda key, tree=tree: tree)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("guard", "algorithm.group_steps: must be"),
        ({"guard": 0.5}, r"algorithm.group_steps.guard: must be \{learning_rate"),
        ({"guard": {"perod": 2}}, "did you mean 'period'"),
        ({"guard": {"period": 0}}, "guard.period: must be a whole number of at least 1, got 0"),
        ({"guard": {"learning_rate": -1}}, "guard.learning_rate: must be a number of at least 0, got -1"),
        ({"guard": {"learning_rate": True}}, "guard.learning_rate: must be"),
    ],
)
def test_wrong_settings_are_refused_by_name_and_value(given, message):
    with pytest.raises(ConfigError, match=message):
        GroupSteps(given)


@pytest.mark.parametrize("name", ["ippo", "iql", "pqn_vdn"])
def test_every_learner_freezes_a_group_and_teaches_the_other(name):
    """A factor of 0 keeps the guard's own parameters to the bit; the scouts' move."""
    settings = {"group_steps": {"guard": {"learning_rate": 0.0}}}
    settings |= {"capacity": 64, "batch_size": 8, "learning_starts": 32} if name == "iql" else {}
    loop = small_loop("probe/two_groups", name, {"sharing": "group"}, settings)
    numbers = as_hyper(get_algorithm(name).hyper(learning_rate=1e-2))
    before = quick(loop.init)(jax.random.key(0), numbers)
    after, _ = quick(loop.advance)(before, numbers, Clock(jnp.int32(0), jnp.int32(2)))
    equal = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), before.learner.params, after.learner.params)
    found = [("guard" in jax.tree_util.keystr(path), same) for path, same in jax.tree_util.tree_leaves_with_path(equal)]
    assert {same for guard, same in found if guard} == {True} and not all(same for guard, same in found if not guard)


def test_groups_that_share_parameters_are_refused_before_anything_is_built():
    with pytest.raises(ConfigError, match="algorithm.group_steps: guard shares its parameters .* network.sharing: group"):
        small_loop("probe/two_groups", "ippo", None, {"group_steps": {"guard": {"period": 2}}})

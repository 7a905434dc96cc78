from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs_jax.core import EnvSpec, Group, TimeStep, _choice
from envs_jax.spaces import Box, Discrete, MultiDiscrete, mask_size

from .stubs import Counter, Deaths, play


def timestep(mask=(), discount=(1.0,), last=False):
    discount = jnp.asarray(discount, jnp.float32)
    return TimeStep(jnp.zeros(1), jnp.zeros_like(discount), discount, discount > 0, jnp.bool_(last), mask)


@pytest.mark.parametrize(
    "space",
    [
        Discrete(3),
        MultiDiscrete((2, 5)),
        Box(-1, 1, (2, 3)),
        Box((-np.inf, 0), (np.inf, 2), (2,)),
        Box(0, 255, (2, 2, 1), np.uint8),
    ],
    ids=str,
)
def test_spaces_contain_their_samples(space):
    samples = jax.vmap(space.sample)(jax.random.split(jax.random.key(0), 200))
    assert samples.shape == (200, *space.shape) and samples.dtype == space.dtype
    assert jax.vmap(space.contains)(samples).all()
    assert hash(space) == hash(dataclasses.replace(space)) and space == dataclasses.replace(space)


def test_spaces_refuse_what_is_outside():
    assert not Discrete(3).contains(jnp.int32(3)) and not Discrete(3).contains(jnp.int32(-1))
    assert not Discrete(3).contains(jnp.float32(1)) and not Discrete(3).contains(jnp.zeros(1, jnp.int32))
    assert not MultiDiscrete((2, 2)).contains(jnp.asarray([0, 2]))
    assert not Box(0, 1, (2,)).contains(jnp.asarray([0.5, 1.5])) and not Box(0, 1, (2,)).contains(jnp.zeros(3))
    assert not Box(0, 1, (2,)).contains(jnp.zeros(2, jnp.int32))
    assert not Box(0, 1, (1,)).contains(jnp.asarray([jnp.nan]))


def test_spaces_sample_every_element():
    samples = jax.vmap(MultiDiscrete((2, 3)).sample)(jax.random.split(jax.random.key(0), 200))
    assert {tuple(row) for row in np.asarray(samples).tolist()} == {(i, j) for i in range(2) for j in range(3)}
    bytes_ = jax.vmap(Box(3, 5, (1,), np.uint8).sample)(jax.random.split(jax.random.key(0), 100))
    assert set(np.asarray(bytes_).ravel().tolist()) == {3, 4, 5}


@pytest.mark.parametrize(
    "build", [lambda: Discrete(0), lambda: MultiDiscrete(()), lambda: MultiDiscrete((2, 0)), lambda: Box(1, 0, (2,))]
)
def test_spaces_refuse_nonsense(build):
    with pytest.raises(ValueError, match=r"Discrete\.n|MultiDiscrete\.nvec|Box\.low"):
        build()


def test_box_bounds_may_be_arrays():
    box = Box(np.asarray([-1.0, -2.0]), jnp.asarray([1.0, 2.0]), (2,))
    assert box == Box((-1, -2), (1, 2), (2,)) and box.bounded
    assert not Box(0, np.inf, (2,)).bounded
    assert [mask_size(space) for space in (Discrete(3), MultiDiscrete((2, 5)), box)] == [3, 7, 0]


def test_spec_is_hashable_and_checks_itself():
    spec = EnvSpec(Box(0, 1, (2,)), Discrete(2), metrics={"b": "sum", "a": "last"})
    assert spec.metrics == (("a", "last"), ("b", "sum")) and hash(spec) == hash(dataclasses.replace(spec))
    with pytest.raises(ValueError, match="reward"):
        EnvSpec(Box(0, 1), Discrete(2), reward="shared")
    with pytest.raises(ValueError, match="metrics"):
        EnvSpec(Box(0, 1), Discrete(2), metrics={"a": "max"})
    with pytest.raises(ValueError, match="1 agents of 2"):
        EnvSpec(Box(0, 1, (1,)), Discrete(2), num_agents=2, groups=(Group("g", 1, Box(0, 1, (1,)), Discrete(2)),))


def test_ends_of_both_kinds():
    assert [bool(timestep(last=True, discount=d).terminated) for d in ((0.0,), (1.0,), (0.0, 1.0))] == [True, False, False]
    assert [bool(timestep(last=True, discount=d).truncated) for d in ((0.0,), (1.0,), (0.0, 1.0))] == [False, True, True]
    assert not timestep(discount=(0.0,)).terminated and not timestep().truncated


@given(st.lists(st.booleans(), min_size=5, max_size=5), st.integers(0, 2**31 - 1))
def test_random_actions_are_legal_in_every_head(mask, seed):
    spec = EnvSpec(Box(0, 1, (1,)), MultiDiscrete((3, 2)), num_agents=1)
    action = spec.sample_actions(jax.random.key(seed), timestep(jnp.asarray([mask])))
    for head, legal in zip(np.asarray(action)[0], (mask[:3], mask[3:]), strict=True):
        assert legal[head] or (head == 0 and not any(legal))


def test_random_actions_are_uniform_over_the_legal_ones():
    spec = EnvSpec(Box(0, 1, (1,)), Discrete(4))
    step = timestep(jnp.asarray([True, False, True, True]))
    actions = jax.vmap(lambda key: spec.sample_actions(key, step))(jax.random.split(jax.random.key(0), 3000))
    np.testing.assert_allclose(np.bincount(actions, minlength=4) / 3000, [1 / 3, 0, 1 / 3, 1 / 3], atol=0.04)


def test_random_actions_are_uniform_where_nothing_is_masked():
    spec = EnvSpec(Box(0, 1, (1,)), Discrete(5), num_agents=2)
    draw = jax.vmap(lambda key: spec.sample_actions(key, timestep(discount=(1.0, 1.0))))
    actions = np.asarray(draw(jax.random.split(jax.random.key(0), 3000)))
    for agent in range(2):
        np.testing.assert_allclose(np.bincount(actions[:, agent], minlength=5) / 3000, [1 / 5] * 5, atol=0.03)
    assert abs(np.corrcoef(actions.T)[0, 1]) < 0.06


@pytest.mark.parametrize("size", (1, 2, 3, 5, 7, 64, 1000))
def test_the_largest_random_number_is_the_last_legal_choice(size):
    largest = jnp.float32(1 - 2**-23)
    assert _choice(largest, size, None) == size - 1
    assert _choice(largest, size, jnp.arange(size) != size - 1) == max(size - 2, 0)


@pytest.mark.parametrize("space", (Discrete(5), MultiDiscrete((5, 4)), Box(-2, 2, (3,))))
def test_one_key_serves_many_environments_and_more_of_them_change_no_action(space):
    spec = EnvSpec(Box(0, 1, (1,)), space, num_agents=2)
    draw = lambda n: spec.sample_actions(jax.random.key(0), jax.vmap(lambda _: timestep(discount=(1.0, 1.0)))(jnp.arange(n)))  # noqa: E731
    actions = np.asarray(draw(3000), np.float64)
    assert actions.shape == (3000, 2, *space.shape) and draw(3).dtype == space.dtype
    np.testing.assert_array_equal(draw(3), actions[:3])
    columns = actions.reshape(3000, -1)
    between = np.corrcoef(np.concatenate([columns[:-1], columns[1:]], axis=1).T)
    assert np.abs(between - np.eye(len(between))).max() < 0.08


@pytest.mark.parametrize("space", (Discrete(5), MultiDiscrete((5, 4)), Box(0, np.inf, (3,)), Box(0, 9, (2,), np.int8)))
def test_spaces_draw_as_many_as_asked(space):
    drawn = space.sample(jax.random.key(0), (4, 7))
    assert drawn.shape == (4, 7, *space.shape) and drawn.dtype == space.dtype
    assert jax.vmap(jax.vmap(space.contains))(drawn).all() and len(np.unique(drawn)) > 3
    assert space.contains(space.sample(jax.random.key(0)))


def test_random_boxes_differ_between_agents():
    spec = EnvSpec(Box(0, 1, (1,)), Box(-2, 2, (3,)), num_agents=2)
    action = spec.sample_actions(jax.random.PRNGKey(0), timestep(discount=(1.0, 1.0)))
    assert action.shape == (2, 3) and not np.allclose(action[0], action[1])


def test_step_rests_after_the_end():
    steps = play(Counter(length=3), 6, jnp.ones(6, jnp.int32))
    assert steps.last.tolist() == [False] * 3 + [True] * 4
    assert steps.reward.tolist() == [0, 1, 1, 1, 0, 0, 0]
    assert steps.discount.tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert (np.floor(steps.observation[:, 0]) == [0, 1, 2, 3, 3, 3, 3]).all()


def test_the_episode_ends_with_its_last_agent():
    steps = play(Deaths(), 10)
    assert int(steps.last.argmax()) == 9
    assert steps.reward.sum(0).tolist() == [2 * 1, 5 * 2, 9 * 3]
    assert (steps.reward[3:, 0] == 0).all() and not steps.alive[2:, 0].any()
    assert steps.metrics["living"].tolist() == [3, 3, 2, 2, 2, 1, 1, 1, 1, 0, 0]


NARROW, WIDE = (Box(0, 1, (3,)), Discrete(2)), (Box(0, 1, (5,)), Discrete(4))


def grouped(*spaces, agents=3, sizes=(2, 1), names=("scouts", "guard"), widest=WIDE):
    """The spec of agents in groups with these pairs of spaces."""
    groups = tuple(Group(name, size, *pair) for name, size, pair in zip(names, sizes, spaces, strict=True))
    return EnvSpec(*widest, num_agents=agents, groups=groups)


@pytest.mark.parametrize(
    ("spaces", "changes", "message"),
    [
        ((NARROW, WIDE), {"agents": 4}, r"cover 2 \+ 1 = 3 agents of 4"),
        ((NARROW, WIDE), {"agents": None}, r"cover 2 \+ 1 = 3 agents of None"),
        ((NARROW, WIDE), {"sizes": (3, 0)}, r"cover 3 \+ 0"),
        ((NARROW, WIDE), {"names": ("scouts", "scouts")}, "a name each, and different ones"),
        ((NARROW, (WIDE[0], Box(-1, 1, (2,)))), {}, "guard has Box actions, the widest are Discrete: kinds do not mix"),
        ((NARROW, (WIDE[0], Discrete(5))), {}, "spaces of guard, .* do not fit"),
        (((Box(0, 1, (6,)), Discrete(2)), WIDE), {}, "spaces of scouts, .* do not fit"),
        (((Box(0, 1, (3, 1)), Discrete(2)), WIDE), {}, "spaces of scouts, .* do not fit"),
    ],
)
def test_groups_that_do_not_fit_are_refused_in_one_line(spaces, changes, message):
    grouped(NARROW, WIDE)
    with pytest.raises(ValueError, match=message) as error:
        grouped(*spaces, **changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("narrow", "wide", "own"),
    [
        (Discrete(2), Discrete(4), [1, 1, 0, 0]),
        (Box(-1, 1, (1,)), Box(-1, 1, (3,)), [1, 0, 0]),
        (MultiDiscrete((2, 2)), MultiDiscrete((2, 3)), [1, 1, 1, 1, 0]),
        (MultiDiscrete((2,)), MultiDiscrete((3, 2)), [1, 1, 0, 1, 0]),  # of a missing head, choice 0 stays
    ],
)
def test_what_of_the_widest_action_is_an_agents_own(narrow, wide, own):
    see = Box(0, 1, (3,))
    spec = grouped((see, narrow), (see, wide), widest=(see, wide))
    np.testing.assert_array_equal(spec.own_actions, [own, own, [1] * len(own)])
    assert EnvSpec(see, wide, num_agents=3).own_actions is None
    assert grouped((see, wide), (see, wide), widest=(see, wide)).own_actions is None


@pytest.mark.parametrize("masked", [False, True])
def test_random_actions_are_an_agents_own_even_without_a_mask(masked):
    spec = grouped(NARROW, WIDE)
    mask = jnp.broadcast_to(jnp.asarray([False, True, True, True]), (3, 4)) if masked else ()
    step = TimeStep(jnp.zeros((3, 5)), jnp.zeros(3), jnp.ones(3), jnp.ones(3, bool), jnp.bool_(False), mask)
    actions = np.asarray(jax.vmap(lambda key: spec.sample_actions(key, step))(jax.random.split(jax.random.key(0), 200)))
    assert [set(row) for row in actions.T] == ([{1}, {1}, {1, 2, 3}] if masked else [{0, 1}, {0, 1}, {0, 1, 2, 3}])

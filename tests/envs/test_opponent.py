"""A group that a policy plays: what is left for the others, the policy's memory, its strength."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.core import EnvSpec, Group
from envs_jax.groups import part_of
from envs_jax.probes import make
from envs_jax.scripts import Script, reflex
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from envs_jax.wrappers import AgentIds, Joint, Opponent, TimeLimit, apply_wrappers
from tests.duel import LENGTH, Duel
from tests.support import compiled

from .contract import check
from .stubs import Counter, Deaths, play

KEY = jax.random.key(0)
equal = np.testing.assert_array_equal


def acts(env, action, steps=LENGTH):
    """The TimeSteps of an episode in which the agents that are left do these things [steps, k], and the rest state."""
    return play(env, steps, jnp.asarray(action, jnp.int32))


@pytest.mark.parametrize("group", ["hiders", "seeker"])
def test_it_keeps_the_contract(group):
    for env in (Duel(), Duel("team")):
        check(Opponent(env, group, "random", 0.5))
    check(Opponent(Deaths(widths=(1, 3, 2)), "g1", "random"))
    check(Joint(Opponent(TimeLimit(Duel(), 3), group, "random")))


def test_the_others_are_an_environment_of_their_own():
    """Deaths, rewards, masks and ends are theirs; hider 0 dies after two steps."""
    hunted = Opponent(Duel(), "seeker", "copy")
    spec = hunted.spec
    assert (spec.num_agents, spec.groups, spec.action_space) == (2, (), Discrete(2))
    assert spec.observation_space == Box((0, 0), (LENGTH, 1), (2,))
    steps = acts(hunted, [[0, 0], [0, 1], [0, 0], [0, 1]])
    assert steps.observation.shape == (LENGTH + 1, 2, 2) and steps.action_mask.all() and steps.action_mask.shape[1:] == (2, 2)
    equal(steps.observation[:, :, 0], np.arange(LENGTH + 1)[:, None] * [1, 1])
    assert steps.alive.tolist() == [[True, True], [True, True], *[[False, True]] * 3]
    assert steps.discount.tolist() == [[1, 1], [1, 1], [0, 1], [0, 1], [0, 0]]
    assert steps.last.tolist() == [False] * LENGTH + [True]
    mark = steps.observation[0, 0, 1]
    paid = np.float32([[0, 0], [-1, -1], [-1, 0], [0, 0], [0, 0]])  # it copies what hider 1 did before: 0, 0, 1, 0
    lives = np.float32([[0, 0], [1, 1], [1, 1], [0, 1], [0, 1]])
    np.testing.assert_allclose(steps.reward, paid + mark * lives, atol=1e-6)
    assert steps.metrics["found"].tolist() == [0, 2, 1, 0, 0], "metrics are unchanged"
    seeking = Opponent(Duel(), "hiders", "still")
    assert (seeking.spec.num_agents, seeking.spec.action_space) == (1, Discrete(3))
    steps = acts(seeking, [[0], [1], [2], [0]])
    assert steps.reward[:, 0].tolist() == [0, 2, 0, 0, 1]
    assert steps.action_mask[:, 0, 2].tolist() == [True, False, True, False, True]


def test_a_memory_belongs_to_an_episode_and_an_agent():
    """`alternate` counts its steps: the seeker that does so too finds all, in every episode."""
    env = Opponent(Duel(), "hiders", "alternate")
    for key in jax.random.split(KEY, 2):
        steps = play(env, LENGTH, jnp.asarray([[0], [1], [0], [1]], jnp.int32), key)
        assert steps.reward[:, 0].tolist() == [0, 2, 2, 1, 1]
    births = Opponent(two_slots(), "slots", Script(jnp.zeros, lambda carry, *rest: (carry, remembered(carry, rest[-1]))))
    params = births.default_params

    @compiled
    def resets():
        start = births.initial(KEY, params)
        middle, _ = births.advance(KEY, start, jnp.zeros(1, jnp.int32), params)
        return [state.reset for state in (start, middle, births.advance(KEY, middle, jnp.zeros(1, jnp.int32), params)[0])]

    reset = [row.tolist() for row in resets()]
    assert reset == [[True] * 3, [False] * 3, [False, False, True]], "somebody is born into the last slot at step 2"


def remembered(carry, reset):
    return jnp.where(reset, 0, 1) + 0 * carry.astype(jnp.int32)


def two_slots():
    """`probe/respawn` with its slots as one group beside a group that does nothing: an agent dies and another is born."""
    env = make("respawn", reward="individual")

    class Beside(type(env)):
        def __init__(self):
            super().__init__("individual")
            space, action = self.spec.observation_space, self.spec.action_space
            groups = (Group("idle", 1, space, action), Group("slots", 2, space, action))
            self.spec = EnvSpec(space, action, 3, episode_limit=3, groups=groups)

        def observe(self, state, params):
            inside = super().observe(state, params)
            rows = ("observation", "reward", "discount", "alive")
            return inside.replace(
                **{name: jnp.concatenate([x[:1], x]) for name in rows for x in [getattr(inside, name)]}, metrics={}
            )

        def advance(self, key, state, action, params):
            state, reward = super().advance(key, state, action[1:], params)
            return state, jnp.append(jnp.float32(0), reward)

    return Beside()


@pytest.mark.parametrize(("strength", "part"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_strength_is_the_part_of_steps_that_the_policy_acts(strength, part):
    """`still` does 0; a random hider does it half of the time. The number travels with the params."""
    env = Opponent(Duel(), "hiders", "still")
    params = env.default_params | {"strength": jnp.float32(strength), "prize": jnp.float32(3)}

    @compiled
    def found(params):
        state, keys = env.initial(KEY, params), jax.random.split(KEY, 2000)
        return jax.vmap(lambda key: env.advance(key, state, jnp.zeros(1, jnp.int32), params)[1][0])(keys)

    paid = np.asarray(found(params)) / 3
    assert abs(paid.mean() / 2 - part) < 0.03
    if strength < 1:
        pairs = np.mean(paid == 2)
        assert abs(pairs - part**2) < 0.04, "each agent draws for itself"


def test_random_opponents_act_legally():
    steps = play(Opponent(Duel(), "seeker", "random"), LENGTH)
    assert steps.last[-1]
    env = Opponent(Duel(), "seeker", "random")
    nothing, params = jnp.zeros(2, jnp.int32), env.default_params

    @compiled
    def did():
        state, _ = env.advance(KEY, env.initial(KEY, params), nothing, params)
        return jax.vmap(lambda key: env.advance(key, state, nothing, params)[0].inner.did[2])(jax.random.split(KEY, 200))

    assert set(np.asarray(did()).tolist()) == {0, 1}, "2 is illegal at odd times"


def test_several_groups_may_be_left_and_one_after_another_played():
    env = Opponent(Deaths(widths=(1, 3, 2)), "g1", "random")
    assert [group.name for group in env.spec.groups] == ["g0", "g2"] and env.spec.observation_space.shape == (2,)
    last = Opponent(env, "g0", reflex(lambda key, seen, mask: jnp.ones(1, jnp.int32)), 0.25)
    assert last.spec.num_agents == 1 and last.spec.groups == () and last.spec.observation_space.shape == (2,)
    assert last.default_params == {"strength": 0.25}
    steps = acts(last, np.zeros((9, 1)), 9)
    assert steps.reward[:, 0].tolist() == [0, *[3] * 9] and steps.observation[:, 0, 1].tolist() == list(range(10))


@pytest.mark.parametrize(
    ("narrow", "wide", "whole", "own"),
    [
        (MultiDiscrete((2,)), MultiDiscrete((3, 4)), [[1, 0], [2, 3]], [[1], [2, 3]]),
        (Box(-1, 1, (1,)), Box(-2, 2, (2,)), [[0.5, 0], [1.5, -2.0]], [[0.5], [1.5, -2.0]]),
    ],
    ids=["choices", "continuous"],
)
def test_actions_of_any_kind_are_taken_apart_and_put_together(narrow, wide, whole, own):
    see = Box(0, 1, (1,))
    spec = EnvSpec(see, wide, 2, groups=(Group("a", 1, see, narrow), Group("b", 1, see, wide)))
    action = jnp.asarray(whole, wide.dtype)
    again = jnp.zeros_like(action)
    for name, values in zip(("a", "b"), own, strict=True):
        part = part_of(spec, [name])
        equal(part.actions(action), np.asarray([values], wide.dtype))
        again = part.into(part.actions(action), again)
    equal(again, whole)


def test_a_script_that_sees_all_gets_every_row():
    def act(carry, key, observation, action_mask, reset):
        assert observation.shape == (3, 4) and action_mask.shape == (3, 3) and reset.shape == (3,)
        return carry, observation[2:, 2].astype(jnp.int32)

    env = Opponent(Duel(), "seeker", Script(lambda k: (), act, sees_all=True))
    steps = acts(env, [[0, 0], [1, 0], [0, 0], [1, 0]])
    assert steps.metrics["found"].tolist() == [0, 2, 1, 0, 1]  # it copies hider 0: 0, 0, 1, 0


@pytest.mark.parametrize(
    ("env", "arguments", "message"),
    [
        (Counter(), {"group": "g", "policy": "random"}, "opponent needs .* groups"),
        (Duel(), {"group": "hider", "policy": "random"}, "'hider': did you mean hiders"),
        (Duel(), {"group": "hiders", "policy": "stil"}, "for hiders 'stil': did you mean still"),
        (Duel(), {"group": "hiders"}, "needs the argument `policy`"),
        (Duel(), {"group": "hiders", "policy": "still", "strength": 2}, "opponent.strength .* between 0 and 1, got 2"),
        (AgentIds(Duel()), {"group": "hiders", "policy": "still"}, "knows hiders as Duel makes them; put this wrapper before"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(env, arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        apply_wrappers(env, [{"name": "opponent", **arguments}])
    assert "\n" not in str(error.value)


def test_a_number_of_the_environments_own_is_not_hidden():
    env = Duel()
    env.default_params = {"strength": jnp.float32(1)}
    with pytest.raises(ValueError, match="number `strength` of its own"):
        Opponent(env, "hiders", "still")

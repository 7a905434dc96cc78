"""What learners of action values share: legal actions in every branch, memory in acting and training, teams, and one clock."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.algorithms import pqn, qlearning
from agentgym_jax.algorithms.action_values import ActionValues, greedy, networks
from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.models.base import Model
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.models.mixers import sum_mixer
from agentgym_jax.ops.schedules import Schedule, as_hyper
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.types import Clock, Sizes
from envs_jax.core import EnvSpec, Group, TimeStep
from envs_jax.spaces import Box, Discrete, MultiDiscrete
from tests.algorithms.value_windows import host, linear, spec_of, windows
from tests.support import Story, compiled

N, A, ACTIONS = 2500, 4, 5
SIZES = Sizes(num_envs=4, rollout_length=10)
GRU = NetworkConfig(torso="gru", hidden=(8,), recurrent=8)
close, same = np.testing.assert_allclose, np.testing.assert_array_equal


def clock(iteration, total=10):
    return Clock(jnp.int32(iteration), jnp.int32(total))


# ---- acting: 10,000 agents whose observation is the value of every action


@functools.cache
def acting(groups=()):
    """`ActionValues.act` of a network that gives back what it sees, compiled for either kind of acting."""
    spec = EnvSpec(Box(-9, 9, (ACTIONS,)), Discrete(ACTIONS), num_agents=A, groups=groups)
    seen = Model(lambda key: {}, lambda shape: (), lambda params, carry, inputs, reset: (inputs, carry))
    values = ActionValues(spec, seen, None)

    def act(observation, mask, epsilon, explore):
        step = TimeStep(observation, jnp.zeros((N, A)), jnp.ones((N, A)), jnp.ones((N, A), bool), jnp.zeros(N, bool), mask)
        return values.act({"network": {}}, (), step, jnp.zeros((N, A), bool), jax.random.key(5), epsilon, explore)[1]

    return compiled(act, static_argnames="explore")


@functools.cache
def crowd():
    """Values and masks [N, A, n]; agent 0 may do nothing at all, and the best of all is never legal."""
    draw = np.random.default_rng(0)
    values, mask = draw.normal(size=(N, A, ACTIONS)).astype(np.float32), draw.random((N, A, ACTIONS)) < 0.5
    np.put_along_axis(mask, values.argmax(-1)[..., None], False, axis=-1)
    mask[:, 0] = False
    return values, mask


def test_no_branch_takes_an_illegal_action():
    """10,000 draws each: all at random, all greedy, some of both; action 0 where nothing is legal."""
    values, mask = crowd()
    best = np.where(mask, values, -np.inf).argmax(-1)
    some = mask.any(-1)
    assert not some[:, 0].any() and some[:, 1:].mean() > 0.8
    for epsilon in (0.0, 0.3, 1.0):
        action = np.asarray(acting()(values, mask, epsilon, explore=True))
        assert action.dtype == np.int32
        assert np.take_along_axis(mask, action[..., None], -1)[..., 0][some].all()
        same(action[~some], 0)
        several = mask.sum(-1) > 1
        other = (action != best)[several].mean()
        expected = epsilon * (1 - 1 / mask.sum(-1)[several]).mean()
        close(other, expected, atol=4 * np.sqrt(expected / several.sum()))
    same(acting()(values, mask, 1.0, explore=False), np.where(some, best, 0))


def test_random_actions_are_uniform_over_the_legal_ones_and_each_agent_draws_for_itself():
    values, _ = crowd()
    legal = np.array([True, False, True, True, False])
    action = np.asarray(acting()(values, np.broadcast_to(legal, values.shape), 1.0, explore=True))
    share = np.bincount(action.ravel(), minlength=ACTIONS) / action.size
    close(share, legal / 3, atol=0.02)
    close((action[:, 0] == action[:, 1]).mean(), 1 / 3, atol=0.04)
    without_masks = np.asarray(acting()(values, (), 1.0, explore=True))
    close(np.bincount(without_masks.ravel(), minlength=ACTIONS) / action.size, 0.2, atol=0.02)
    coin = np.asarray(acting()(values, (), 0.5, explore=True)) == values.argmax(-1)
    close((coin[:, 0] == coin[:, 1]).mean(), 0.6**2 + 0.4**2, atol=0.04)


def test_an_agent_with_fewer_actions_never_draws_what_it_does_not_have():
    wide, narrow = (Group(str(n), 2, Box(-9, 9, (ACTIONS,)), Discrete(n)) for n in (ACTIONS, 2))
    values, mask = crowd()
    for given in ((), np.ones_like(mask)):
        action = np.asarray(acting((wide, narrow))(values, given, 1.0, explore=True))
        assert set(np.unique(action[:, :2])) == set(range(ACTIONS)) and set(np.unique(action[:, 2:])) == {0, 1}


def test_greedy_is_the_best_legal_action_and_0_without_any():
    values = jnp.float32([[1, 3, 2], [1, jnp.nan, 2], [5, 6, 7]])
    mask = jnp.array([[True, True, True], [True, False, True], [False, False, False]])
    assert greedy(values, mask).tolist() == [1, 2, 0]
    assert greedy(values[::2], ()).tolist() == greedy(values[::2], None).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["dqn", "pqn"])
def test_epsilon_follows_the_clock_alone(name):
    """The part of actions that are not greedy is ε of the schedule, whatever the key, the learner or the steps so far."""
    entry = get_algorithm(name)
    models = {"network": Model(lambda key: {}, lambda shape: (), lambda params, carry, inputs, reset: (inputs, carry))}
    config = entry.config(**{"dqn": {"capacity": N, "learning_starts": 1}, "pqn": {"minibatches": 1}}[name])
    spec = EnvSpec(Box(-9, 9, (ACTIONS,)), Discrete(ACTIONS), num_agents=A)
    algorithm = entry.make(spec, config, models, Sizes(N, 1))
    hyper = as_hyper(entry.hyper(epsilon=Schedule(1.0, 0.2, over=0.5)))
    values, _ = crowd()
    step = TimeStep(values, jnp.zeros((N, A)), jnp.ones((N, A)), jnp.ones((N, A), bool), jnp.zeros(N, bool), ())

    @compiled
    def act(key, iteration):
        learner = algorithm.init(key, hyper)
        return algorithm.act(learner, hyper, (), step, (), jnp.zeros((N, A), bool), key, clock(iteration), True)[1]

    keys = jax.vmap(jax.random.key)(jnp.arange(2))
    for iteration, epsilon in ((-3, 1.0), (0, 1.0), (2, 0.68), (5, 0.2), (9, 0.2)):
        action = np.asarray(jax.vmap(act, in_axes=(0, None))(keys, iteration))
        other = (action != values.argmax(-1)).mean((1, 2))
        close(other, 0.8 * epsilon, atol=0.02)
        assert np.any(action[0] != action[1])


# ---- teams


@pytest.mark.parametrize("mixer", ["none", "sum"])
def test_only_the_living_count_in_a_teams_values_and_all_when_nobody_lives(mixer):
    values = ActionValues(spec_of(3, "team"), linear(), sum_mixer() if mixer == "sum" else None)
    alive = jnp.array([[True, False, True], [False, False, False]])
    own = jnp.float32([[[1, 0, 0], [9e9, 9e9, 9e9], [0, 4, 0]]] * 2)
    own = own.at[1, 1].set(jnp.float32([7, 0, 0]))
    mask = jnp.ones_like(own, bool).at[:, 2, 1].set(False)  # the third agent's best: 0 is left
    params = {"mixer": {}}
    best = values.best(params, own, own, mask, alive, ())
    chosen = values.chosen(params, own, jnp.zeros((2, 3), jnp.int32), alive, ())
    if mixer == "sum":
        assert best.tolist() == [[1], [8]] and chosen.tolist() == [[1], [8]]
    else:
        assert best[0].tolist() == [1, 0.5, 0] and chosen[1].tolist() == [1, 7, 0]
        close(best[1], [8 / 3] * 3, rtol=1e-6)


@pytest.mark.parametrize("reward", ["individual", "team"])
def test_what_steps_paid(reward):
    """Whose rows teach, how long rewards go on and where traces end: for agents by themselves, and for a mixed team."""
    steps = windows(6, 12, 2, reward, recurrent=False).steps
    plain, alive = host(steps), np.asarray(steps.alive)
    alone_, mixed_ = (ActionValues(spec_of(2, reward), linear(), mixer).outcome for mixer in (None, sum_mixer()))
    alone = alone_(steps)
    nobody = ~alive.any(-1, keepdims=True)
    same(alone.weight, alive | nobody if reward == "team" else alive)
    same(alone.reward, steps.reward)
    same(alone.discount, steps.discount)
    renewed = np.concatenate([plain.reset[1:], np.zeros_like(plain.reset[:1])])
    same(alone.cut, plain.last[..., None] | renewed)
    if reward == "team":
        mixed = mixed_(steps)
        same(mixed.weight, np.ones((6, 12, 1)))
        same(mixed.reward, plain.reward[..., :1])
        same(mixed.discount, plain.discount[..., :1])
        same(mixed.cut, plain.last[..., None])
        torn = steps.replace(discount=steps.discount.at[..., 0].set(0.0))  # any agent's will do, should they not agree
        for outcome in (alone_(torn), mixed_(torn)):
            same(outcome.discount, np.broadcast_to(plain.discount[..., 1:], outcome.discount.shape))


# ---- memory: training sees the hidden states that acted


@pytest.mark.parametrize("name", ["iql", "qmix", "pqn_vdn"])
def test_hidden_states_in_training_are_those_of_acting_step_by_step(name):
    """Greedy acting through deaths, reused slots and ends: the actions are those of the values that training reckons."""
    env, entry = Story(agents=3, reward="team", world=True), get_algorithm(name)
    sizes = {"minibatches": 2} if name == "pqn_vdn" else {"capacity": 40, "batch_size": 1, "learning_starts": 1}
    config = entry.config(**(dict(entry.defaults) | sizes))
    models = entry.networks(GRU, env.spec, config)
    algorithm = entry.make(env.spec, config, models, SIZES)
    algorithm = algorithm._replace(record=algorithm.record | {"action_mask"})
    acting = make_acting(env, fixed(()), algorithm, SIZES, "fresh")
    hyper = as_hyper(entry.hyper(epsilon=0.0))

    @compiled
    def rollouts(key):
        learner, actor = algorithm.init(key, hyper), start(acting, (), key)
        out = []
        for key_ in jax.random.split(key, 2):
            actor, trajectory, _ = unroll(acting, learner, hyper, actor, (), key_, clock(0), False)
            steps = trajectory.steps
            params = learner.params["network"]
            values, after = models["network"].apply(params, trajectory.carry, steps.observation, steps.reset)
            out.append((steps, trajectory.carry, values, after, actor.carry))
        return out

    first, second = rollouts(jax.random.key(1))
    for steps, _, values, after, carry in (first, second):
        steps = host(steps)
        renewed = steps.reset[1:] & ~steps.last[:-1, :, None]
        assert renewed.any() and steps.last[:-1].any() and not steps.alive.all()
        some = steps.action_mask.any(-1)
        best = np.where(steps.action_mask, values, -np.inf).argmax(-1)
        same(steps.action, np.where(some, best, 0))
        jax.tree.map(lambda x, y: close(x[-1], y, rtol=1e-5, atol=1e-6), after, carry)
    jax.tree.map(same, second[1], first[4])  # the second rollout is stored with the state that the first one left
    assert np.abs(jax.tree.leaves(second[1])[0]).max() > 0.05


# ---- what is refused


@pytest.mark.parametrize("name", ["dqn", "iql", "vdn", "qmix", "pqn", "pqn_vdn"])
def test_actions_that_are_not_discrete_are_refused_in_one_line(name):
    entry = get_algorithm(name)
    for space in (Box(-1, 1, (2,)), MultiDiscrete((2, 2))):
        spec = EnvSpec(Box(-1, 1, (3,)), space, num_agents=2, reward="team")
        with pytest.raises(ConfigError, match="algorithm.name: .* need Discrete actions, got .*discretise_actions") as caught:
            entry.networks(NetworkConfig(), spec, entry.config(**entry.defaults))
        assert "\n" not in str(caught.value) and type(space).__name__ in str(caught.value)


@pytest.mark.parametrize("name", ["vdn", "qmix", "pqn_vdn"])
def test_a_mixer_needs_a_team_reward_and_says_where_to_set_it(name):
    entry = get_algorithm(name)
    with pytest.raises(ConfigError, match="algorithm.mixer: .*env.reward: team") as caught:
        entry.networks(NetworkConfig(), spec_of(2, "individual"), entry.config(**entry.defaults))
    assert "\n" not in str(caught.value)


def test_ones_own_network_gets_the_default_mixer_and_a_mixer_that_is_not_wanted_is_refused():
    own, sizes = {"network": linear()}, Sizes(16, 2)
    for name in ("qmix", "pqn_vdn"):
        entry = get_algorithm(name)
        memory = {"capacity": 32, "batch_size": 8} if name == "qmix" else {}
        algorithm = entry.make(spec_of(2, "team"), entry.config(**(dict(entry.defaults) | memory)), own, sizes)
        learner = jax.eval_shape(algorithm.init, jax.random.key(0), as_hyper(entry.hyper()))
        assert bool(learner.params["mixer"]) == ("next_world" in algorithm.record) == (name == "qmix")
        with pytest.raises(ConfigError, match="algorithm.mixer: is none, but the models hold a mixer"):
            entry.make(spec_of(2, "team"), entry.config(**(memory | {"mixer": "none"})), own | {"mixer": sum_mixer()}, sizes)


def test_a_name_is_a_file_and_defaults():
    spec = spec_of(2, "team")
    for name, module, roles in (
        ("dqn", qlearning, {"network"}),
        ("iql", qlearning, {"network"}),
        ("vdn", qlearning, {"network", "mixer"}),
        ("qmix", qlearning, {"network", "mixer"}),
        ("pqn", pqn, {"network"}),
        ("pqn_vdn", pqn, {"network", "mixer"}),
    ):
        entry = get_algorithm(name)
        assert entry.make is module.make and entry.networks is networks
        models = networks(NetworkConfig(), spec, entry.config(**entry.defaults))
        assert set(models) == roles
        assert ActionValues(spec, models["network"], models.get("mixer")).needs_world == (name == "qmix")

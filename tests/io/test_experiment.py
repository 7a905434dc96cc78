import dataclasses

import numpy as np
import pytest

from agentgym_jax.algorithms.ppo import PPOConfig, PPOHyper
from agentgym_jax.io.config.experiment import EnvConfig, EvalConfig, Experiment, LogConfig, TrainConfig
from agentgym_jax.io.config.frozen import FrozenMap, freeze, thaw
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.config.seeds import as_seeds, count_members, parse_seeds
from agentgym_jax.ops.schedules import Schedule
from envs_jax import make


def experiment(**changes):
    return Experiment(env="gymnax/CartPole-v1", **changes)


@pytest.mark.parametrize(
    ("total", "num_envs", "length", "points", "iterations"),
    [(500_000, 4, 128, 10, 980), (1, 4, 128, 10, 10), (512, 4, 128, 1, 1), (513, 4, 128, 1, 2), (5120, 4, 128, 10, 10)],
)
def test_budget_rounds_up_to_iterations_and_points(total, num_envs, length, points, iterations):
    train = TrainConfig(total_steps=total, num_envs=num_envs, rollout_length=length)
    made = experiment(train=train, eval=EvalConfig(points=points))
    assert made.iterations == iterations
    assert iterations % (points * made.calls) == 0
    assert made.iterations * num_envs * length >= total


def test_calls_are_the_largest_divisor_up_to_32():
    assert experiment().calls == 14  # 98 iterations between two evaluations
    assert experiment(train=TrainConfig(total_steps=64 * 512), eval=EvalConfig(points=1)).calls == 32
    assert experiment(train=TrainConfig(total_steps=37 * 512), eval=EvalConfig(points=1)).calls == 1
    assert experiment(train=TrainConfig(calls=49)).calls == 49


def test_calls_that_do_not_divide_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"train.calls: 3 does not divide .* 98"):
        experiment(train=TrainConfig(calls=3))


def test_no_file_is_needed_and_equal_settings_are_equal():
    first = experiment(algorithm=PPOConfig(epochs=2), hyper=PPOHyper(gamma=np.float32(0.5)), seeds=[3, 7])
    second = experiment(algorithm=PPOConfig(epochs=2), hyper=PPOHyper(gamma=0.5), seeds=(3, 7))
    assert first == second
    assert hash(first) == hash(second)
    assert first.name == "ppo"  # the first registered name of this config
    assert first.hyper.gamma == 0.5
    assert isinstance(first.hyper.gamma, float)
    assert dataclasses.replace(first, algorithm="mappo").algorithm.critic == "central"


def test_an_environment_object_needs_no_id():
    env = make("probe/constant")
    assert Experiment(env=env).env.id is env
    for written in (env, {"id": env, "params": {"scale": 2}}):
        read = load_experiment({"env": written, "algorithm": "ppo"}, ["algorithm.gamma=0.5"])
        assert read.env.id is env and read.hyper.gamma == 0.5
        assert dict(read.env.params) == ({} if written is env else {"scale": 2})
    with pytest.raises(ValueError, match="env.kwargs"):
        EnvConfig(env, kwargs={"limit": 3})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TrainConfig(num_envs=0), "train.num_envs: must be a whole number of at least 1, got 0"),
        (lambda: TrainConfig(total_steps=1.5), "train.total_steps: .* got 1.5"),
        (lambda: TrainConfig(rollout_length=True), "train.rollout_length"),
        (lambda: TrainConfig(reset="fresk"), "train.reset: .*fresh"),
        (lambda: TrainConfig(population="pmap"), "train.population"),
        (lambda: EvalConfig(points=0), "eval.points"),
        (lambda: EvalConfig(seed=-1), "eval.seed"),
        (lambda: EvalConfig(cap=0), "eval.cap"),
        (lambda: LogConfig(tensorboard="yes"), "log.tensorboard"),
        (lambda: LogConfig(checkpoint="always"), "log.checkpoint"),
        (lambda: LogConfig(wandb=3), "log.wandb"),
        (lambda: EnvConfig("gymnax/CartPole-v1", reward="sum"), "env.reward"),
        (lambda: EnvConfig("gymnax/CartPole-v1", wrappers="flatten"), "env.wrappers"),
        (lambda: EnvConfig("gymnax/CartPole-v1", params=[1]), "env.params"),
        (lambda: EnvConfig("gymnax/CartPol"), "unknown environment .*gymnax/CartPole-v1"),
        (lambda: experiment(algorithm="ppp"), "unknown algorithm 'ppp'.*ppo"),
        (lambda: experiment(algorithm=3), "algorithm: must be one of"),
        (lambda: experiment(hyper=3), "hyper: must be a PPOHyper"),
        (lambda: experiment(network=3), "network: must be a NetworkConfig"),
        (lambda: experiment(train={"num_envs": 4}), "train: must be a TrainConfig"),
        (lambda: experiment(hyper=PPOHyper(gamma=float("nan"))), "finite"),
        (lambda: experiment(hyper=PPOHyper(gamma=1.5)), "algorithm.gamma: must be between 0 and 1, got 1.5"),
        (lambda: experiment(hyper=PPOHyper(learning_rate=-1.0)), "algorithm.learning_rate: must be at least 0, got -1"),
        (lambda: experiment(hyper=PPOHyper(entropy=Schedule(0.1, -1.0))), "algorithm.entropy.end: must be at least 0"),
        (lambda: experiment(hyper=PPOHyper(clip=Schedule(0.1, warmup=2.0))), "algorithm.clip.warmup: must be between 0 and 1"),
        (lambda: experiment(sweep={"algorithm.gamma": [0.9, 2.0]}), "algorithm.gamma: must be between 0 and 1, got 2"),
        (lambda: experiment(hyper=PPOHyper(clip=Schedule(0.1, over=0.1, warmup=0.2))), "algorithm.clip.over: must exceed"),
        (
            lambda: experiment(hyper=PPOHyper(gamma=Schedule(0.9, 0.99)), sweep={"algorithm.gamma": [0.9]}),
            "sweep.algorithm.gamma: .* is a schedule.*algorithm.gamma.start",
        ),
        (lambda: experiment(algorithm=["ppo"]), "algorithm: must be one of"),
        (lambda: experiment(train=TrainConfig(total_steps=10**15)), "train.total_steps: must be at most"),
        (lambda: experiment(seeds=10**12), "seeds: must be at most 65,536"),
        (lambda: TrainConfig(num_envs=10**9), "train.num_envs · train.rollout_length: must be below"),
        (lambda: EvalConfig(seed=10**30), "eval.seed: must be below"),
        (lambda: EvalConfig(episodes=10**10), "eval.episodes: must be below"),
        (lambda: experiment(sweep={1: [1e-3]}), "sweep: a key must be text"),
        (lambda: experiment(seeds=0), "seeds: must be a whole number of at least 1, got 0"),
        (lambda: experiment(seeds=[]), "seeds: at least one"),
        (lambda: experiment(seeds=[1, 1, 2]), "seeds: must differ, 1 came"),
        (lambda: experiment(seeds=[-1]), "seeds"),
        (lambda: experiment(seeds=[2**31]), "seeds: must be at most"),
        (lambda: experiment(sweep={"algorithm.epochs": [0, 2]}), "sweep at epochs 0: algorithm.epochs: must be a whole number"),
        (lambda: experiment(sweep={"train.num_envs": [1.5]}), "sweep at num_envs 1.5: train.num_envs"),
        (lambda: experiment(sweep={"algorithm.learning_rte": [1]}), "did you mean learning_rate"),
        (lambda: experiment(sweep={"algorithm.gamma": []}), "list of values"),
        (lambda: experiment(sweep={"algorithm.gamma": ["x"]}), "finite number"),
        (lambda: experiment(sweep={"algorithm.gamma": [0.9, 0.9]}), "twice"),
        (lambda: experiment(sweep={"algorithm.gamma.start": [0.9]}), "plain number"),
    ],
)
def test_bad_settings_are_refused_with_field_and_value(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_members_are_points_times_seeds_seeds_varying_fastest():
    made = experiment(
        hyper=PPOHyper(learning_rate=Schedule(1e-3)),
        seeds=[3, 7],
        sweep={"algorithm.gamma": [0.9, 0.99], "algorithm.learning_rate.start": [1e-3, 1e-4]},
    )
    assert [dict(point) for point in made.points] == [
        {"algorithm.gamma": gamma, "algorithm.learning_rate.start": start} for gamma in (0.9, 0.99) for start in (1e-3, 1e-4)
    ]
    assert [member["seed"] for member in made.members] == [3, 7] * 4
    assert made.members[2] == {"seed": 3, "algorithm.gamma": 0.9, "algorithm.learning_rate.start": 1e-4}


def test_seeds_are_a_count_or_a_list():
    assert as_seeds(3) == (0, 1, 2)
    assert as_seeds(2.0) == (0, 1)
    assert as_seeds(np.array([5, 9])) == (5, 9)
    assert parse_seeds("16") == 16
    assert parse_seeds("3,7,9") == [3, 7, 9]
    assert parse_seeds("7,") == [7]
    for text in ("", "a", "1;2", "-3", "1,,2"):
        with pytest.raises(ValueError, match="--seeds"):
            parse_seeds(text)


def test_members_are_counted_before_anything_is_checked():
    assert count_members({}) == 1
    assert count_members({"seeds": [4, 5], "sweep": {"algorithm.gamma": [0.9, 0.8, 0.7]}}) == 6
    assert count_members({"seeds": "many", "sweep": [1]}) == 1


def test_frozen_settings_come_back_as_they_were():
    settings = {"a": [1, {"b": [2.5, None]}], "c": "text"}
    frozen = freeze(settings)
    assert hash(frozen) == hash(FrozenMap(settings))
    assert thaw(frozen) == settings
    assert frozen == FrozenMap(settings)


def test_a_config_object_gets_the_name_that_fits_it_best():
    assert experiment(algorithm=PPOConfig()).name == "ppo"
    assert experiment(algorithm=PPOConfig(critic="central")).name == "mappo"

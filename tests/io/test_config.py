import dataclasses
import json

import jax
import pytest

from agentgym_jax.io.config.files import load_plain, shipped_configs
from agentgym_jax.io.config.load import load_experiment, to_plain, to_yaml
from agentgym_jax.ops.schedules import Schedule
from envs_jax import make
from tests.io.support import PLAIN, tiny


def written(folder, text, name="mine.yaml"):
    path = folder / name
    path.write_text(text)
    return path


def test_a_shipped_name_a_file_and_a_mapping_are_the_same(tmp_path):
    by_name = load_experiment("gymnax/cartpole_ppo")
    plain = load_plain("gymnax/cartpole_ppo")
    assert load_experiment(plain) == by_name
    assert load_experiment(written(tmp_path, json.dumps(plain), "mine.json")) == by_name
    assert by_name.train.total_steps == 500_000
    assert by_name.hyper.learning_rate == Schedule(2.5e-4, 0.0, per="iteration")
    assert by_name.seeds == tuple(range(16))


@pytest.mark.parametrize("name", shipped_configs())
def test_every_shipped_config_survives_a_round_trip(name, tmp_path):
    experiment = load_experiment(name)
    assert load_experiment(written(tmp_path, to_yaml(experiment))) == experiment
    assert load_experiment(to_plain(experiment)) == experiment


def test_numbers_are_read_as_numbers(tmp_path):
    text = "env: gymnax/CartPole\nalgorithm: {learning_rate: 1e-4, gamma: 1}\ntrain: {total_steps: 1e6, num_envs: 8}\n"
    experiment = load_experiment(written(tmp_path, text))
    assert experiment.env.id == "gymnax/CartPole-v1"
    assert experiment.hyper.learning_rate == 1e-4
    assert experiment.hyper.gamma == 1.0
    assert isinstance(experiment.hyper.gamma, float)
    assert experiment.train.total_steps == 1_000_000
    assert isinstance(experiment.train.total_steps, int)


def test_overrides_are_dotted_and_typed():
    experiment = tiny(
        "algorithm.gamma=0.98",
        "algorithm.learning_rate={start: 1e-3, end: 1e-4, kind: cosine}",
        "network.hidden=[16, 16]",
        "train.num_envs=8",
        "seeds=[3, 7]",
        "env.id=gymnax/Acrobot-v1",
    )
    assert experiment.hyper.gamma == 0.98
    assert experiment.hyper.learning_rate == Schedule(1e-3, 1e-4, kind="cosine")
    assert experiment.network.hidden == (16, 16)
    assert experiment.train.num_envs == 8
    assert experiment.seeds == (3, 7)
    assert experiment.env.id == "gymnax/Acrobot-v1"


def test_base_is_inherited_and_changed(tmp_path):
    written(tmp_path, "base: gymnax/cartpole_ppo\ntrain: {num_envs: 8}\nseeds: 3\n", "first.yaml")
    second = written(tmp_path, "base: first.yaml\ntrain: {rollout_length: 32}\n", "second.yaml")
    experiment = load_experiment(second)
    assert (experiment.train.num_envs, experiment.train.rollout_length, len(experiment.seeds)) == (8, 32, 3)
    assert experiment.algorithm.epochs == 4
    written(tmp_path, "base: second.yaml\n", "first.yaml")
    with pytest.raises(ValueError, match="circle"):
        load_experiment(second)


def test_mappo_is_ppo_with_a_central_critic():
    assert load_experiment(PLAIN, ["algorithm.name=mappo"]).algorithm.critic == "central"
    assert load_experiment(PLAIN, ["algorithm.name=mappo", "algorithm.critic=local"]).algorithm.critic == "local"


def test_what_was_built_in_python_is_named_and_not_read_back():
    experiment = dataclasses.replace(tiny(), env=make("probe/constant"))
    plain = to_plain(experiment)
    assert plain["env"]["id"] == "<envs_jax.probes.single.Constant>"
    with pytest.raises(ValueError, match="object of Python"):
        load_experiment(plain)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("algorithm.learning_rte=1", "unknown key algorithm.learning_rte; did you mean learning_rate?"),
        ("trian.num_envs=1", "unknown key trian; did you mean train?"),
        ("train.num_env=1", "did you mean num_envs?"),
        ("network.hiden=[1]", "did you mean hidden?"),
        ("algorithm.epochs=four", "algorithm.epochs: .*four"),
        ("algorithm.gamma=high", "algorithm.gamma: must be a finite number, got 'high'"),
        ("algorithm.gamma=true", "algorithm.gamma"),
        ("algorithm.gamma=[0.9]", "algorithm.gamma"),
        ("algorithm.learning_rate={end: 0}", "without `start`"),
        ("algorithm.learning_rate={start: 1, kind: square}", "algorithm.learning_rate: .*square"),
        ("algorithm.learning_rate={start: 1, stop: 2}", "unknown key algorithm.learning_rate.stop"),
        ("train.num_envs=2.5", "train.num_envs: .*2.5"),
        ("train.num_envs=-4", "train.num_envs: .*-4"),
        ("train=3", "train: must be a Mapping"),
        ("network.hidden=64", "network.hidden"),
        ("network.torso=mpl", "mlp"),
        ("algorithm.name=ppox", "unknown algorithm 'ppox': did you mean ppo"),
        ("env.id=gymnax/CartPoel-v1", "gymnax/CartPole-v1"),
        ("env.id=null", "env.id: is missing"),
        ("seeds=many", "seeds: must be a whole number"),
        ("algorithm.gamma", "must read key=value"),
        ("algorithm.gamma=${nothing.there}", "the config: .*nothing"),
    ],
)
def test_bad_input_is_one_line_that_names_the_key(override, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_experiment(PLAIN, [override])
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_one_line(tmp_path):
    for text, message in (
        ("env: [", "mine.yaml"),
        ("env: a\nenv: b\n", "duplicate key"),
        ("- 1\n", "must be a mapping"),
        ("seeds: 1\n", "env: is missing"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            load_experiment(written(tmp_path, text))
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="does not exist"):
        load_experiment(tmp_path / "none.yaml")
    with pytest.raises(ValueError, match="did you mean gymnax/cartpole_ppo"):
        load_experiment("gymnax/cartpole_pp")


def test_no_trace_changes_with_the_kind_of_number():
    first, second = (load_experiment(PLAIN, [f"algorithm.gamma={gamma}"]) for gamma in ("1", "0.5"))
    structure = jax.tree.structure(first.hyper)
    assert structure == jax.tree.structure(second.hyper)


def test_a_section_given_by_name_alone_can_be_added_to():
    experiment = load_experiment({"env": "probe/constant", "algorithm": "ppo"}, ["env.params.scale=2", "algorithm.gamma=0.5"])
    assert (experiment.env.id, experiment.env.params["scale"], experiment.hyper.gamma) == ("probe/constant", 2, 0.5)

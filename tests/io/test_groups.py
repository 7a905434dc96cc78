import dataclasses
import re

import pytest
from omegaconf import OmegaConf

from agentgym_jax.algorithms.registry import algorithm_names
from agentgym_jax.io.config.algorithm_section import default_settings
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.load import from_plain, load_experiment, to_plain
from agentgym_jax.io.config.settings import with_settings
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.search.trials import Space
from agentgym_jax.io.sweeps.groups import groups, in_words
from agentgym_jax.io.sweeps.varied import at_point
from agentgym_jax.models.config import NetworkConfig
from agentgym_jax.ops.schedules import Schedule
from envs_jax import make
from tests.io.support import PLAIN, tiny


def swept(sweep, *overrides):
    return load_experiment({**PLAIN, "sweep": sweep}, overrides)


def test_numbers_are_members_and_every_other_setting_makes_groups():
    gammas = {"range": [0.8, 0.9], "steps": 3}
    experiment = swept({"network.hidden": [[8], [16]], "algorithm.gamma": gammas, "train.num_envs": [4, 8]})
    together = groups(experiment)
    assert [in_words(group.settings) for group in together] == [
        "hidden [8], num_envs 4", "hidden [8], num_envs 8", "hidden [16], num_envs 4", "hidden [16], num_envs 8",
    ]  # fmt: skip
    for group in together:
        assert group.experiment.network.hidden == group.settings["network.hidden"]
        assert group.experiment.train.num_envs == group.settings["train.num_envs"]
        assert dict(group.experiment.sweep) == {"algorithm.gamma": (0.8, 0.85, 0.9)}
        assert len(group.experiment.members) == 6
    assert len(experiment.members) == 24
    assert load_experiment(to_plain(experiment)) == experiment


def test_without_static_keys_there_is_one_group_which_is_the_experiment():
    experiment = swept({"algorithm.gamma": [0.8, 0.9]})
    (only,) = groups(experiment)
    assert only.experiment is experiment
    assert len(assemble(experiment).hypers) == 2


def test_keys_under_zip_go_hand_in_hand():
    hand_in_hand = {"algorithm.gamma": [0.7, 0.8, 0.9], "network.hidden": [[8], [16], [8]]}
    experiment = swept({"zip": hand_in_hand, "algorithm.clip": [0.1, 0.2]})
    assert [tuple(point.values()) for point in experiment.points] == [
        (0.7, (8,), 0.1), (0.7, (8,), 0.2), (0.8, (16,), 0.1), (0.8, (16,), 0.2), (0.9, (8,), 0.1), (0.9, (8,), 0.2),
    ]  # fmt: skip
    first, second = groups(experiment)
    assert [tuple(point.values()) for point in first.experiment.points] == [(0.7, 0.1), (0.7, 0.2), (0.9, 0.1), (0.9, 0.2)]
    assert [tuple(point.values()) for point in second.experiment.points] == [(0.8, 0.1), (0.8, 0.2)]


def test_a_sweep_of_a_command_line_is_nested_and_means_the_same():
    nested = tiny("sweep.algorithm.gamma=[0.8,0.9]", "sweep.algorithm.clip={range: [0.1, 0.2], steps: 2}")
    assert nested == swept({"algorithm.gamma": [0.8, 0.9], "algorithm.clip": [0.1, 0.2]})


def test_sections_schedules_and_nested_arguments_can_be_swept():
    both = groups(swept({"algorithm": ["ppo", {"name": "pqn", "epochs": 2}], "algorithm.gamma": [0.8, 0.9]}))
    assert [group.experiment.name for group in both] == ["ppo", "pqn"]
    assert both[1].experiment.algorithm.epochs == 2
    assert len(both[1].experiment.members) == 4
    rates = [{"start": 1e-3, "end": 0}, {"start": 1e-3, "kind": "cosine"}, 1e-3]
    assert [group.experiment.hyper.learning_rate for group in groups(swept({"algorithm.learning_rate": rates}))] == [
        Schedule(1e-3, 0.0), Schedule(1e-3, kind="cosine"), 1e-3,
    ]  # fmt: skip
    kinds = groups(swept({"algorithm.learning_rate.kind": ["linear", "cosine"]}, "algorithm.learning_rate={start: 0.01}"))
    assert [group.experiment.hyper.learning_rate.kind for group in kinds] == ["linear", "cosine"]
    limits = groups(swept({"env.kwargs.limit": [3, 5], "env.params.a": [1.0, 2.0]}))
    assert [dict(group.experiment.env.kwargs) for group in limits] == [{"limit": 3}] * 2 + [{"limit": 5}] * 2
    assert [dict(group.experiment.env.params) for group in limits] == [{"a": 1.0}, {"a": 2.0}] * 2


def test_objects_of_python_are_swept_and_only_named_in_files():
    envs = [make("probe/constant"), make("probe/policy")]
    experiment = Experiment(env=envs[0], sweep={"env": envs, "network": [NetworkConfig(hidden=(8,)), {"hidden": [16]}]})
    together = groups(experiment)
    assert [group.experiment.env.id for group in together] == [envs[0], envs[0], envs[1], envs[1]]
    assert [group.experiment.network.hidden for group in together] == [(8,), (16,)] * 2
    assert to_plain(experiment)["sweep"]["env"] == ["<envs_jax.probes.single.Constant>", "<envs_jax.probes.single.Policy>"]


@pytest.mark.parametrize("name", algorithm_names())
def test_every_number_of_every_algorithm_can_be_swept_and_searched(name):
    _, hyper = default_settings(name)
    ends = {}
    for field in dataclasses.fields(hyper):
        value = getattr(hyper, field.name)
        number = value.start if isinstance(value, Schedule) else value
        key = f"algorithm.{field.name}" + (".start" if isinstance(value, Schedule) else "")
        ends[key] = [0.5 * number, number] if number else [0.0, 0.5]
    plain = {"env": PLAIN["env"], "algorithm": {"name": name}}
    varied = from_plain({**plain, "sweep": {"zip": {key: {"range": each, "steps": 2} for key, each in ends.items()}}})
    assert len(groups(varied)) == 1
    first, second = (at_point(varied.hyper, point) for point in varied.points)
    assert all(getattr(first, field.name) != getattr(second, field.name) for field in dataclasses.fields(hyper))
    searched = from_plain({**plain, "search": {key: {"uniform": each} for key, each in ends.items()}})
    assert Space.of(searched).static == ()
    assert set(Space.of(searched).traced) == set(ends)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"network.hiden": [1]}, "unknown key sweep.network.hiden; did you mean hidden?"),
        ({"netwrk.hidden": [1]}, "did you mean network?"),
        ({"seeds": [1, 2]}, "sweep.seeds: seeds is not varied"),
        ({"log.checkpoint": ["end"]}, "sweep.log.checkpoint: log is not varied"),
        ({"algorithm.name": ["ppo", "dqn"]}, r"vary the section, algorithm: \[ppo, ...\]"),
        ({"algorithm.gamma": {"rang": [0.8, 0.9]}}, "did you mean range?"),
        ({"algorithm.gamma": {"range": [0.8, 2], "steps": 2}}, "algorithm.gamma: must be between 0 and 1, got 2"),
        ({"algorithm.epochs": {"range": [1, 2], "steps": 3}}, "sweep at epochs 1.5: algorithm.epochs"),
        ({"network.hidden": [[8], [8]]}, "sweep.network.hidden has a value twice"),
        ({"train.num_envs.x": [1]}, "train.num_envs is 4, which has no x"),
        ({"train.shards": [3]}, "sweep at shards 3: train.shards: 3 does not divide train.num_envs = 4"),
        ({"zip": {"algorithm.gamma": [0.9, 0.8], "network.hidden": [[8]]}}, "algorithm.gamma has 2, network.hidden has 1"),
        ({"zip": {}}, "sweep.zip: needs keys"),
        ({"zip": {"algorithm.gamma": [0.9]}, "algorithm.gamma": [0.8]}, "sweep.algorithm.gamma stands under zip too"),
        ({"algorithm.gamma": [{"start": 0.9, "ende": 1}]}, "did you mean end?"),
        ({"env.id": ["probe/constnt"]}, "probe/constant"),
    ],
)
def test_what_cannot_be_swept_is_one_line(sweep, message):
    with pytest.raises(ValueError, match=message) as caught:
        swept(sweep)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"algorithm.gamma": {"uniform": [0.5, 2]}}, "search.algorithm.gamma: .*between 0 and 1, got 2"),
        ({"algorithm.epochs": {"int": [0, 4]}}, "search.algorithm.epochs: .*at least 1, got 0"),
        ({"algorithm.epochs": {"int": [1, 4.5]}}, "search.algorithm.epochs.int: must be a whole number"),
        ({"algorithm.gamma": {"unifrm": [0.5, 2]}}, "did you mean uniform?"),
        ({"algorithm.gamma": 0.5}, r"search.algorithm.gamma: must be \{log_uniform"),
        ({"algorithm.gamma": [0.9]}, "search.algorithm.gamma.choice: must be a list of two or more"),
        ({"algorithm.gamma.end": {"uniform": [0, 1]}}, "algorithm.gamma is a plain number"),
        ({"network.torso": ["mlp", "mpl"]}, "search.network.torso"),
        ([], "search must be a mapping"),
    ],
)
def test_what_cannot_be_searched_is_one_line(search, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_experiment({**PLAIN, "search": search})
    assert "\n" not in str(caught.value)


def test_a_run_refuses_what_makes_several_and_a_search():
    with pytest.raises(ValueError, match="sweep.network.hidden changes what is compiled.*agentgym sweep"):
        assemble(swept({"network.hidden": [[8], [16]]}))
    searched = load_experiment({**PLAIN, "search": {"algorithm.gamma": [0.8, 0.9]}})
    with pytest.raises(ValueError, match="search: is for `agentgym tune`"):
        assemble(searched)
    with pytest.raises(ValueError, match="beside a sweep"):
        dataclasses.replace(searched, sweep={"algorithm.clip": [0.1]})
    assert load_experiment(to_plain(searched)) == searched


def test_the_examples_of_the_page_on_sweeps_can_be_loaded(root):
    found = re.findall(r"```yaml\n(.*?)```", (root / "docs" / "sweeps.md").read_text(), re.DOTALL)
    plain = [OmegaConf.to_container(OmegaConf.create(text)) for text in found]
    loaded = [load_experiment({"base": "gymnax/cartpole_ppo", **each}) for each in plain]
    assert [len(groups(each)) for each in loaded] == [2, 1, 1]
    assert [len(each.members) for each in loaded] == [120, 32 * 16, 16]
    assert [len(each.search) for each in loaded] == [0, 0, 4]


def test_settings_are_changed_as_in_a_file():
    changed = with_settings(tiny(), {"algorithm.gamma": 0.5, "train.num_envs": 8.0, "env.params.a.b": 3}, seeds=[7])
    assert changed.hyper.gamma == 0.5
    assert changed.train.num_envs == 8
    assert dict(changed.env.params["a"]) == {"b": 3}
    assert changed.seeds == (7,)
    assert changed.network == tiny().network

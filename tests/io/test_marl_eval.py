import copy
import json
from pathlib import Path

import numpy as np
import pytest

from agentgym_jax.io.comparing.marl_eval import check, document, write
from agentgym_jax.io.comparing.stored import read_named
from tests.io.run_files import write_run

GOLDEN = Path(__file__).parent / "golden" / "marl_eval.json"


@pytest.fixture(scope="module")
def golden():
    """What `runs` makes; written once, by hand compared with marl-eval's README, and committed."""
    return json.loads(GOLDEN.read_text())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two tasks × two algorithms × two seeds; one algorithm's seeds on one task come from two runs."""
    root = tmp_path_factory.mktemp("runs")
    other = ["env={id: probe/memory, wrappers: [{name: time_limit, limit: 5}]}"]
    changed = {("summary", "env"): "probe/memory"}
    write_run(root / "first", [1.0, 2.0])
    write_run(root / "second", [3.0], "algorithm.gamma=0.9")
    write_run(root / "second_too", [4.0], "algorithm.gamma=0.9")
    for record in (root / "second_too").glob("*.jsonl"):
        record.write_text(record.read_text().replace('"seed": 0', '"seed": 1'))
    write_run(root / "third", [5.0, 6.0], *other, changes=changed)
    write_run(root / "fourth", [7.0, 8.0], *other, "algorithm.gamma=0.9", changes=changed)
    names = ("first", "low=second", "low=second_too", "third", "low=fourth")
    return [f"{name.partition('=')[0]}={root / name.partition('=')[2]}" if "=" in name else str(root / name) for name in names]


def test_runs_are_merged_into_the_golden_file(runs, golden, tmp_path):
    merged = document(read_named(runs))
    write(merged, tmp_path / "results.json")
    assert json.loads((tmp_path / "results.json").read_text()) == golden
    with pytest.raises(ValueError, match="results.json exists; choose another --out"):
        write(merged, tmp_path / "results.json")
    with pytest.raises(ValueError, match="cannot be written"):
        write(merged, tmp_path / "none" / "results.json")


def test_the_golden_file_holds_what_the_format_asks(golden):
    assert list(golden) == ["probe"]
    assert list(golden["probe"]) == ["policy_observation", "memory time_limit limit=5"]
    for algorithms in golden["probe"].values():
        assert {name: list(members) for name, members in algorithms.items()} == dict.fromkeys(
            ("ppo", "low"), ["seed_0", "seed_1"]
        )
    member = golden["probe"]["policy_observation"]["low"]["seed_1"]
    assert member["step_0"] == {"step_count": 32, "elapsed_time": 0.0, "return": [2.0, 4.0, 2.0, 4.0], "length": [10.0] * 4}
    assert (member["step_1"]["step_count"], member["step_1"]["elapsed_time"]) == (64, 4.0)
    assert np.mean(member["step_1"]["return"]) == 4
    assert member["absolute_metrics"] == {"return": [4.5], "length": [10.0]}
    check(golden)


MEMBER = ("probe", "policy_observation", "low", "seed_1")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("probe", "policy_observation", "a,b"), "low", "comma"),
        (("probe", "policy_observation", "PPO"), "low", "ppo and PPO differ in case alone"),
        (("probe", "policy_observation", "new"), "low", "probe > memory .*: algorithms must be that of policy_observation"),
        ((*MEMBER[:3], "seed_2"), "seed_1", "low: .*runs"),
        ((*MEMBER, "step_2"), {"step_count": 96, "elapsed_time": 8.0, "return": [1.0] * 4, "length": [1.0] * 4}, "steps"),
        ((*MEMBER, "step_1", "return"), [1.0] * 3, "seed_1 > step_1 > return: number of values must be .*, 4, got 3"),
        ((*MEMBER, "absolute_metrics", "return"), [1.0] * 3, "absolute_metrics > return: number of values .*, 1, got 3"),
        ((*MEMBER, "absolute_metrics"), {"return": [1.0]}, "absolute_metrics: metrics must be"),
        ((*MEMBER, "step_1", "return"), [1.0, 2.0, 3.0, None], "step_1 > return: must be a finite number"),
        ((*MEMBER, "step_1", "step_count"), 1.5, "step_count: must be a whole number"),
    ],
)
def test_what_marl_eval_could_not_read_is_named(golden, path, value, message):
    broken = copy.deepcopy(golden)
    *above, last = path
    place = broken
    for key in above:
        place = place[key]
    place[last] = copy.deepcopy(place[value]) if isinstance(value, str) else value
    with pytest.raises(ValueError, match=message) as caught:
        check(broken)
    assert "\n" not in str(caught.value)


def test_runs_that_cannot_be_merged_are_named(tmp_path):
    def merged(*names):
        return document(read_named([str(tmp_path / name) for name in names]))

    write_run(tmp_path / "a", [1.0, 2.0])
    write_run(tmp_path / "b", [1.0, 2.0])
    write_run(tmp_path / "c", [1.0, 2.0], "algorithm.gamma=0.9")
    write_run(tmp_path / "d", [1.0, np.nan])
    with pytest.raises(ValueError, match="b: ppo on policy_observation has seed_0 already"):
        merged("a", "b")
    with pytest.raises(ValueError, match="both called ppo .* differ in algorithm.gamma; write NAME=.*c"):
        merged("a", "c")
    with pytest.raises(ValueError, match="d: return of seed 1 is not finite"):
        merged("d")


def test_a_sweep_gives_an_algorithm_for_each_setting(tmp_path):
    write_run(tmp_path / "run", [1.0, 2.0], "sweep={algorithm.gamma: [0.9, 0.99]}")
    merged = document(read_named([str(tmp_path / "run")]))
    assert list(merged["probe"]["policy_observation"]) == ["ppo gamma=0.9", "ppo gamma=0.99"]

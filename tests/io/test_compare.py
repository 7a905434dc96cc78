import json

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from agentgym_jax.io.comparing import compare as module
from agentgym_jax.io.comparing.compare import compare, show
from agentgym_jax.io.comparing.stored import read_named
from tests.io.run_files import write_run

LOW, HIGH = np.linspace(0, 3, 10), np.linspace(2, 5, 10)


@pytest.fixture(autouse=True)
def fewer_replicates(monkeypatch):
    monkeypatch.setattr(module, "_REPLICATES", 2000)


def compared(tmp_path, *runs, **options):
    """A comparison of runs given as (returns, overrides, changes), called a, b, …"""
    for name, (returns, overrides, changes) in zip("abc", runs, strict=False):
        write_run(tmp_path / name, returns, *overrides, changes=changes)
    return compare(read_named([str(tmp_path / name) for name in "abc"[: len(runs)]]), **options)


def test_two_runs_that_are_measured_alike_are_compared(tmp_path):
    result = compared(tmp_path, (LOW, ["algorithm.gamma=0.9"], {}), (HIGH, [], {}))
    assert result["comparable"]
    assert [(each["kind"], each["field"], each["values"]) for each in result["differences"]] == [
        ("algorithm", "algorithm.gamma", [0.9, 0.99])
    ]
    (pair,) = result["pairs"]
    assert pair["probability"] == pytest.approx(mannwhitneyu(LOW, HIGH).statistic / 100)
    low, high = pair["interval"]
    assert low < pair["probability"] < high < 0.5
    assert (pair["excludes_half"], pair["verdict"]) == (True, "worse")
    row = result["runs"][0]
    assert (row["label"], row["seeds"], row["mean"]) == ("a", 10, pytest.approx(1.5))
    assert row["interval"]["mean"][0] < 1.5 < row["interval"]["mean"][1]
    assert result["warnings"] == []
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    ("overrides", "changes", "kind", "field"),
    [
        (["env=probe/discounted"], {("summary", "env"): "probe/discounted"}, "environment", "env.id"),
        (["env={id: probe/policy_observation, wrappers: [{name: time_limit, limit: 5}]}"], {}, "environment", "env.wrappers"),
        ([], {("summary", "protocol", "environment_version"): 2}, "environment", "version"),
        ([], {("provenance", "versions", "agentgym-jax"): "0.2.0"}, "environment", "version of agentgym-jax"),
        (["eval.episodes=8"], {}, "evaluation", "eval.episodes"),
        (["eval.seed=1"], {}, "evaluation", "eval.seed"),
        (["train.total_steps=128"], {("summary", "total_steps"): 128}, "budget", "steps that ran"),
    ],
)
def test_there_is_no_verdict_over_different_measurements(tmp_path, overrides, changes, kind, field):
    result = compared(tmp_path, (LOW, [], {}), (HIGH, overrides, changes))
    assert not result["comparable"]
    assert result["withheld"] == [kind]
    assert field in [each["field"] for each in result["differences"] if each["kind"] == kind]
    assert result["pairs"] == result["warnings"] == []
    assert "mean" not in result["runs"][0]


def test_what_does_not_forbid_a_verdict_is_named(tmp_path):
    changes = {
        ("provenance", "versions", "jax"): "0.11.0",
        ("provenance", "machine", "device_kind"): "H200",
        ("provenance", "machine", "devices"): ["0"],
        ("provenance", "agentgym_jax_git"): None,
        ("summary", "total_steps"): 64.4,
    }
    overrides = ["network.hidden=[16]", "train.num_envs=8", "eval.threshold=3", "train.total_steps=60", "algorithm.clip=0.3"]
    result = compared(tmp_path, (LOW, [], {}), (HIGH, overrides, changes))
    assert result["comparable"]
    named = {(each["kind"], each["field"]) for each in result["differences"]}
    assert named == {
        ("network", "network.hidden"), ("training", "train.num_envs"), ("summary", "eval.threshold"),
        ("algorithm", "algorithm.clip"), ("budget", "train.total_steps"), ("budget", "steps that ran"),
        ("versions", "jax"), ("versions", "agentgym_jax commit"), ("hardware", "device_kind"), ("hardware", "devices"),
    }  # fmt: skip


def test_few_seeds_are_warned_of_and_never_decide(tmp_path):
    result = compared(tmp_path, ([5.0, 6.0], [], {}), ([1.0, 2.0, 3.0], [], {}), ([0.0], [], {}))
    assert {pair["verdict"] for pair in result["pairs"]} == {"too few seeds"}
    assert result["pairs"][0]["interval"] == [1, 1]
    assert result["pairs"][1]["interval"] is None
    assert "a has 2, b has 3, c has 1" in result["warnings"][0]
    assert "3 pairs" in result["warnings"][-1]


def test_seeds_that_diverged_are_counted_and_lose(tmp_path):
    broken = np.where(np.arange(10) < 4, np.nan, HIGH)
    result = compared(tmp_path, (broken, [], {}), (HIGH, [], {}))
    assert result["runs"][0]["missing"] == 4
    assert result["runs"][0]["mean"] == pytest.approx(HIGH[4:].mean())
    wins = np.mean([[(a > b) + 0.5 * (a == b) for b in HIGH] for a in HIGH[4:]]) * 0.6
    assert result["pairs"][0]["probability"] == pytest.approx(wins)
    assert "a has 4" in result["warnings"][-1]


def test_the_settings_of_a_sweep_are_compared_too(tmp_path):
    returns = np.concatenate([LOW, HIGH])
    result = compared(tmp_path, (returns, ["sweep={algorithm.gamma: [0.9, 0.99]}"], {}), policy="absolute")
    assert [row["label"] for row in result["runs"]] == ["a gamma=0.9", "a gamma=0.99"]
    assert [row["seeds"] for row in result["runs"]] == [10, 10]
    assert [(each["field"], each["values"]) for each in result["differences"]] == [("algorithm.gamma", [0.9, 0.99])]
    assert result["runs"][0]["mean"] == pytest.approx(2.0)


def test_tables_say_who_is_better_or_why_nothing_is_said(tmp_path, capsys):
    show(compared(tmp_path, (LOW, ["algorithm.gamma=0.9"], {}), (HIGH[:4], [], {})))
    text = capsys.readouterr().out
    assert "algorithm.gamma: 0.9 (a), 0.99 (b)" in text
    assert "undecided" in text or "worse" in text
    assert "warning: claims need 10 seeds" in text
    show(compared(tmp_path / "other", (LOW, ["eval.seed=3"], {}), (HIGH, ["eval.episodes=8"], {})))
    text = capsys.readouterr().out
    assert "eval.seed: 3 (a), 0 (b)" in text
    assert "no verdict over different evaluation" in text


def test_bad_input_is_named(tmp_path):
    with pytest.raises(ValueError, match="at least two runs"):
        compared(tmp_path, (LOW, [], {}))
    write_run(tmp_path / "other" / "a", LOW)
    with pytest.raises(ValueError, match="a and .*other/a are both called a; write NAME=.*other/a"):
        compare(read_named([str(tmp_path / "a"), str(tmp_path / "other" / "a")]))
    with pytest.raises(ValueError, match="did you mean return"):
        compared(tmp_path / "x", (LOW, [], {}), (LOW, [], {}), metric="retrun")
    with pytest.raises(ValueError, match="policy: 'best' is not one of"):
        compared(tmp_path / "y", (LOW, [], {}), (LOW, [], {}), policy="best")

"""Sweeps that run. The fixture trains 64 members in two groups once; most tests read what it left."""

import csv
import dataclasses
import io
import json
import shutil

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from agentgym_jax.cli import app
from agentgym_jax.io.config.load import load_experiment, to_yaml
from agentgym_jax.io.running.devices import make_population
from agentgym_jax.io.running.programs import parts, static_key
from agentgym_jax.io.running.progress import Lines
from agentgym_jax.io.running.runner import train
from agentgym_jax.io.sweeps import drive as sweeping
from agentgym_jax.io.sweeps import plot as sweep_plot
from agentgym_jax.io.sweeps import table as sweep_table
from agentgym_jax.io.sweeps.groups import groups
from envs_jax import make
from tests.io.quick import quick  # noqa: F401  a fixture
from tests.io.support import PLAIN, tiny

METRICS = ("greedy.return", "sampled.return", "absolute.length")
TWO_ITERATIONS = {**PLAIN, "train": {**PLAIN["train"], "total_steps": 32}, "eval": {"points": 1, "episodes": 4}}


def two_sizes(rates, seeds, **more):
    sweep = {"network.hidden": [[4], [8]], "algorithm.learning_rate": rates}
    return load_experiment({**TWO_ITERATIONS, "seeds": seeds, "sweep": {**sweep, **more}})


@pytest.fixture(scope="module")
def swept(quick, tmp_path_factory):  # noqa: F811
    """64 members: two networks × four learning rates × four values of entropy × two seeds."""
    entropies = {"algorithm.entropy": [0.0, 0.01, 0.1, 1.0]}
    experiment = two_sizes({"log_range": [1e-3, 1.0], "steps": 4}, [3, 7], **entropies)
    return sweeping.sweep(experiment, out=tmp_path_factory.mktemp("sweeps") / "sizes", quiet=True)


def records(directory):
    with open(directory / "table.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_a_row_a_member_and_is_the_same_in_both_files(swept):
    rows = records(swept.directory)
    assert len(rows) == len(swept.table) == 64
    told = json.loads((swept.directory / "table.json").read_text())
    for row, plain, member in zip(rows, told, swept.experiment.members, strict=True):
        assert json.loads(row["network.hidden"]) == plain["network.hidden"] == list(member["network.hidden"])
        for key in ("algorithm.learning_rate", "algorithm.entropy", "seed"):
            assert float(row[key]) == plain[key] == member[key]
        for metric in METRICS:
            assert float(row[metric]) == plain[metric]
        assert row["diverged"] == str(plain["diverged"]) == "False"
        assert int(row["steps"]) == plain["steps"] == 32
    assert [int(row["group"]) for row in rows] == [0] * 32 + [1] * 32
    assert [int(row["member"]) for row in rows] == [*range(32)] * 2


def test_a_row_is_what_a_run_of_its_own_gives(swept, quick):  # noqa: F811
    """Returns of this environment are ±1: they are told exactly, as are lengths; entropy and losses to 1e-5."""
    index = 45
    row, member = swept.table[index], swept.experiment.members[index]
    group = groups(swept.experiment)[row["group"]].experiment
    alone = {key: [member[key]] for key in ("algorithm.learning_rate", "algorithm.entropy")}
    run = train(dataclasses.replace(group, seeds=[member["seed"]], sweep=alone), quiet=True)
    for policy, results in {**run.last_evaluation, "absolute": run.absolute}.items():
        for name, values in results.items():
            assert row[f"{policy}.{name}"] == np.mean(values, dtype=np.float64)
    together = swept.runs[row["group"]]
    for name, curve in run.curves.items():
        own = together.curves[name][row["member"]]
        expected = np.nanmean(curve[0].reshape(own.size, -1), axis=1) if np.isfinite(curve).any() else curve[0, : own.size]
        np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-6, err_msg=name)


def test_members_differ_by_what_was_swept(swept):
    """The seed, the rate, the entropy weight and the size all reach the learner."""
    norms = [
        np.sqrt(sum(np.sum(leaf.reshape(32, -1) ** 2, axis=1, dtype=np.float64) for leaf in jax.tree.leaves(run.state.learner)))
        for run in swept.runs
    ]
    assert len(np.unique(np.concatenate(norms))) == 64


def test_two_sizes_are_two_compiles_and_other_numbers_and_seeds_none(quick):  # noqa: F811
    first = sweeping.sweep(two_sizes([1e-3, 1e-2, 1e-1], 2), quiet=True)
    assert [run.compiles for run in first.runs] == [1, 1]
    second = sweeping.sweep(two_sizes([2e-3, 3e-2, 4e-1], [8, 9]), quiet=True)
    assert [run.compiles for run in second.runs] == [0, 0]
    assert [run.seconds.compile for run in second.runs] == [0.0, 0.0]
    assert all(run.summary["compiles"] == 0 for run in second.runs)
    assert len(second.column("greedy.return")) == 12
    same = sweeping.sweep(two_sizes([1e-3, 1e-2, 1e-1], 2), quiet=True)
    untimed = [{k: v for k, v in row.items() if k != "train_seconds"} for row in first.table]
    assert untimed == [{k: v for k, v in row.items() if k != "train_seconds"} for row in same.table]


def test_resume_skips_finished_groups_and_trains_the_others(swept, quick, tmp_path, capsys):  # noqa: F811
    directory = shutil.copytree(swept.directory, tmp_path / "again")
    before = (directory / "group-000" / "metrics.jsonl").stat().st_mtime_ns
    shutil.rmtree(directory / "group-001")
    (directory / "table.csv").unlink()
    result = sweeping.sweep(swept.experiment, out=directory, resume=True)
    said = capsys.readouterr().err
    assert "group 1 of 2: hidden [4]\nfinished before, skipped\ngroup 2 of 2: hidden [8]" in said
    assert (directory / "group-000" / "metrics.jsonl").stat().st_mtime_ns == before
    for old, new in zip(swept.table, result.table, strict=True):
        assert {k: v for k, v in old.items() if k != "train_seconds"} == {k: v for k, v in new.items() if k != "train_seconds"}
    assert len(records(directory)) == 64


def test_a_half_done_group_goes_on_in_its_directory(swept, quick, tmp_path, capsys):  # noqa: F811
    directory = shutil.copytree(swept.directory, tmp_path / "half")
    for name in ("summary.json", "curve.png"):
        (directory / "group-001" / name).unlink()
    result = sweeping.sweep(swept.experiment, out=directory, resume=True)
    assert "goes on at 32 of 32 steps" in capsys.readouterr().err
    assert [row["greedy.return"] for row in result.table] == [row["greedy.return"] for row in swept.table]
    assert sorted(path.name for path in directory.glob("group-*")) == ["group-000", "group-001"]


def test_the_command_prints_the_best_settings_of_a_finished_sweep(swept, monkeypatch):
    monkeypatch.setattr("agentgym_jax._runtime.cores", lambda: 2)
    words = ["sweep", str(swept.directory / "sweep.yaml"), "--out", str(swept.directory), "--resume", "--quiet", "--metric"]
    result = CliRunner().invoke(app, [*words, "sampled.return"])
    assert result.exit_code == 0, result.output
    assert "the best of 32 settings, IQM over seeds" in result.stdout
    assert "64 rows in" in result.stdout
    refused = CliRunner().invoke(app, [*words, "sampled.retrn"])
    assert refused.exit_code == 2
    assert "did you mean 'sampled.return'?" in refused.stderr


def test_another_sweep_and_an_existing_directory_are_refused(swept):
    other = dataclasses.replace(swept.experiment, seeds=[3, 8])
    with pytest.raises(ValueError, match=r"holds another experiment: seeds is \[3, 7\] there and \[3, 8\] here"):
        sweeping.sweep(other, out=swept.directory, resume=True)
    with pytest.raises(ValueError, match="exists; choose another --out, or --overwrite"):
        sweeping.sweep(swept.experiment, out=swept.directory)
    assert len(records(swept.directory)) == 64


def test_all_groups_are_checked_before_anything_is_compiled_or_written(tmp_path):
    bad = load_experiment({**TWO_ITERATIONS, "sweep": {"algorithm.minibatches": [1, 3]}})
    with pytest.raises(ValueError, match="sweep at minibatches 3: .*3 does not divide"):
        sweeping.sweep(bad, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for experiment, message in ((tiny(), "sweep: is empty"), (tiny("search.algorithm.gamma=[0.8,0.9]"), "agentgym tune")):
        with pytest.raises(ValueError, match=message):
            sweeping.sweep(experiment)


def test_the_pictures_show_every_key_and_rates_on_a_logarithmic_axis(swept):
    figure = swept.plot("sampled.return")
    panels = {axes.get_xlabel(): axes for axes in figure.axes}
    assert list(panels) == ["network.hidden", "algorithm.learning_rate", "algorithm.entropy"]
    assert panels["algorithm.learning_rate"].get_xscale() == "log"
    assert panels["algorithm.entropy"].get_xscale() == "linear"
    points, middle = panels["algorithm.learning_rate"].lines
    assert sorted(points.get_ydata()) == sorted(swept.column("sampled.return"))
    assert len(middle.get_xdata()) == 4
    with pytest.raises(ValueError, match="metric: 'sampled.retrn' is not one of"):
        swept.plot("sampled.retrn")
    assert (swept.directory / "sweep.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([1e-4, 1e-3, 1e-2], True), ([0.1, 0.3, 0.5, 0.9], False), ([0.9, 0.99], False), ([1, 100], True), ([0, 1, 9], False)],
)
def test_the_axis_suits_the_values(values, logarithmic):
    assert sweep_plot.is_logarithmic(np.array(values, float)) == logarithmic


def test_settings_are_ranked_by_the_iqm_of_their_seeds():
    rows = [{"key": key, "seed": seed, "score": key[0] * 10 + seed} for key in ((1,), (2,)) for seed in range(4)]
    settled = sweep_table.over_seeds(rows, ["key"], "score")
    assert settled == [{"key": (1,), "seeds": 4, "score": 11.5}, {"key": (2,), "seeds": 4, "score": 21.5}]
    assert list(sweep_table.ranked(settled, "score", ["key"], "best").columns[0].cells) == ["[2]", "[1]"]
    assert list(sweep_table.ranked(settled, "score", ["key"], "best", least=True, most=1).columns[0].cells) == ["[1]"]


def test_what_one_group_did_not_measure_is_empty(tmp_path):
    sweep_table.write([{"a": 1.5, "b": float("nan")}, {"a": None, "c": {"d": [1]}}], tmp_path)
    assert (tmp_path / "table.csv").read_text() == 'a,b,c\n1.5,nan,\n,,"{""d"": [1]}"\n'
    assert json.loads((tmp_path / "table.json").read_text()) == [{"a": 1.5, "b": None}, {"a": None, "c": {"d": [1]}}]


def test_a_dry_run_tells_groups_members_and_memory_and_compiles_nothing(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("agentgym_jax._runtime.cores", lambda: 2)
    monkeypatch.setattr("jax.stages.Lowered.compile", lambda *_: pytest.fail("compiled"))
    (tmp_path / "mine.yaml").write_text(to_yaml(two_sizes([1e-3, 1e-2, 1e-1], 2)))
    result = CliRunner().invoke(app, ["sweep", "mine.yaml", "--dry-run"])
    assert result.exit_code == 0, result.output
    for words in ("group 1: hidden [4]", "6 members × 32 steps", "memory: about", "2 groups, 12 members, 2 compilations"):
        assert words in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    for arguments, message in ((["--resume"], "--resume: needs --out"), (["network.hiden=[1]"], "did you mean hidden?")):
        refused = CliRunner().invoke(app, ["sweep", "mine.yaml", *arguments])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert message in refused.stderr


def test_programs_are_told_apart_by_everything_static():
    base, same = tiny(), tiny("algorithm.gamma=0.5", "seeds=[8, 9]", "log.checkpoint=end")
    assert static_key(base) == static_key(same)
    others = ("seeds=3", "network.hidden=[9]", "train.num_envs=8", "eval.seed=1", "algorithm.epochs=2", "env=probe/policy",
              "algorithm.gamma={start: 0.9}", "algorithm.gamma={start: 0.9, kind: cosine}", "env.kwargs.limit=1",
              "env.kwargs.limit=1.0", "env.kwargs.limit=true")  # fmt: skip
    assert len({static_key(tiny(other)) for other in others} | {static_key(base)}) == len(others) + 1
    envs = [make("probe/policy"), make("probe/policy")]
    assert len({static_key(dataclasses.replace(base, env=env)) for env in (*envs, envs[0])}) == 2


def test_only_what_was_compiled_is_used_again_and_little_is_kept(quick):  # noqa: F811
    first, second = parts(tiny()), parts(tiny())
    assert second.assembly.loop is not first.assembly.loop  # nobody has compiled it, so its trace is its own
    population, _ = make_population(second.assembly, second.programs)
    next(iter(second.programs.values()))["advance"] = "compiled"
    third = parts(tiny("algorithm.gamma=0.5"))
    assert third.programs is second.programs
    assert third.assembly.loop is second.assembly.loop
    assert third.assembly.hyper.gamma == 0.5
    assert population.compile(None, None) == 0.0
    for size in range(20, 28):
        parts(tiny(f"network.hidden=[{size}]"))
    assert parts(tiny()).programs is not second.programs


def test_a_sweep_says_how_to_go_on(swept, tmp_path):
    session = sweeping.group_session(swept.groups[0], tmp_path / "group-000", Lines(io.StringIO()))
    assert session.resume_command == f"agentgym sweep {tmp_path / 'sweep.yaml'} --out {tmp_path} --resume"
    session.lock.release()

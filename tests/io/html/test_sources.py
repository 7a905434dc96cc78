"""From arguments to results, and what is said about those that cannot be trusted."""

import importlib.util
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from agentgym_jax.checks import ConfigError
from agentgym_jax.cli import app
from agentgym_jax.io.html.content import compose
from agentgym_jax.io.html.external import check_schema, read_external
from agentgym_jax.io.html.measures import Replicates, overall_block
from agentgym_jax.io.html.sources import by_task, read_all
from agentgym_jax.io.html.write import write_report
from tests.io.html.made_up import external, returns_of, run_directory

FEW = Replicates(20, 20, 20)
CURVES = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 9.0]])


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """matplotlib's pictures take most of the time of a small report, and are looked at elsewhere."""
    monkeypatch.setattr("agentgym_jax.io.html.write.png", lambda figure: b"")


def verdicts(*sources):
    """The last column of the first task's comparisons, and the warnings."""
    content = compose(read_all(sources), "return", "title", FEW)
    tables = {table.kind: table for table in content.sections[0].tables}
    return [row[-1] for row in tables["probability-of-improvement"].rows], content.warnings


def test_an_existing_folder_is_kept(tmp_path):
    run = run_directory(tmp_path / "run", curves=CURVES)
    page = write_report([run], tmp_path / "out", replicates=FEW)
    page.write_text("mine")
    with pytest.raises(ConfigError, match="--overwrite"):
        write_report([run], tmp_path / "out", replicates=FEW)
    assert page.read_text() == "mine"
    assert write_report([run], tmp_path / "out", overwrite=True, replicates=FEW).read_text().startswith("<!DOCTYPE html>")
    (aside,) = tmp_path.glob("out.old-*")
    assert (aside / "index.html").read_text() == "mine"


def test_the_command_writes_a_page_by_another_metric_and_says_where(tmp_path):
    run = run_directory(tmp_path / "run", curves=CURVES)
    words = ["report", f"mine={run}", "--out", str(tmp_path / "out"), "--metric", "length", "--title", "Lengths"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "out" / "index.html")
    page = (tmp_path / "out" / "index.html").read_text()
    for word in ("<h1>Lengths</h1>", "Metric: length.", "7.000 <span", "mine"):
        assert word in page
    assert "All tasks" not in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], "none does not exist; give run directories"),
        (["run", "./run"], "run is given twice"),
        (["run", "--metric", "retrun"], "unknown metric 'retrun': did you mean return"),
        ([".", "--metric", "return"], "is not a run directory: it has no config.yaml"),
        (["bad.json"], "bad.json: is no JSON"),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    run_directory(tmp_path / "run", curves=CURVES)
    (tmp_path / "bad.json").write_text("{")
    result = CliRunner().invoke(app, ["report", *words, "--out", "out"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()


def test_results_of_one_name_are_told_apart(tmp_path):
    first, second = (run_directory(tmp_path / name / "run", curves=CURVES) for name in ("a", "b"))
    other = run_directory(tmp_path / "c" / "third", curves=CURVES)
    names = [result.algorithm for result in read_all([first, second, other])]
    assert len(set(names)) == 3
    assert names[2] == "ppo [third]"
    assert [result.algorithm for result in read_all([f"old={first}", second])] == ["old", "ppo"]


def test_another_environment_is_another_task(tmp_path):
    plain = run_directory(tmp_path / "plain", curves=CURVES)
    heavy = run_directory(tmp_path / "heavy", "env={id: gymnax/CartPole-v1, params: {gravity: 20.0}}", curves=CURVES)
    tasks = by_task(read_all([heavy, plain]))
    assert list(tasks) == ["gymnax/CartPole-v1", "gymnax/CartPole-v1 gravity=20.0"]


def test_what_was_measured_differently_gets_no_verdict(tmp_path):
    run = run_directory(tmp_path / "run", curves=CURVES)
    other = run_directory(tmp_path / "other", "eval.cap=100", curves=CURVES + 1)
    told, _ = verdicts(run, other)
    assert told == ["none, since they were measured differently: eval.cap: 100 (ppo [other]), – (ppo [run])"]
    short = run_directory(tmp_path / "short", curves=CURVES - 1, budget=32_000)
    assert "steps that ran" in verdicts(run, short)[0][0]
    (tmp_path / "theirs.json").write_text(json.dumps(external(CURVES - 1, "CartPole-v1", "ppo", budget=16_000)))
    assert "steps that ran" in verdicts(run, tmp_path / "theirs.json")[0][0]


def test_few_seeds_are_warned_of_and_very_few_get_no_verdict(tmp_path):
    run = run_directory(tmp_path / "run", curves=CURVES)
    better = run_directory(tmp_path / "better", curves=CURVES + 100)
    told, warnings = verdicts(run, better)
    assert told == ["too few seeds for one"]
    assert "Fewer than 10 seeds" in warnings[0]
    assert "ppo [run] (3)" in warnings[0]
    ten = [run_directory(tmp_path / f"ten{i}", curves=np.repeat(CURVES, 4, axis=0) + 100 * i) for i in range(2)]
    told, warnings = verdicts(*ten)
    assert told == ["ppo [ten1] is better"]
    assert not warnings


def test_a_seed_without_a_number_has_the_lowest_score_and_is_named(tmp_path):
    broken = CURVES.copy()
    broken[1, 1] = np.nan
    run = run_directory(tmp_path / "run", curves=broken, absolute=[5.0, np.nan, 6.0])
    content = compose(read_all([run]), "return", "title", FEW)
    assert any("so given the lowest score: seed 1" in warning for warning in content.warnings)
    (result,) = content.results
    assert result.curves.tolist() == [[1, 2], [2, 1], [3, 9]]
    assert result.absolute.tolist() == [5, 1, 6]


def test_a_single_seed_has_no_interval(tmp_path):
    run = run_directory(tmp_path / "run", curves=CURVES[:1])
    page = write_report([run], tmp_path / "out", replicates=FEW).read_text()
    assert not re.search(r"\bnan\b", page, re.I)
    assert 'class="ends"' not in page


def test_a_threshold_tells_how_many_reached_it_and_when(tmp_path):
    run = run_directory(tmp_path / "run", "eval.threshold=3", curves=CURVES)
    (section,) = compose(read_all([run]), "return", "title", FEW).sections
    table = next(table for table in section.tables if table.kind == "progress")
    assert table.rows[0][-3:] == (3.0, "67%", 64_000)


def test_tasks_measured_at_other_points_have_no_curve_in_common(tmp_path):
    first = run_directory(tmp_path / "first", curves=CURVES)
    second = run_directory(tmp_path / "second", curves=np.hstack([CURVES, CURVES]), env="gymnax/Pendulum-v1")
    overall, *_ = compose(read_all([first, second]), "return", "title", FEW).sections
    assert [figure.kind for figure in overall.figures] == ["aggregates", "performance-profile"]
    assert "No curve over tasks" in overall.notes[-1]


def test_algorithms_of_different_tasks_have_nothing_in_common(tmp_path):
    first = run_directory(tmp_path / "first", curves=CURVES)
    second = run_directory(tmp_path / "second", curves=CURVES, env="gymnax/Pendulum-v1", algorithm="pqn")
    block, left_out = overall_block(by_task(read_all([first, second])), FEW)
    assert block is None
    assert left_out == ["Not on every task, so left out here: ppo, pqn."]


def changed(path, value):
    """A good document in which the entry at `path` is replaced; a value of `...` removes it."""
    document = external(CURVES, "CartPole-v1", "ppo")
    entry = document
    *way, last = path
    for key in way:
        entry = entry[key]
    if value is ...:
        del entry[last]
    else:
        entry[last] = value
    return document


TWO_RUNS = external(CURVES[:2], "x", "y")["gymnax"]["x"]["y"]
RUN = ("gymnax", "CartPole-v1", "ppo", "seed_1")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("gymnax",), 3, "gymnax: must be a mapping of tasks, got 3"),
        (("gymnax", "CartPole-v1"), {}, "gymnax > CartPole-v1: must be a mapping of algorithms"),
        (("gymnax", "CartPole-v1", "a,b"), {}, "a,b: .* no comma"),
        ((*RUN, "step_one"), {}, "seed_1 > step_one: must be called step_<k>"),
        ((*RUN, "step_1", "step_count"), 1.5, "seed_1 > step_1 > step_count: must be a whole number .* got 1.5"),
        ((*RUN, "step_1", "step_count"), 7, "step_1 > step_count: must be above that of the step before, 32000, got 7"),
        ((*RUN, "step_0", "elapsed_time"), ..., "step_0 > elapsed_time: must be a number of seconds, at least 0, got None"),
        ((*RUN, "step_0", "return"), [1.0, "x"], "step_0 > return: must be a finite number .* got 'x'"),
        ((*RUN, "step_0", "return"), [], "step_0 > return: must be a finite number"),
        ((*RUN, "step_0", "return"), float("nan"), "step_0 > return: .* got nan"),
        ((*RUN, "step_0", "return"), ..., "seed_1 > step_0: must hold at least one metric"),
        ((*RUN, "absolute_metrics"), {}, "seed_1 > absolute_metrics: must be a mapping"),
        ((*RUN, "step_1"), ..., "seed_1: must have the steps of the first run, 2 up to 64,000, got '1 up to 32,000'"),
        (("gymnax", "CartPole-v1", "pqn"), TWO_RUNS, "pqn: .* as many runs and steps .* 3 and 2"),
    ],
)  # fmt: skip
def test_a_bad_document_is_named_by_its_place(tmp_path, path, value, message):
    document = changed(path, value)
    with pytest.raises(ConfigError, match=message):
        check_schema(document)
    (tmp_path / "file.json").write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="^[^\n]*file.json: gymnax[^\n]*$"):
        read_external(tmp_path / "file.json")


def test_a_good_document_is_read_exactly(tmp_path):
    check_schema(external(CURVES, "CartPole-v1", "ppo"))
    (tmp_path / "file.json").write_text(json.dumps(external(CURVES, "CartPole-v1", "ppo")))
    (result,) = read_external(tmp_path / "file.json")
    assert (result.task, result.algorithm, result.external) == ("gymnax/CartPole-v1", "ppo", True)
    assert result.curves.tolist() == CURVES.tolist()
    assert result.absolute.tolist() == CURVES[:, -1].tolist()
    assert result.steps.tolist() == [32_000, 64_000]
    with pytest.raises(ConfigError, match="gymnax > CartPole-v1 > ppo: unknown metric 'win_rate'"):
        read_external(tmp_path / "file.json", "win_rate")


def test_the_example_gives_all_algorithms_the_same_budget_and_makes_its_report(root, tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("example_report", root / "experiments" / "example_report.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    made = example.experiments(102_400, 10)
    assert {each.iterations * each.train.num_envs * each.train.rollout_length for each in made.values()} == {102_400}
    assert len({(each.env.id, each.name) for each in made.values()}) == 6

    def train(experiment, out, **_):
        curves = returns_of(3, 2, 100.0, draw=len(out.name))
        run_directory(out, "eval.threshold=475", curves=curves, env=experiment.env.id, algorithm=experiment.name)

    monkeypatch.setattr("agentgym_jax.train", train)
    monkeypatch.setattr("agentgym_jax.use_cores", lambda: None)
    monkeypatch.chdir(tmp_path)
    page = example.main(102_400, 3, "runs", "out")
    assert {path.name for path in (tmp_path / "runs").iterdir()} == set(made)
    assert "All tasks" in page.read_text()

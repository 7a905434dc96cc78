"""Searches that run. The fixture tunes eight trials in two batches from the command line; most tests read what it left."""

import csv
import dataclasses
import json
import shutil
import types

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

from agentgym_jax.cli import app
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.load import load_experiment, to_yaml
from agentgym_jax.io.running.history import History
from agentgym_jax.io.running.runner import train
from agentgym_jax.io.search import drive as tuning
from agentgym_jax.io.search import trials
from agentgym_jax.io.search.trials import Batch, Space, for_validation
from tests.io.quick import quick  # noqa: F401  a fixture
from tests.io.support import PLAIN

SEARCH = {
    "algorithm.learning_rate": {"log_uniform": [1e-3, 0.3]},
    "algorithm.gamma": [0.9, 0.99],
    "network.hidden": [[4], [8]],
}
OPTIONS = {"batch": 4, "seeds": 2, "metric": "sampled.return", "pruner": "none"}


def searched(**search):
    return load_experiment({**PLAIN, "seeds": [0, 1], "search": search or SEARCH})


@pytest.fixture(scope="module")
def tuned(quick, tmp_path_factory):  # noqa: F811
    """(the directory, what the command printed)."""
    folder = tmp_path_factory.mktemp("tune")
    (folder / "mine.yaml").write_text(to_yaml(searched()))
    words = ["tune", folder / "mine.yaml", "--trials", 7, "--out", folder / "found"]
    words += [f"--{name}={value}" for name, value in OPTIONS.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentgym_jax._runtime.cores", lambda: 2)
        result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return folder / "found", result


def study_of(directory):
    return optuna.load_study(study_name=directory.name, storage=f"sqlite:///{directory / 'study.db'}")


def again(tuned, tmp_path):
    """A copy of the directory, to go on in, under the name that its study has."""
    return shutil.copytree(tuned[0], tmp_path / "found")


def test_whole_batches_share_what_is_static_and_are_traced_once(tuned):
    directory, result = tuned
    assert "7 trials rounded up to 8, whole batches of 4" in result.stderr
    assert "8 trials in" in result.stdout
    assert "the best trials, on validation seeds" in result.stdout
    with open(directory / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == ["COMPLETE"] * 8
    for batch in (rows[:4], rows[4:]):
        assert len({row["network.hidden"] for row in batch}) == 1
        assert len({row["algorithm.learning_rate"] for row in batch}) == 4
    assert all(1e-3 <= float(row["algorithm.learning_rate"]) <= 0.3 for row in rows)


def test_trials_are_scored_on_seeds_and_episodes_of_their_own(tuned, quick):  # noqa: F811
    """The same population, trained by hand, has the scores that optuna was told; its program is there already."""
    directory, _ = tuned
    protocol = json.loads((directory / "tune.json").read_text())
    assert protocol["validation"] == {"seeds": [1_000_000, 1_000_001], "eval_seed": 1_000_000}
    assert protocol["report"] == {"seeds": [0, 1], "eval_seed": 0}
    study = study_of(directory)
    assert study.user_attrs["protocol"] == protocol
    space, base = Space.of(searched()), for_validation(searched(), 2, None)
    run = train(space.population(base, [trial.params for trial in study.trials[:4]]), quiet=True)
    assert run.compiles == 0
    scores = run.last_evaluation["sampled"]["return"].mean(axis=-1).reshape(4, 2).mean(axis=-1)
    np.testing.assert_array_equal([trial.value for trial in study.trials[:4]], scores)
    for trial in study.trials:
        assert list(trial.intermediate_values) == [1, 2]
        assert trial.intermediate_values[2] == trial.value


def test_the_best_settings_are_an_experiment_file_on_the_seeds_of_the_report(tuned):
    directory, _ = tuned
    best = load_experiment(directory / "best.yaml")
    trial = study_of(directory).best_trial
    assert best.hyper.learning_rate == trial.params["algorithm.learning_rate"]
    assert best.hyper.gamma == trial.params["algorithm.gamma"]
    assert str(list(best.network.hidden)) == trial.params["network.hidden"]
    assert (best.seeds, best.eval, best.search) == ((0, 1), searched().eval, {})
    assert (directory / "trials.png").stat().st_size > 10_000


def test_a_study_goes_on_and_tries_again_what_a_killed_process_left(tuned, quick, tmp_path):  # noqa: F811
    directory = again(tuned, tmp_path)
    study = study_of(directory)
    static = study.trials[-1].params["network.hidden"]
    study.enqueue_trial({"network.hidden": static})
    left = study.ask(Space.of(searched()).distributions(optuna))
    study.enqueue_trial({"network.hidden": static})
    found = tuning.tune(searched(), 12, directory, resume=True, quiet=True, **OPTIONS)
    assert found.compiles == 0
    assert [row["state"] for row in found.trials].count("COMPLETE") == 12
    assert [row["state"] for row in found.trials[8:10]] == ["FAIL", "FAIL"]
    assert found.study.trials[10].params == left.params
    assert {row["network.hidden"] for row in found.trials[10:]} == {static}
    assert found.experiment.hyper.learning_rate == found.study.best_params["algorithm.learning_rate"]
    nothing_left = tuning.tune(searched(), 12, directory, resume=True, quiet=True, **OPTIONS)
    assert len(nothing_left.trials) == len(found.trials)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resume": False}, "exists; choose another --out"),
        ({"metric": "greedy.return"}, "searched with metric 'sampled.return', got 'greedy.return'"),
        ({"seeds": 3}, "searched with validation"),
        ({"batch": 2}, "searched with batch 4, got 2"),
    ],
)
def test_another_protocol_or_a_new_search_in_its_place_is_refused(tuned, change, message):
    with pytest.raises(ValueError, match=message):
        tuning.tune(searched(), 12, tuned[0], **{"resume": True, **OPTIONS, **change})
    other = searched(**{"algorithm.gamma": [0.9, 0.99]})
    with pytest.raises(ValueError, match="holds another experiment: search"):
        tuning.tune(other, 12, tuned[0], resume=True, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [5, 1]}, "tune: seed 1 is among `seeds`, on which the result is reported"),
        ({"eval_seed": 0}, "tune: eval_seed 0 is `eval.seed`, on which the result is reported"),
        ({"metric": "greedy.retrn"}, "did you mean 'return'?"),
        ({"metric": "gredy.return"}, "did you mean 'greedy'?"),
        ({"pruner": "mean"}, "tune: pruner: 'mean' is not one of median, halving, none"),
        ({"batch": 0}, "tune: batch: must be a whole number of at least 1, got 0"),
        ({"trials": 0}, "tune: trials: must be a whole number of at least 1, got 0"),
        ({"btch": 3}, "did you mean batch?"),
    ],
)
def test_bad_options_are_one_line_before_anything_is_written(tmp_path, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        tuning.tune(searched(), **{"trials": 4, "out": tmp_path / "out", **options})
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_without_optuna_or_a_search_one_line_says_what_to_do(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="search: is empty"):
        tuning.tune(dataclasses.replace(searched(), search={}), 4)
    (tmp_path / "mine.yaml").write_text(to_yaml(searched()))
    monkeypatch.setattr("agentgym_jax._runtime.cores", lambda: 1)
    monkeypatch.setattr(trials.importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["tune", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert result.stderr.splitlines() == ["agentgym: tune: the package optuna is not installed; pip install agentgym-jax[tune]"]
    assert not (tmp_path / "out").exists()


# ---- telling, without training


def evaluated(*scores, diverged=()):
    """A history whose newest evaluation gave these greedy returns to members of one episode each."""
    history = History()
    history.diverged = set(diverged)
    for point in np.asarray(scores, np.float32):
        history.add_evaluation({"greedy": {"return": point[:, None]}, "sampled": {"return": point[:, None]}}, 10)
    return history


def made(count, pruner, points=3):
    study = optuna.create_study(direction="maximize", pruner=pruner)
    return Batch(study, [study.ask() for _ in range(count)], "greedy.return", 2, points)


def states(batch):
    return [trial.state.name for trial in batch.study.trials]


def test_a_trial_below_the_bar_is_pruned_at_an_evaluation_and_keeps_its_last_value():
    batch = made(3, optuna.pruners.ThresholdPruner(lower=5.0))
    assert batch.measured(evaluated([4, 8, 1, 3, 9, 9]))  # members are two seeds of each trial
    assert states(batch) == ["RUNNING", "PRUNED", "RUNNING"]
    assert batch.measured(evaluated([4, 8, 1, 3, 9, 9], [7, 7, 100, 100, 5, 5]))
    assert not made(1, optuna.pruners.ThresholdPruner(lower=5.0)).measured(evaluated([1, 1]))
    last = [[4, 8, 1, 3, 9, 9], [7, 7, 100, 100, 5, 5], [6, 6, 50, 50, 0, 2]]
    assert batch.measured(evaluated(*last))  # at the last point nobody is pruned, however bad
    run = types.SimpleNamespace(last_evaluation={"greedy": {"return": np.array(last[-1], np.float32)[:, None]}})
    batch.finished(run)
    assert states(batch) == ["COMPLETE", "PRUNED", "COMPLETE"]
    assert [trial.value for trial in batch.study.trials] == [6.0, 2.0, 1.0]
    assert [list(trial.intermediate_values.values()) for trial in batch.study.trials] == [[6, 7, 6], [2], [9, 5, 1]]


def test_a_trial_that_diverged_is_never_the_best():
    batch = made(3, optuna.pruners.NopPruner(), points=1)
    scores = [[1, 1, 9, 9, np.nan, 1]]
    batch.measured(evaluated(*scores, diverged=[3]))
    batch.finished(types.SimpleNamespace(last_evaluation={"greedy": {"return": np.array(scores[0], np.float32)[:, None]}}))
    assert states(batch) == ["COMPLETE", "PRUNED", "PRUNED"]
    assert [trial.user_attrs.get("diverged", False) for trial in batch.study.trials] == [False, True, True]
    assert batch.study.best_trial.number == 0


def test_a_batch_that_is_pruned_as_a_whole_ends_there(quick, monkeypatch):  # noqa: F811
    monkeypatch.setattr(tuning, "make_pruner", lambda library, name: library.pruners.ThresholdPruner(lower=1e6))
    search = {"algorithm.learning_rate": {"log_uniform": [1e-3, 0.3]}, "network.hidden": [[4], [8]]}
    found = tuning.tune(searched(**search), 4, quiet=True, **{**OPTIONS, "pruner": "median"})
    assert [(row["state"], row["evaluations"]) for row in found.trials] == [("PRUNED", 1)] * 4
    assert found.experiment is None


def test_trials_that_differ_in_static_settings_alone_come_one_by_one(monkeypatch):
    monkeypatch.setattr(tuning._Tuning, "run", lambda self: self.chosen.batch)
    assert tuning.tune(searched(**{"network.hidden": [[4], [8]]}), 4) == 1
    assert tuning.tune(searched(), 4) == 8


def test_a_space_tells_members_from_batches_and_optunas_names_from_settings():
    search = {"network.hidden": [[4], [8]], "algorithm.epochs": {"int": [1, 3]}, "algorithm.gamma": [0.8, 0.9]}
    space = Space.of(searched(**search))
    assert (space.static, space.traced) == (("network.hidden", "algorithm.epochs"), ("algorithm.gamma",))
    assert space.settings({"network.hidden": "[8]", "algorithm.epochs": 2, "algorithm.gamma": 0.8}) == {
        "network.hidden": (8,), "algorithm.epochs": 2, "algorithm.gamma": 0.8,
    }  # fmt: skip
    batch = [{"network.hidden": "[8]", "algorithm.epochs": 2, "algorithm.gamma": gamma} for gamma in (0.8, 0.9, 0.8)]
    population = space.population(Experiment(env="probe/constant"), batch)
    assert [dict(point) for point in population.points] == [{"algorithm.gamma": gamma} for gamma in (0.8, 0.9, 0.8)]
    assert (population.algorithm.epochs, population.network.hidden) == (2, (8,))


def test_the_choices_of_a_batch_follow_the_seed():
    def drawn(seed):
        study = optuna.create_study(sampler=trials.make_sampler(optuna, seed))
        return [trial.params for trial in trials.ask(study, Space.of(searched()), 4, [])]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)

"""`agentgym compare`, `export` and `reproduce`, in this process on made-up runs."""

import importlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from agentgym_jax.cli import app
from agentgym_jax.io.comparing import reproduce as reproducing
from agentgym_jax.io.comparing.reproduce import Reproduction
from tests.io.run_files import write_run


@pytest.fixture
def agentgym(monkeypatch, tmp_path):
    """Runs a command from a folder with the runs `a`, `b` (better) and `c` (measured otherwise)."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "a", np.linspace(0, 3, 10))
    write_run(tmp_path / "b", np.linspace(2, 5, 10), "algorithm.gamma=0.9")
    write_run(tmp_path / "c", np.linspace(2, 5, 10), "eval.seed=7")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_compare_prints_tables_or_json(agentgym):
    done = agentgym("compare", "a", "better=b")
    assert done.exit_code == 0
    assert "algorithm.gamma: 0.99 (a), 0.9 (better)" in done.stdout
    assert "worse" in done.stdout
    result = json.loads(agentgym("compare", "a", "b", "--json", "--policy", "absolute").stdout)
    assert result["score"] == {"metric": "return", "policy": "absolute"}
    assert result["pairs"][0]["verdict"] == "worse"


def test_compare_without_a_verdict_has_exit_code_1(agentgym):
    done = agentgym("compare", "a", "c")
    assert done.exit_code == 1
    assert "eval.seed: 0 (a), 7 (c)" in done.stdout
    assert "no verdict" in done.stdout
    done = agentgym("compare", "a", "c", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["withheld"] == ["evaluation"]


def test_export_writes_one_file(agentgym, tmp_path):
    done = agentgym("export", "a", "low=b", "--out", "all.json")
    assert done.exit_code == 0, done.stderr
    assert "probe > policy_observation: ppo (10 runs), low (10 runs)" in done.stdout
    assert set(json.loads((tmp_path / "all.json").read_text())["probe"]["policy_observation"]) == {"ppo", "low"}
    assert "all.json exists" in agentgym("export", "a", "--out", "all.json").stderr
    assert "did you mean 'marl-eval'" in agentgym("export", "a", "--format", "marl_eval", "--out", "x.json").stderr


@pytest.mark.parametrize("verdict", ["bit-equal", "statistically equal", "different"])
def test_reproduce_says_what_became_of_a_run(agentgym, tmp_path, monkeypatch, verdict):
    same, differs = verdict == "bit-equal", verdict == "different"
    result = Reproduction(
        verdict,
        None if same else "metrics.jsonl, step 16: loss was 1 then and is 2 now",
        ("greedy: it fell",) if differs else (),
        {} if same else {"greedy": (-1.0, 2.0)},
        ("jax: 0.10.2 (then), 0.11.0 (now)",),
    )
    command = importlib.import_module("agentgym_jax.cli.reproduce")  # the package has a function of that name
    monkeypatch.setattr(command, "prepare_jax", lambda devices: None)
    monkeypatch.setattr(reproducing, "reproduce", lambda run, out, reporter: result)
    (tmp_path / "a" / "checkpoints").mkdir()
    done = agentgym("reproduce", "a", "--quiet")
    assert done.exit_code == differs
    assert done.stdout.splitlines()[0] == f"a: {verdict}"
    assert ("first difference: metrics.jsonl, step 16" in done.stdout) == (not same)
    assert ("different because greedy: it fell" in done.stdout) == differs
    assert "changed: jax: 0.10.2 (then), 0.11.0 (now)" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "a"], "at least two runs"),
        (["compare", "a", "none"], "none is not a run directory"),
        (["compare", "a", "b", "--metric", "retrun"], "did you mean return"),
        (["export", "none", "--out", "x.json"], "none is not a run directory"),
        (["reproduce", "none"], "none does not exist"),
    ],
)
def test_bad_input_is_one_line_on_stderr(agentgym, words, message):
    done = agentgym(*words)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert message in line

"""`agentgym match` in this process."""

import json

import jax
import pytest
from typer.testing import CliRunner

from agentgym_jax.cli import app
from tests.envs.contract import QUICK


@pytest.fixture
def match(monkeypatch, tmp_path):
    """Runs the command in an empty folder, where programs compile quickly."""
    compile_ = jax.stages.Lowered.compile
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda lowered: compile_(lowered, QUICK))
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["match", *words])


def test_a_table_is_printed_and_files_are_written(match, tmp_path):
    done = match("probe/two_groups", "--episodes", "8", "--seed", "3")
    assert done.exit_code == 0, done.output
    assert "scouts" in done.stdout and "random" in done.stdout and "8 episodes" in done.stdout
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("match_two_groups-") and folder.name in done.stdout.replace("\n", "")
    content = json.loads((folder / "matches.json").read_text())
    assert content["players"] == {"scouts": ["random"], "guard": ["random"]}
    assert content["pairings"][0]["return.low"] < content["pairings"][0]["return"] < content["pairings"][0]["return.high"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["probe/two_group"], "did you mean probe/two_groups"),
        (["probe/two_groups", "none"], "run directory none does not exist"),
        (["probe/two_groups", "--strength", "1.5"], "strength: must be between 0 and 1"),
        (["probe/two_groups", "--out", "/proc/match"], "cannot be written"),
    ],
)
def test_bad_input_is_one_line(match, words, message):
    done = match(*words)
    assert done.exit_code == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1
    assert done.stdout == ""

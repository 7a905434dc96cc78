import numpy as np
import pytest

from agentgym_jax.io.comparing.stored import read_named, read_stored
from tests.io.run_files import write_run


def test_a_run_is_read_from_its_files(tmp_path):
    run = read_stored(write_run(tmp_path / "run", [1.0, 2.0, 3.0]))
    assert run.label == "run"
    assert run.steps.tolist() == [32, 64]
    assert run.evaluation["greedy"]["return"].shape == (3, 2, 4)
    assert [member["seed"] for member in run.members] == [0, 1, 2]
    assert run.scores("return", "greedy").tolist() == [1, 2, 3]
    assert run.scores("return", "absolute").tolist() == [1.5, 2.5, 3.5]
    assert run.config["algorithm"]["name"] == "ppo"
    with pytest.raises(ValueError, match="did you mean length"):
        run.scores("lenght", "greedy")


def test_a_sweep_has_settings_and_what_was_not_finite_is_nan(tmp_path):
    folder = write_run(tmp_path / "run", [1.0, np.nan, 3.0, 4.0], "sweep={algorithm.gamma: [0.9, 0.99]}")
    run = read_stored(folder)
    assert run.settings == [({"algorithm.gamma": 0.9}, [0, 1]), ({"algorithm.gamma": 0.99}, [2, 3])]
    assert np.isnan(run.scores("return", "greedy")[1])
    assert np.isnan(run.scores("return", "absolute")[1])


def test_a_finished_run_of_the_framework_can_be_read(finished):
    run, _ = finished
    stored = read_stored(run.directory)
    assert np.array_equal(stored.evaluation["greedy"]["return"].astype(np.float32), run.evaluation["greedy"]["return"])
    assert [dict(member) for member in run.experiment.members] == list(stored.members)
    per_seed = run.summary["absolute"]["return"]["per_seed"]
    assert np.array_equal(stored.scores("return", "absolute"), per_seed, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("summary.json", None, "has no summary.json: the run has not finished"),
        ("provenance.json", None, "not a run directory: it has no provenance.json"),
        ("summary.json", "{", "summary.json is damaged"),
        ("summary.json", "{}", "summary.json is damaged: .*has no env, algorithm"),
        ("summary.json", "[1]", "summary.json is damaged"),
        ("provenance.json", "null", "provenance.json is damaged"),
        ("evaluations.jsonl", '{"step": 1}\n', "evaluations.jsonl is damaged"),
        ("evaluations.jsonl", "", "evaluations.jsonl is damaged: .*0 readable records"),
        ("config.yaml", "env: [", "config.yaml"),
        ("config.yaml", "env: {id: probe/constant}\n", "config.yaml is damaged"),
        ("config.yaml", b"\xff\xfe\x00", "config.yaml"),
        ("summary.json", b"\xff\xfe\x00", "summary.json is damaged"),
    ],
)
def test_damage_is_one_line_that_names_the_file(tmp_path, name, content, message):
    folder = write_run(tmp_path / "run", [1.0, 2.0])
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as caught:
        read_stored(folder)
    assert "\n" not in str(caught.value)


def test_a_torn_or_shortened_file_of_evaluations_is_damage(tmp_path):
    folder = write_run(tmp_path / "run", [1.0, 2.0])
    lines = (folder / "evaluations.jsonl").read_text().splitlines(keepends=True)
    for left in (lines[:-1], lines[:2], [*lines[:-1], lines[-1][:20]], [lines[0], "x\n", *lines[2:]], [*lines, lines[-1]]):
        (folder / "evaluations.jsonl").write_text("".join(left))
        with pytest.raises(ValueError, match="evaluations.jsonl is damaged: .* readable records"):
            read_stored(folder)


def test_runs_can_be_named_and_come_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "a" / "run", [1.0])
    write_run(tmp_path / "x=y", [1.0])
    assert [run.label for run in read_named(["first=a/run", "x=y"])] == ["first", "x=y"]
    with pytest.raises(ValueError, match="given twice"):
        read_named(["a/run", "z=a/run"])

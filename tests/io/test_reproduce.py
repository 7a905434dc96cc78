import json
import shutil

import numpy as np
import pytest

from agentgym_jax.io.comparing.reproduce import judge, reproduce
from agentgym_jax.io.comparing.stored import read_stored
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.running.progress import Reporter
from tests.io.run_files import write_run

STATE = {"weights": np.arange(3.0), "gone": np.array([np.nan])}
RETURNS = [1.0, 2.0, 3.0, 5.0]


def test_a_run_made_again_is_the_same_to_the_bit_and_the_first_is_not_touched(finished, tmp_path):
    """Two seeds, two learning rates, one of which diverges; recurrent, normalised, with loggers that are left out."""
    run, _ = finished
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.directory.rglob("*") if path.is_file()}
    result = reproduce(run.directory, tmp_path / "again", Reporter())
    assert (result.verdict, result.first, result.reasons) == ("bit-equal", None, ())
    assert result.surroundings == ()
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.directory.rglob("*") if path.is_file()}
    assert after == before
    assert read_stored(tmp_path / "again").members == read_stored(run.directory).members
    assert not (tmp_path / "again" / "tensorboard").exists()


@pytest.fixture
def judged(tmp_path):
    """Judges a made-up run against a copy in which `change(files, folder)` was done."""

    def go(change, returns=RETURNS, state=STATE, overrides=()):
        then = write_run(tmp_path / "then", returns, *overrides)
        now = tmp_path / "now"
        shutil.copytree(then, now)
        change(now)
        experiment = load_experiment(then / "config.yaml")
        return judge(read_stored(then), read_stored(now), STATE, state, experiment)

    return go


def rewrite(name, change):
    """Passes every record of a file through `change`."""

    def go(folder):
        records = [json.loads(line) for line in (folder / name).read_text().splitlines()]
        for record in records:
            change(record)
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))

    return go


def nothing(folder):
    pass


def test_equal_files_and_states_are_bit_equal(judged):
    assert judged(nothing).verdict == "bit-equal"


def test_the_smallest_change_of_a_record_is_found_and_named(judged):
    def change(record):
        if record["step"] == 64 and record["member"] == 2:
            record["loss"] = float(np.nextafter(2.0, 3))

    result = judged(rewrite("metrics.jsonl", change))
    assert result.verdict == "statistically equal"
    assert result.first == "metrics.jsonl, step 64, member 2 (seed 2): loss was 2.0 then and is 2.0000000000000004 now"
    assert set(result.intervals) == {"greedy", "sampled", "absolute"}


def test_the_first_difference_is_the_earliest_in_steps(judged):
    def both(folder):
        rewrite("metrics.jsonl", lambda record: record.update(loss=-1.0) if record["step"] == 64 else None)(folder)
        rewrite("evaluations.jsonl", lambda record: record["greedy"]["length"].__setitem__(3, 11.0))(folder)

    first = judged(both).first
    assert first == "evaluations.jsonl, step 32, member 0 (seed 0): greedy.length.3 was 10.0 then and is 11.0 now"


def test_a_state_that_is_not_the_same_is_named(judged):
    result = judged(nothing, state=STATE | {"weights": np.array([0.0, 1.0, -2.0])})
    assert result.verdict == "statistically equal"
    assert result.first == "final state: ['weights'], float64[3], is not the same"


def test_a_zero_of_the_other_sign_is_not_the_same(judged):
    assert "weights" in judged(nothing, state=STATE | {"weights": np.array([-0.0, 1.0, 2.0])}).first


def shifted(by):
    def change(record):
        for policy in ("greedy", "sampled"):
            record[policy]["return"] = [x + by for x in record[policy]["return"]]

    return rewrite("evaluations.jsonl", change)


def test_returns_within_chance_are_statistically_equal_and_others_different(judged):
    result = judged(shifted(0.5))
    low, high = result.intervals["greedy"]
    assert low < 0.5 < high
    assert result.verdict == "statistically equal"


def test_returns_beyond_chance_are_different(judged):
    result = judged(shifted(9.0))
    assert result.verdict == "different"
    assert [reason.partition(":")[0] for reason in result.reasons] == ["greedy", "sampled"]
    assert "changed by between" in result.reasons[0]


def test_one_seed_is_bit_equal_or_different(judged):
    result = judged(shifted(1e-6), returns=[1.0])
    assert result.verdict == "different"
    assert "one seed cannot tell" in result.reasons[0]


def test_another_number_of_first_episodes_or_of_finite_seeds_is_different(judged):
    result = judged(rewrite("metrics.jsonl", lambda record: record.update(episodes=record["member"])))
    assert any("[None, None, None, None] then, [0, 1, 2, 3] now" in reason for reason in result.reasons)
    assert any("not of the same kinds" in reason for reason in result.reasons)


def test_a_seed_that_now_diverges_is_different(judged):
    def change(record):
        if record["member"] == 1 and record["step"] == 64:
            record["greedy"]["return"][0] = None

    result = judged(rewrite("evaluations.jsonl", change))
    assert result.reasons == ("greedy: 4 seeds with a finite return then, 3 now",)


def test_each_setting_of_a_sweep_is_judged_by_itself(judged):
    change = rewrite("evaluations.jsonl", lambda r: r["greedy"].update({"return": [99.0] * 4}) if r["member"] >= 4 else None)
    result = judged(change, returns=RETURNS * 2, overrides=["sweep={algorithm.gamma: [0.9, 0.99]}"])
    assert [reason.partition(":")[0] for reason in result.reasons] == ["greedy algorithm.gamma=0.99"]
    assert len(result.intervals) == 6


def test_changed_versions_and_hardware_are_named(judged):
    def change(folder):
        text = (folder / "provenance.json").read_text()
        (folder / "provenance.json").write_text(text.replace("0.10.2", "0.11.0").replace('"cores": 2', '"cores": 8'))

    assert judged(change).surroundings == ("jax: 0.10.2 (then), 0.11.0 (now)", "cores: 2 (then), 8 (now)")


def test_what_cannot_be_made_again_is_refused(tmp_path):
    folder = write_run(tmp_path / "run", RETURNS)
    with pytest.raises(ValueError, match="has no checkpoints"):
        reproduce(folder)
    (folder / "checkpoints").mkdir()
    with pytest.raises(ValueError, match="is inside the run"):
        reproduce(folder, folder / "again")
    (folder / "summary.json").unlink()
    with pytest.raises(ValueError, match="has not finished"):
        reproduce(folder)

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.io.saving import checkpoint
from agentgym_jax.io.saving.background import Checkpoints, SaveError
from agentgym_jax.io.saving.checkpoint import OPTIONAL, newest, read, stored_steps
from agentgym_jax.types import Best, TrainState
from tests.training.support import same_bits


def state():
    return {
        "weights": jnp.arange(6, dtype=jnp.float32).reshape(2, 3),
        "bytes": jnp.ones((2, 4), jnp.uint8),
        "low": jnp.ones((3,), jnp.bfloat16),
        "count": jnp.int32([3, 4]),
        "flags": jnp.bool_([True, False]),
        "empty": (),
        "none_of": jnp.zeros((2, 0), jnp.float32),
        "key": jax.random.split(jax.random.key(0), 2),
        "other": jax.random.key(1, impl="rbg"),
    }


def saved(folder, *steps, keep=9, state=None, scores=()):
    """A folder with a checkpoint at each of these steps."""
    checkpoints = Checkpoints(folder, keep)
    for index, step in enumerate(steps):
        meta = {**OPTIONAL, "score": scores[index] if scores else None}
        checkpoints.save(step, {"x": jnp.full(3, float(step))} if state is None else state, meta)
    checkpoints.close()
    return folder


def fit(template):
    return lambda found: found.fit(template, checkpoint.STATE)


def test_a_state_comes_back_to_the_bit_with_its_keys(tmp_path):
    saved(tmp_path / "checkpoints", 640, state=state())
    restored = newest(tmp_path / "checkpoints", fit(jax.eval_shape(state)))
    assert jax.tree.structure(restored) == jax.tree.structure(state())
    assert same_bits(restored, state())
    assert str(jax.random.key_impl(restored["other"])) == "rbg"


def test_the_last_are_kept_and_the_best_and_steps_may_be_arrays(tmp_path):
    saved(tmp_path, 10, jnp.int32(20), np.float32(30), 40, 50, keep=2, scores=[1.0, 7.0, 3.0, None, 2.0])
    assert stored_steps(tmp_path) == [20, 40, 50]
    saved(tmp_path, 60, keep=1, scores=[6.0])
    assert stored_steps(tmp_path) == [20, 60]
    assert newest(tmp_path, fit({"x": jnp.zeros(3)}))["x"][0] == 60
    with pytest.raises(ValueError, match="whole number of steps, got 1.5"):
        saved(tmp_path, 1.5)


def test_what_was_not_finished_is_not_seen_and_cleared_away(tmp_path):
    saved(tmp_path, 10)
    (tmp_path / ".saving-20" / "state").mkdir(parents=True)
    assert stored_steps(tmp_path) == [10]
    saved(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["10"]


def test_a_copy_is_saved_though_the_state_changes_meanwhile(tmp_path):
    checkpoints, array, listed = Checkpoints(tmp_path), np.zeros(3, np.float32), [1]
    checkpoints.save(1, {"x": array}, {**OPTIONAL, "listed": listed})
    array[:], listed[0] = 5.0, 2
    checkpoints.close()
    assert not read(tmp_path, 1).arrays["state['x']"].any()
    assert read(tmp_path, 1).meta["listed"] == [1]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"x": jnp.zeros(2)}, r"state\['x'\] is float32\[3\] there, this experiment needs float32\[2\]"),
        ({"x": jnp.zeros(3, jnp.int32)}, "needs int32"),
        ({"x": jnp.zeros(3), "y": jnp.zeros(1)}, r"has no state\['y'\]"),
        ({}, r"has state\['x'\], which"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, template, message):
    with pytest.raises(ValueError, match=message):
        newest(saved(tmp_path, 1), fit(template))


def largest(folder):
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def other_format(folder):
    path = folder / "meta" / "metadata"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))


def all_data(folder, change):
    for path in (folder / "state").rglob("d/*"):
        change(path)


DAMAGE = {
    "flipped": (lambda folder: all_data(folder, flip), "is damaged"),
    "truncated": (lambda folder: all_data(folder, lambda path: os.truncate(path, 40)), "is damaged"),
    "arrays missing": (lambda folder: (folder / "state" / "manifest.ocdbt").unlink(), "is damaged"),
    "description": (lambda folder: flip(folder / "meta" / "metadata"), "is damaged"),
    "no description": (lambda folder: (folder / "meta" / "metadata").unlink(), "is damaged"),
    "foreign": (other_format, "has format 1, this version of agentgym_jax reads 2"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_or_foreign_one_is_named_and_the_newest_good_one_offered(tmp_path, name):
    damage, message = DAMAGE[name]
    saved(tmp_path / "run" / "checkpoints", 10, 20, 30, 40)
    damage(tmp_path / "run" / "checkpoints" / "40")
    flip(tmp_path / "run" / "checkpoints" / "30" / "meta" / "metadata")
    with pytest.raises(ValueError, match=message) as caught:
        newest(tmp_path / "run" / "checkpoints", fit({"x": jnp.zeros(3)}))
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"checkpoint {tmp_path / 'run' / 'checkpoints' / '40'}")
    assert line.endswith(f"the newest good one is at 20 steps: agentgym resume {tmp_path / 'run'} --from 20")
    assert newest(tmp_path / "run" / "checkpoints", fit({"x": jnp.zeros(3)}), 20)["x"][0] == 20


def test_bytes_that_decode_to_other_numbers_are_noticed(tmp_path):
    """A state that another hand wrote, whole in itself, under a description that is not its own."""
    saved(tmp_path / "a", 10)
    saved(tmp_path / "b", 10, state={"x": jnp.full(3, 11.0)})
    (tmp_path / "a" / "10" / "state").rename(tmp_path / "old")
    (tmp_path / "b" / "10" / "state").rename(tmp_path / "a" / "10" / "state")
    with pytest.raises(ValueError, match=r"is damaged: state\['x'\] is not what was written; there is no other good one"):
        newest(tmp_path / "a", fit({"x": jnp.zeros(3)}))


def test_none_and_one_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no complete checkpoint"):
        newest(tmp_path, fit({}))
    with pytest.raises(ValueError, match="no checkpoint at 5 steps; it has 10, 20"):
        newest(saved(tmp_path, 10, 20), fit({}), 5)


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_optional_field_that_is_missing_gets_its_default_and_a_warning(tmp_path, name):
    saved(tmp_path, 10)
    path = tmp_path / "10" / "meta" / "metadata"
    meta = json.loads(path.read_text())
    del meta[name], meta["checksum"]
    path.write_text(json.dumps(checkpoint.seal(meta)))
    with pytest.warns(UserWarning, match=f"has no '{name}'"):
        assert read(tmp_path, 10).meta[name] == OPTIONAL[name]


def test_a_state_without_its_best_policy_takes_the_present_one(tmp_path):
    learner = {"w": jnp.arange(4.0).reshape(2, 2)}
    whole = TrainState(learner, {}, (), (), Best(jnp.zeros(2), learner), jax.random.split(jax.random.key(0), 2))
    saved(tmp_path, 10, state=whole.replace(best=()))
    with pytest.warns(UserWarning, match="has no best policy"):
        restored = read(tmp_path, 10).state(jax.eval_shape(lambda: whole))
    assert same_bits(restored.best, Best(jnp.full(2, -jnp.inf), learner))


def test_a_failure_in_the_background_is_raised_by_the_next_look_and_at_the_end(tmp_path):
    for look in (Checkpoints.check, lambda each: each.save(30, {"x": jnp.zeros(3)}, OPTIONAL), Checkpoints.close):
        folder = saved(tmp_path / look.__name__, 10)
        checkpoints = Checkpoints(folder)
        (folder / ".saving-20").write_text("in its way")
        checkpoints.save(20, {"x": jnp.zeros(3)}, OPTIONAL)
        checkpoints._writer.submit(lambda: None).result()  # the one before is through
        with pytest.raises(SaveError, match="could not be written to .*; the newest complete one is at 10 steps") as caught:
            look(checkpoints)
        assert len(str(caught.value).splitlines()) == 1
        checkpoints.close()
        assert stored_steps(folder) == [10]


@pytest.fixture
def open_folder():
    """A temporary folder that every user may enter; those above pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_folder_that_became_read_only_fails_loudly_for_an_ordinary_user(open_folder):
    """In a process of its own that is nobody's, since root may write everywhere."""
    code = """
import os, sys
from pathlib import Path
import jax.numpy as jnp
from agentgym_jax.io.saving.checkpoint import OPTIONAL
from agentgym_jax.io.saving.background import Checkpoints
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
checkpoints = Checkpoints(Path(sys.argv[1]))
checkpoints.save(10, {"x": jnp.zeros(3)}, OPTIONAL)
checkpoints._wait()
os.chmod(sys.argv[1], 0o555)
checkpoints.save(20, {"x": jnp.zeros(3)}, OPTIONAL)
checkpoints.close()
"""
    folder = open_folder / "checkpoints"
    folder.mkdir()
    if os.getuid() == 0:
        os.chown(folder, 65534, 65534)
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "SaveError: a checkpoint could not be written to" in done.stderr
    assert "Permission denied" in done.stderr
    assert "the newest complete one is at 10 steps" in done.stderr
    assert stored_steps(folder) == [10]

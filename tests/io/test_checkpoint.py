import jax
import jax.numpy as jnp
import numpy as np
import pytest

from agentgym_jax.io import checkpoint
from agentgym_jax.io.checkpoint import Checkpoints


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


def same(a, b):
    data = lambda x: np.asarray(jax.random.key_data(x) if checkpoint.is_key(x) else x)  # noqa: E731
    return jax.tree.all(jax.tree.map(lambda x, y: x.dtype == y.dtype and np.array_equal(data(x), data(y)), a, b))


def test_a_state_comes_back_to_the_bit_with_its_keys(tmp_path):
    saved = Checkpoints(tmp_path / "checkpoints")
    saved.save(640, state(), {"steps": 640})
    saved.close()
    read = Checkpoints(tmp_path / "checkpoints", read_only=True)
    restored = read.restore(jax.eval_shape(state))
    assert read.meta()["steps"] == 640
    read.close()
    assert same(restored, state())
    assert str(jax.random.key_impl(restored["other"])) == "rbg"


def test_the_newest_is_kept_and_steps_may_be_arrays(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (10, jnp.int32(20), np.float32(30)):
        checkpoints.save(step, {"x": jnp.float32(float(step))}, {})
    checkpoints.close()
    assert [path.name for path in tmp_path.iterdir()] == ["30"]
    assert Checkpoints(tmp_path, read_only=True).restore({"x": jnp.float32(0)})["x"] == 30


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ({"x": jnp.zeros(2)}, r"\['x'\] is float32\[3\] in the checkpoint, this experiment needs float32\[2\]"),
        ({"x": jnp.zeros(3, jnp.int32)}, "needs int32"),
        ({"x": jnp.zeros(3), "y": jnp.zeros(1)}, r"no \['y'\]"),
        ({}, r"has \['x'\], which"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, template, message):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"x": jnp.zeros(3)}, {})
    checkpoints.close()
    with pytest.raises(ValueError, match=message):
        Checkpoints(tmp_path, read_only=True).restore(template)


def test_a_newer_format_and_an_empty_folder_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="no complete checkpoint"):
        Checkpoints(tmp_path, read_only=True).meta()
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"x": jnp.zeros(3)}, {})
    checkpoints.close()
    monkeypatch.setattr(checkpoint, "FORMAT", 0)
    with pytest.raises(ValueError, match="format 1"):
        Checkpoints(tmp_path, read_only=True).meta()


def test_a_failure_in_the_background_is_raised_by_the_next_save_and_at_the_end(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"x": jnp.zeros(3)}, {})

    def failed():
        raise OSError("disk full")

    monkeypatch.setattr(checkpoints._manager, "check_for_errors", failed)
    for step in (lambda: checkpoints.save(2, {"x": jnp.zeros(3)}, {}), checkpoints.close):
        with pytest.raises(OSError, match="disk full"):
            step()

import pytest

from agentgym_jax.io.running.run_directory import create, default_path, existing


def test_a_new_folder_is_made_with_its_parents(tmp_path):
    directory = create(tmp_path / "a" / "b")
    assert directory.path.is_dir()
    assert list(directory.path.iterdir()) == []
    assert create(tmp_path / "a" / "b").path == directory.path  # empty: nothing to lose


def test_an_existing_run_is_refused_and_moved_aside_on_request(tmp_path):
    out = tmp_path / "run"
    create(out).config.write_text("old")
    with pytest.raises(ValueError, match="run exists; .*--overwrite"):
        create(out)
    create(out, overwrite=True).config.write_text("new")
    create(out, overwrite=True)
    kept = sorted(path.joinpath("config.yaml").read_text() for path in tmp_path.glob("run.old-*"))
    assert kept == ["new", "old"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written: Not a directory"):
        create(tmp_path / "file" / "run")
    with pytest.raises(ValueError, match="cannot be written"):
        create("/proc/run")


def test_default_names_do_not_meet(tmp_path):
    first = default_path("gymnax", "cartpole_ppo", tmp_path)
    assert first.name.startswith("gymnax_cartpole_ppo-")
    first.mkdir()
    second = default_path("gymnax", "cartpole_ppo", tmp_path)
    assert second != first


def test_only_a_run_is_taken_for_one(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        existing(tmp_path / "none")
    with pytest.raises(ValueError, match="no config.yaml"):
        existing(tmp_path)

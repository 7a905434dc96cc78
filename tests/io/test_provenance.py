import subprocess

import jax

from agentgym_jax.io.running.provenance import git_commit, machine, provenance, versions


def test_versions_and_machine_are_what_a_bug_report_needs():
    assert versions()["jax"] == jax.__version__
    found = machine()
    assert found["backend"] == jax.default_backend()
    assert len(found["devices"]) == len(jax.devices())
    assert "xla_cpu_enable_concurrency_optimized_scheduler=false" in found["xla_flags"]


def test_a_commit_is_given_where_there_is_one(tmp_path):
    assert git_commit(tmp_path) is None
    assert provenance((3, 7))["seeds"] == [3, 7]


def test_what_was_changed_since_is_told_but_for_what_does_not_count(tmp_path):
    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, timeout=30, capture_output=True)

    code, record = tmp_path / "code.py", tmp_path / "results" / "record.json"
    record.parent.mkdir()
    for file in (code, record):
        file.write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")

    def changed(folder=tmp_path, but=()):
        return git_commit(folder, but)["changed"]

    assert not changed()
    record.write_text("2")
    assert changed() and changed(record.parent) and not changed(but=("results",))
    code.write_text("2")
    assert changed(but=("results",)) and changed(record.parent)

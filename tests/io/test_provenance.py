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

"""What must be settled before jax starts, in processes of their own."""

import os
import subprocess
import sys

import pytest

from agentgym_jax import _runtime


def python(code, **environment):
    keep = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS",)}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, timeout=100, env=keep | environment, check=False)


def test_importing_the_package_sets_one_flag_and_imports_nothing_heavy():
    done = python(
        "import os, sys, agentgym_jax as a; print(os.environ['XLA_FLAGS']); "
        "print(sorted({'jax', 'numpy', 'flax', 'omegaconf', 'typer'} & set(sys.modules))); print(a._runtime.flag_status())"
    )
    assert done.stdout.splitlines() == [_runtime.FLAG, "[]", "active"], done.stderr


def test_a_users_own_flags_stay():
    own = "--xla_cpu_enable_concurrency_optimized_scheduler=true"
    done = python("import os, agentgym_jax as a; print(os.environ['XLA_FLAGS'], a._runtime.flag_status())", XLA_FLAGS=own)
    assert done.stdout.strip() == f"{own} set by you to another value"
    done = python("import os, agentgym_jax as a; print(os.environ['XLA_FLAGS'])", XLA_FLAGS="--xla_dump_to=x")
    assert done.stdout.strip() == f"--xla_dump_to=x {_runtime.FLAG}"


def test_cores_become_devices_only_before_jax_starts():
    done = python(
        "import agentgym_jax as a; print(a.use_cores(3)); import jax; print(len(jax.devices())); print(a.use_cores(2))\n"
        "try: a.use_cores(4)\nexcept RuntimeError as error: print(error)"
    )
    lines = done.stdout.splitlines()
    assert lines[:3] == ["3", "3", "3"], done.stderr
    assert "jax is running already with 3 CPU devices" in lines[3]
    done = python(
        "import agentgym_jax as a; print(a.use_cores(3))", XLA_FLAGS="--xla_force_host_platform_device_count=2 " + _runtime.FLAG
    )
    assert done.stdout.strip() == "2"


def test_a_flag_after_jax_started_is_said_to_be_too_late():
    done = python("import jax; jax.devices(); import agentgym_jax as a; print(a._runtime.flag_status())")
    assert "import agentgym_jax first" in done.stdout


def test_an_untested_jaxlib_gets_no_flag(monkeypatch):
    monkeypatch.setattr(_runtime, "jaxlib_version", lambda: "0.99.1")
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(_runtime, "_status", "")
    _runtime.append_flag()
    assert os.environ["XLA_FLAGS"] == ""
    assert "0.99.1 was not tested" in _runtime.flag_status()


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_bad_count_is_refused(count):
    with pytest.raises(ValueError, match="at least 1"):
        _runtime.use_cores(count)


def test_public_names_resolve():
    import agentgym_jax

    for name in agentgym_jax.__all__:
        assert getattr(agentgym_jax, name) is not None
    assert "train" in dir(agentgym_jax)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        agentgym_jax.trian  # noqa: B018

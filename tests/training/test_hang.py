"""A population keeps going in both modes; a hang is a failure, told by a time-out from outside the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import pytest

SECONDS = 120


@pytest.mark.parametrize(("mode", "devices"), [("map", 2), ("vmap", 1)])
def test_a_population_does_not_hang(root, mode, devices):
    script = root / "experiments" / "guards" / "population_hang.py"
    numbers = {"mode": mode, "members": 2, "calls": 20, "devices": devices}
    command = [sys.executable, str(script), *(f"--{name}={value}" for name, value in numbers.items())]
    environment = os.environ | {
        "XLA_FLAGS": "--xla_cpu_enable_concurrency_optimized_scheduler=false",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(root),  # an editable installation needs no path, a bare checkout does
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
    }
    try:
        child = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        pytest.fail(f"population of 2, mode {mode}, {devices} devices: no end within {SECONDS} s\n{error.stderr or ''}")
    assert child.returncode == 0, child.stderr
    told = json.loads(child.stdout.splitlines()[-1])
    assert numbers.items() <= told.items()
    assert told["flag"] == "active"

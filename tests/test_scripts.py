"""The example scripts, each with a tiny budget and in a process of its own, since they set the number of devices."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import jax
import pytest

SECONDS = 240

# name -> arguments, what the last line says, what is left in the working directory
SCRIPTS = {
    "cartpole_ppo": (["5000", "run"], r"greedy return of 16 seeds: mean \d+\.\d, IQM \d+\.\d; see run/curve\.png", {"run"}),
    "foraging_mappo": (["5000", "run"], r"food eaten, mean of 4 seeds: \d+%; .* earned \d\.\d\d", {"run"}),
    "sweep_learning_rates": (["2000"], r"learning rate 3e-03: greedy return +\d+\.\d, seeds \[\d+(, \d+){3}\]", set()),
    "own_environment": (["20000"], r"arrived: (9\d|100)%", set()),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_and_tells_its_result(name, root, tmp_path):
    arguments, told, left = SCRIPTS[name]
    script = root / "experiments" / f"{name}.py"
    assert len(script.read_text().splitlines()) <= 60
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert re.fullmatch(told, done.stdout.splitlines()[-1]), done.stdout
    assert {path.name for path in tmp_path.iterdir()} == left
    for folder in left:
        files = {path.name for path in (tmp_path / folder).iterdir()}
        assert {"config.yaml", "provenance.json", "metrics.jsonl", "evaluations.jsonl", "curve.png", "summary.json"} <= files
        assert (tmp_path / folder / "checkpoints").is_dir()

"""The command line: in this process where nothing compiles, else as a user starts it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest
import typer
from typer.testing import CliRunner

import agentgym_jax
from agentgym_jax import _runtime
from agentgym_jax.cli import app
from agentgym_jax.cli.common import clear_errors
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.running.interrupt import Interrupted
from tests.io.resuming import SECONDS, assert_same_run

TINY = [
    "gymnax/cartpole_ppo", "env=probe/policy_observation", "network.hidden=[8]", "train.num_envs=4", "train.rollout_length=4",
    "algorithm.epochs=1", "algorithm.minibatches=1", "eval.points=2", "eval.episodes=4",
]  # fmt: skip
MODULE = """
import agentgym_jax
from agentgym_jax.algorithms.registry import get_algorithm
from envs_jax.probes import Policy

agentgym_jax.register_environment("mine/policy", Policy)
agentgym_jax.register_algorithm("mine", get_algorithm("ppo"))
"""


@pytest.fixture
def agentgym(monkeypatch, tmp_path):
    """Runs a command in this process, from an empty folder."""
    monkeypatch.setattr(_runtime, "cores", lambda: 2)
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def start(*words, cwd):
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-m", "agentgym_jax", *map(str, words)]
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_envs_lists_every_environment_without_jax():
    code = "import sys; from agentgym_jax.cli import app; app(['envs'], standalone_mode=False); print('jax' in sys.modules)"
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert time.perf_counter() - begun < 5  # a second on a machine with nothing else to do
    *ids, jax_imported = done.stdout.splitlines()
    assert {"gymnax/CartPole-v1", "jumanji/LevelBasedForaging-v0", "brax/ant"} <= set(ids)
    assert jax_imported == "False"


def test_help_on_everything(agentgym):
    assert "Commands" in agentgym("--help").stdout
    commands = "envs algorithms info train resume eval sweep tune probe compare export reproduce report"
    for command in commands.split():
        result = agentgym(command, "--help")
        assert result.exit_code == 0
        assert "Usage" in result.stdout


def test_algorithms_lists_names_and_the_settings_of_one(agentgym):
    assert agentgym("algorithms").stdout.split() == "ppo ippo mappo dqn iql vdn qmix pqn pqn_vdn".split()
    assert "algorithm.epsilon={'start': 1.0, 'end': 0.05, 'over': 0.5" in agentgym("algorithms", "dqn").stdout
    settings = agentgym("algorithms", "mappo").stdout
    assert "algorithm.critic=central" in settings
    assert "algorithm.gamma=0.99" in settings


def test_envs_tells_about_one_environment_as_it_would_be_built(agentgym):
    told = agentgym("envs", "multi/tag", "env.kwargs.num_prey=2").stdout.splitlines()
    assert told[0] == "# multi/tag" and "Rewards are individual" in " ".join(told)
    for line in ("agents: 5", "groups: predator (3), prey (2)", "action: Discrete(n=5)", "prey: flee, rest"):
        assert line in told
    assert "env.params.dt=0.1  # at least 1e-06" in told and "env.params.damping=0.25  # 0 to 1" in told
    assert "agents: one, without an agent axis" in agentgym("envs", "probe/policy").stdout
    assert {"env.kwargs.num_predators=3", "env.kwargs.time_limit=25"} <= set(told), "arguments"
    assert any("arXiv:1706.02275" in line for line in told) and any(line.startswith("discrete: 0 rest") for line in told)
    assert "did you mean multi/tag " in agentgym("envs", "multi/tagg").stderr


def test_info_prints_what_belongs_into_a_bug_report(agentgym):
    text = agentgym("info").stdout
    for word in ("jax:", "devices:", "xla_flags:", "cpu_scheduler_flag:", "compilation_cache:"):
        assert word in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gymnax/cartpol_ppo"], "did you mean gymnax/cartpole_ppo"),
        (["none.yaml"], "config file none.yaml does not exist"),
        (["gymnax/cartpole_ppo", "algorithm.learning_rte=1"], "did you mean learning_rate?"),
        (["gymnax/cartpole_ppo", "algorithm.gamma=high"], "algorithm.gamma: must be a finite number, got 'high'"),
        (["gymnax/cartpole_ppo", "algorithm.gamma"], "key=value"),
        (["gymnax/cartpole_ppo", "env.id=gymnax/CartPoel-v1"], "gymnax/CartPole-v1"),
        (["gymnax/cartpole_ppo", "algorithm.name=pppo"], "did you mean ppo"),
        (["gymnax/cartpole_ppo", "network.name=mine"], "network.name"),
        (["gymnax/cartpole_ppo", "algorithm.minibatches=3"], "3 does not divide .* 512"),
        (["gymnax/cartpole_ppo", "train.calls=3"], "3 does not divide .* 98"),
        (["gymnax/cartpole_ppo", "train.num_envs=0"], "train.num_envs: .* 0"),
        (["gymnax/cartpole_ppo", "env.params.gravty=1"], "did you mean gravity?"),
        (["gymnax/cartpole_ppo", "--seeds", "two"], "--seeds"),
        (["gymnax/cartpole_ppo", "--seeds", "3,3"], "seeds: must differ, 3"),
        (["gymnax/cartpole_ppo", "--import", "none.py"], "none.py does not exist"),
        (["gymnax/cartpole_ppo", "--out", "/proc/run"], "cannot be written"),
    ],
)
def test_bad_input_is_one_line_on_stderr(agentgym, words, message):
    result = agentgym("train", *words)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("agentgym: ")
    assert re.search(message, line)
    assert result.stdout == ""


def test_an_existing_run_directory_is_refused(agentgym, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("")
    result = agentgym("train", *TINY, "--seeds", 2, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "--overwrite" in result.stderr


def test_a_failing_import_shows_its_own_traceback(agentgym, tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    result = agentgym("train", *TINY, "--import", "broken.py")
    assert result.exit_code == 2
    assert "ZeroDivisionError" in result.stderr
    assert "broken.py failed" in result.stderr.splitlines()[-1]


def test_only_runs_are_evaluated_and_only_algorithms_probed(agentgym, tmp_path):
    assert "does not exist" in agentgym("eval", "none").stderr
    assert "not a run directory" in agentgym("eval", tmp_path).stderr
    (tmp_path / "empty.py").write_text("")
    assert "registers no algorithm" in agentgym("probe", "empty.py").stderr
    assert "did you mean ppo" in agentgym("probe", "ppoo").stderr


def test_probe_judges_what_a_file_registers(agentgym, tmp_path, monkeypatch):
    from agentgym_jax.algorithms import registry
    from agentgym_jax.io.running import probing

    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    monkeypatch.setattr(probing, "CHECKS", tuple(check for check in probing.CHECKS if check.probe == "constant"))
    (tmp_path / "algorithm.py").write_text(MODULE.replace('agentgym_jax.register_environment("mine/policy", Policy)', ""))
    result = agentgym("probe", "algorithm.py", "--steps", 256)  # too few to learn anything
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    assert line.split()[:3] == ["mine", "constant", "wrong"]
    assert "mean value" in line


def test_from_the_command_line_to_a_run_directory_and_back(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    words = [*TINY, "env=mine/policy", "algorithm.name=mine", "train.total_steps=64", "--seeds", "3,7", "--import", "mine.py"]
    done = start("train", *words, cwd=tmp_path)
    out, error = done.communicate(timeout=200)
    assert done.returncode == 0, error
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("mine_cartpole_ppo-")
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["seeds"] == [3, 7]
    assert summary["algorithm"] == "mine"
    assert "64/64 steps" in error
    assert "2 cpu devices" in error or os.cpu_count() == 1
    assert "IQM" in out
    done = start("eval", folder, "--import", "mine.py", cwd=tmp_path)
    out, error = done.communicate(timeout=200)
    assert done.returncode == 0, error
    assert "equal to the recorded evaluation at 64 steps, to the bit" in out


def test_a_signal_ends_with_its_exit_code_and_readable_records(tmp_path):
    done = start("train", *TINY, "train.total_steps=1e9", "eval.points=20000", "--out", "run", cwd=tmp_path)
    records = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline and not (records.exists() and records.stat().st_size):
        time.sleep(0.1)
    time.sleep(0.3)
    done.send_signal(signal.SIGINT)
    _, error = done.communicate(timeout=60)
    assert done.returncode == 130
    assert "SIGINT: the running call is finished and saved first; once more leaves at once" in error
    assert "stopped by SIGINT" in error.splitlines()[-1]
    assert "Traceback" not in error
    assert all(json.loads(line)["step"] for line in records.read_text().splitlines())


@pytest.mark.parametrize("stop, code", ((Interrupted(signal.SIGTERM), 143), (KeyboardInterrupt(), 130)))
def test_every_command_ends_with_the_code_of_the_signal_that_stopped_it(stop, code):
    with pytest.raises(typer.Exit) as end, clear_errors():
        raise stop
    assert end.value.exit_code == code


STOPS = """
import os, pathlib, signal
from agentgym_jax.io.running import progress

class Stops(progress.Lines):
    def advanced(self, steps, train_seconds):
        super().advanced(steps, train_seconds)
        if steps == 32 and not pathlib.Path("stopped").exists():
            pathlib.Path("stopped").touch()
            os.kill(os.getpid(), signal.SIGTERM)

progress.make_reporter = lambda quiet=False: Stops()
"""


def test_a_stopped_run_goes_on_in_a_new_process_and_is_the_run_without_a_stop(agentgym, tmp_path):
    """Three calls, SIGTERM, the command that it prints, three more: to the bit the run of six calls in one process."""
    (tmp_path / "stops.py").write_text(STOPS)
    words = [*TINY, "train.total_steps=96", "train.calls=3", "log.tensorboard=true", "--seeds", "3,7"]
    stopped = start("train", *words, "--out", "run", "--import", "stops.py", cwd=tmp_path)
    _, error = stopped.communicate(timeout=200)
    assert stopped.returncode == 143, error
    said, _, command = error.splitlines()[-1].partition("; go on with: agentgym ")
    assert "stopped by SIGTERM at 48 of 96 steps; a checkpoint at 48 steps" in said
    assert command == "resume run --import stops.py"
    resumed = start(*command.split(), cwd=tmp_path)
    out, error = resumed.communicate(timeout=200)
    assert resumed.returncode == 0, error
    assert "goes on at 48 of 96 steps; equal to the bit" in error
    assert "run directory: run" in out
    straight = agentgym_jax.train(load_experiment(tmp_path / "run" / "config.yaml"), out=tmp_path / "straight", quiet=True)
    assert_same_run(straight, agentgym_jax.load_run("run"), parts=("state",), apart=SECONDS)
    done = agentgym("resume", "run")
    assert (done.exit_code, done.stdout) == (0, "run is finished; nothing to resume\n")


def test_only_what_can_go_on_is_resumed(agentgym, tmp_path):
    assert "does not exist" in agentgym("resume", "none").stderr
    result = agentgym("resume", tmp_path)
    assert result.exit_code == 2
    assert "not a run directory" in result.stderr

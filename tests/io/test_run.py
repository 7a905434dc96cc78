"""The runner and what it leaves behind, on one tiny run."""

import dataclasses
import functools
import json
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import agentgym_jax
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.loggers import read_records
from agentgym_jax.io.running import runner
from agentgym_jax.io.running.assemble import assemble, make_train, with_agent_axis
from agentgym_jax.io.running.interrupt import Interrupted
from agentgym_jax.io.running.policy import Policy
from agentgym_jax.io.running.progress import Reporter
from agentgym_jax.io.running.reevaluate import differences, evaluate_again
from agentgym_jax.io.running.run import load_run
from agentgym_jax.types import Clock
from envs_jax import make
from tests.io.support import tiny


def test_the_run_directory_is_complete(finished):
    run, _ = finished
    names = "checkpoints config.yaml curve.png evaluations.jsonl metrics.jsonl provenance.json summary.json tensorboard"
    assert sorted(path.name for path in run.directory.iterdir()) == names.split()
    assert load_experiment(run.directory / "config.yaml") == run.experiment
    provenance = json.loads((run.directory / "provenance.json").read_text())
    assert provenance["seeds"] == [3, 7]
    assert provenance["versions"]["jax"] == jax.__version__
    assert {"backend", "devices", "xla_flags"} <= set(provenance["machine"])
    assert (run.directory / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_summary_has_the_names_that_scripts_depend_on(finished):
    run, _ = finished
    summary = json.loads((run.directory / "summary.json").read_text())
    assert set(summary) == {
        "env", "algorithm", "seeds", "total_steps", "evaluation", "compile_seconds", "train_seconds", "evaluation_seconds",
        "steps_per_second", "compiles", "diverged", "absolute", "sweep", "protocol", "learning",
    }  # fmt: skip
    assert summary["env"] == "probe/memory"
    assert summary["algorithm"] == "ppo"
    assert summary["total_steps"] == 80  # four iterations of 16 steps and one of warm-up
    assert summary["compiles"] == 1
    for policy in ("greedy", "sampled"):
        block = summary["evaluation"][policy]
        assert {"return", "agent_return", "length", "success"} <= set(block)
        assert set(block["return"]) == {"mean", "std", "iqm", "per_seed", "interval", "missing"}
        assert len(block["return"]["per_seed"]) == 4
    assert min(summary[f"{part}_seconds"] for part in ("compile", "train", "evaluation")) > 0
    assert summary["steps_per_second"] == pytest.approx(4 * 80 / summary["train_seconds"])
    assert len(summary["sweep"]) == 2
    assert summary["sweep"][0]["algorithm.learning_rate"] == 1e-3


def test_a_member_that_diverges_is_named_and_harms_no_other(finished):
    run, said = finished
    bad = [{"seed": seed, "algorithm.learning_rate": 1e30} for seed in (3, 7)]
    assert run.summary["diverged"] == bad
    assert said.count("diverged by") == 2
    assert np.all(np.isfinite(run.curves["value_loss"][:2]))


def test_one_record_a_member_and_call_with_environment_steps_as_x(finished):
    run, _ = finished
    records = read_records(run.directory / "metrics.jsonl")
    assert [record["step"] for record in records] == [32] * 4 + [48] * 4 + [64] * 4 + [80] * 4
    assert [record["member"] for record in records] == [0, 1, 2, 3] * 4
    assert [record["seed"] for record in records] == [3, 7] * 8
    assert records[0]["value_loss"] == run.curves["value_loss"][0, 0]
    assert run.curve_steps.tolist() == [32, 48, 64, 80]
    points = read_records(run.directory / "evaluations.jsonl")
    assert [record["step"] for record in points] == [48] * 4 + [80] * 4
    last = np.float32(points[4]["greedy"]["return"])
    assert np.array_equal(last, run.evaluation["greedy"]["return"][0, 1])


def test_progress_says_what_runs_and_how_far_it_is(finished):
    _, said = finished
    first, *_ = said.splitlines()
    assert "probe/memory, ppo: 4 members × 80 steps (64 rounded up to whole iterations and points, and 16 of warm-up)" in first
    assert "compiled in" in said
    assert "80/80 steps" in said
    assert "(IQM) at 80" in said


def test_an_evaluation_made_again_is_the_same_to_the_bit_and_changes_nothing(finished):
    run, _ = finished
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.directory.rglob("*") if path.is_file()}
    loaded = load_run(run.directory)
    results = evaluate_again(loaded)
    assert differences(results, loaded.last_evaluation) == []
    assert differences(results, run.last_evaluation) == []
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in run.directory.rglob("*") if path.is_file()}
    assert after == before
    other = {**results, "greedy": {**results["greedy"], "return": results["greedy"]["return"] + 1}}
    assert differences(other, run.last_evaluation) == ["greedy.return"]


def test_a_run_read_from_disk_is_the_run(finished):
    run, _ = finished
    loaded = load_run(run.directory)
    assert loaded.experiment == run.experiment
    assert loaded.total_steps == run.total_steps
    assert loaded.summary["total_steps"] == run.summary["total_steps"]
    data = lambda x: np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)  # noqa: E731
    assert jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(data(a), data(b), equal_nan=True), loaded.state, run.state))
    assert np.array_equal(loaded.curves["entropy"], run.curves["entropy"], equal_nan=True)
    loaded.plot()


def test_a_policy_acts_as_training_does(finished):
    """Twelve steps of three environments by `run.policy` and by the algorithm itself, across the ends of episodes."""
    run, _ = finished
    assembly = run.assembly
    trainer = with_agent_axis(run.env)
    params, begin = run.assembly.params, jax.jit(jax.vmap(trainer.reset, (0, None)))
    advance = jax.jit(jax.vmap(trainer.step, (0, 0, 0, None)))
    for greedy in (True, False):
        policy = run.policy(seed=7, greedy=greedy)
        act, act_alone = jax.jit(assembly.algorithm.act, static_argnums=8), jax.jit(policy.__call__)
        carry, expected_carry = policy.init((3,)), assembly.algorithm.carry((3,))
        key = jax.random.key(0)
        state, timestep = begin(jax.random.split(key, 3), params)
        reset = jnp.ones((3, 1), bool)
        for step in range(12):
            key_act, key_step = jax.random.split(jax.random.fold_in(key, step))
            clock = Clock(jnp.int32(1), jnp.int32(1))
            inputs = (policy.learner, policy.hyper, expected_carry, timestep, (), reset, key_act, clock, not greedy)
            expected_carry, expected, _ = act(*inputs)
            carry, action = act_alone(carry, timestep.observation[:, 0], key_act, reset=reset[:, 0])
            assert jnp.array_equal(action, expected[:, 0])
            keys = jax.random.split(key_step, 3)
            state, timestep = advance(keys, state, expected, params)
            reset = timestep.last[:, None]
            begun = begin(keys, params)
            pick = lambda new, old, last=timestep.last: jnp.where(last.reshape(3, *[1] * (old.ndim - 1)), new, old)  # noqa: E731
            state, timestep = jax.tree.map(pick, begun, (state, timestep))
        assert jax.tree.all(jax.tree.map(jnp.array_equal, carry, expected_carry))
    assert run.env.spec.num_agents is None


def test_a_policy_has_natural_shapes_and_the_environments_own_units():
    assembly = assemble(tiny("env=probe/continuous"))
    policy = Policy(assembly, jax.jit(assembly.algorithm.init)(jax.random.key(0), assembly.hyper), assembly.hyper)
    _, action = policy(policy.init(), jnp.float32([1.0]), jax.random.key(0))
    assert action.shape == (1,)
    _, actions = jax.jit(policy.__call__)(policy.init((2, 3)), jnp.ones((2, 3, 1)), jax.random.key(0))
    assert jnp.allclose(actions, jnp.broadcast_to(action, (2, 3, 1)))
    # An actor that always wants 1 and more gets the upper bound of the environment's own [−1, 3].
    learner = jax.tree.map(lambda x: jnp.full_like(x, 9.0), policy.learner)
    _, action = dataclasses.replace(policy, learner=learner)(policy.init(), jnp.float32([1.0]), jax.random.key(0))
    assert action == 3


def test_a_policy_refuses_what_its_environment_does_not_show():
    assembly = assemble(tiny("env=multi/switch"))
    policy = Policy(assembly, jax.jit(assembly.algorithm.init)(jax.random.key(0), assembly.hyper), assembly.hyper)
    act = functools.partial(jax.eval_shape, policy.__call__, policy.init((2,)))
    seen, key, mask = jnp.ones((2, 3, 2)), jax.random.key(0), jnp.ones((2, 3, 4), bool)
    assert act(seen, key, mask)[1].shape == (2, 3)
    for wrong in (jnp.ones((2, 3, 4)), jnp.ones((3, 2, 2)), jnp.ones(2), jnp.float32(1), (seen, seen)):
        with pytest.raises(ValueError, match=r"observation is .*, the environment shows \[3, 2\]"):
            act(wrong, key)
    with pytest.raises(ValueError, match=r"action_mask is \[3, 4\], to this observation belongs \[2, 3, 4\]"):
        act(seen, key, mask[0])


def test_only_members_that_ran_have_a_policy(finished):
    run, _ = finished
    assert run.policy(seed=7, point=1).hyper.learning_rate == np.float32(1e30)
    with pytest.raises(ValueError, match="seed: 5 did not run; the run has 3, 7"):
        run.policy(seed=5)
    with pytest.raises(ValueError, match="point: 2"):
        run.policy(point=2)


def test_the_runner_is_make_train_driven_from_the_host():
    """Two iterations: integers exactly, floats to 1e-5."""
    experiment = tiny("train.total_steps=32", "seeds=[3, 7]")
    run = agentgym_jax.train(experiment, quiet=True)
    keys = jnp.stack([jax.random.key(seed) for seed in experiment.seeds])
    result = jax.jit(jax.vmap(make_train(experiment), in_axes=(None, 0)))(experiment.hyper, keys)
    own = (run.state.learner, run.curves, run.evaluation, run.absolute)
    theirs = (result.learner, result.curves, result.evaluation, result.absolute)
    assert jax.tree.all(jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), own, theirs))


def test_evaluation_and_logging_change_nothing_in_training(tmp_path):
    runs = [
        agentgym_jax.train(tiny(), quiet=True),
        agentgym_jax.train(tiny("eval.points=1", "train.calls=4"), quiet=True),
        agentgym_jax.train(tiny("log.checkpoint=1"), out=tmp_path / "run", quiet=True),
    ]
    learners = [jax.tree.leaves(run.state.learner) for run in runs]
    for other in learners[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(learners[0], other, strict=True))


class StopsAt(Reporter):
    """Sends the process a signal once so many steps are done."""

    def __init__(self, steps, signum):
        super().__init__()
        self.at, self.signum, self.notes = steps, signum, []

    def advanced(self, steps, train_seconds):
        if steps == self.at:
            signal.raise_signal(self.signum)

    def note(self, text):
        self.notes.append(text)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_leaves_readable_records_and_says_what_is_there(tmp_path, signum, code):
    reporter = StopsAt(16, signum)
    session = runner.prepare(tiny(), out=tmp_path / "run", reporter=reporter)
    with pytest.raises(Interrupted) as caught:
        session.train()
    assert caught.value.exit_code == code
    assert f"stopped by {signal.Signals(signum).name} at 32 of 64 steps; a checkpoint at 32 steps" in reporter.notes[-1]
    assert "metrics.jsonl" in reporter.notes[-1]
    assert [record["step"] for record in read_records(tmp_path / "run" / "metrics.jsonl")] == [16, 16, 32, 32]
    loaded = load_run(tmp_path / "run")
    assert loaded.total_steps == 32
    assert differences(evaluate_again(loaded), loaded.last_evaluation) == []
    assert loaded.plot().axes


def test_a_checkpoint_only_at_the_end_on_request(tmp_path):
    class Fails(Reporter):
        def advanced(self, steps, train_seconds):
            if steps == 48:
                raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        runner.prepare(tiny("log.checkpoint=end"), out=tmp_path / "run", reporter=Fails()).train()
    with pytest.raises(ValueError, match="no complete checkpoint"):
        load_run(tmp_path / "run")


def test_a_run_of_an_environment_object_is_read_with_its_experiment(tmp_path):
    experiment = dataclasses.replace(tiny(), env=make("probe/policy_observation"))
    agentgym_jax.train(experiment, out=tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match="object of Python"):
        load_run(tmp_path / "run")
    assert load_run(tmp_path / "run", experiment).summary["env"] == "PolicyObservation"


def test_nothing_is_refused_after_the_folder_is_made(tmp_path):
    with pytest.raises(ValueError, match="does not divide"):
        runner.prepare(tiny("algorithm.minibatches=3"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_vmap_without_its_flag_is_warned_of(monkeypatch):
    monkeypatch.setattr(agentgym_jax._runtime, "_status", "set by you to another value")
    with pytest.warns(UserWarning, match="can hang"):
        runner.prepare(tiny("train.population=vmap", "seeds=4"), reporter=Reporter())

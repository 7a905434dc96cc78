"""What a machine with an accelerator can do, in at most six minutes: speed, learning, exact repetition, precision, tests.

    python experiments/benchmark/accelerator.py [--only PART ...] [--out FOLDER]     six minutes on a machine with a GPU
    python experiments/benchmark/accelerator.py --small                              the same in little, two minutes on CPU

Every part is a process of its own with a time-out, so one that breaks or hangs costs no other; what a part tells before
its end is kept. Prints a table and writes experiments/results/benchmark/accelerator.json, or to the folder; with `--small` it
writes to the folder alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import peers

if TYPE_CHECKING:
    from agentgym_jax.io.running.run import Run

SECONDS = {False: 360.0, True: 300.0}  # of everything, by `small`
NO_EVALUATION = ["eval.points=1", "eval.episodes=1", "eval.cap=1"]
TEST_MODULE = "tests/training/test_loop.py"
Told = Iterator[dict[str, Any]]


def images(channels: str, hidden: int) -> list[str]:
    """A torso with these convolutions and a dense layer."""
    return ["network.torso=cnn", f"network.channels=[{channels}]", f"network.hidden=[{hidden}]"]


def published(small: bool) -> list[str]:
    """The torso of MinAtar (Young & Tian 2019)."""
    return images("4", 16) if small else images("16", 128)


def trained(config: str, seeds: int, overrides: list[str], **train: int) -> Run:
    """A run without a directory; `train` are the sizes of training."""
    import agentgym_jax

    sizes = [f"train.{name}={value}" for name, value in train.items()]
    experiment = agentgym_jax.load_experiment(config, overrides=[*overrides, *sizes])
    return agentgym_jax.train(experiment, seeds=seeds, quiet=True)


def speeds(run: Run) -> dict[str, Any]:
    """Sizes, speed and seconds of a run."""
    summary, plan = run.summary, run.assembly.plan
    return {
        "members": len(run.experiment.members),
        "num_envs": plan.num_envs,
        "rollout_length": plan.rollout_length,
        "total_steps": summary["total_steps"],
        "steps_per_second": round(summary["steps_per_second"]),
        **{f"{name}_seconds": round(summary[f"{name}_seconds"], 2) for name in ("compile", "train", "evaluation")},
    }


def returns(run: Run) -> dict[str, Any]:
    """Mean and worst greedy return of the members at the end, and how often `advance` was traced."""
    each = run.summary["evaluation"]["greedy"]["return"]["per_seed"]
    mean, worst = (round(float(value), 2) for value in (np.mean(each), np.min(each)))
    return {"mean_return": mean, "worst_return": worst, "compiles": run.compiles}


# ---- the parts


def cartpole(small: bool) -> Told:
    """CartPole, 16 seeds in one compile."""
    sizes = {"total_steps": 4096 if small else 500_000}
    run = trained("gymnax/cartpole_ppo", 16, _evaluation(small), **sizes)
    yield speeds(run) | returns(run)


def breakout(small: bool) -> Told:
    """MinAtar Breakout, convolutions, 4096 environments."""
    sizes = {"num_envs": 64 if small else 4096, "rollout_length": 16 if small else 32}
    sizes["total_steps"] = 2048 if small else 10_000_000
    overrides = [*published(small), "algorithm.learning_rate.start=1e-3", *_evaluation(small)]
    run = trained("gymnax/breakout_ppo", 1, overrides, **sizes)
    yield speeds(run) | returns(run)


def ant(small: bool) -> Told:
    """brax ant (spring), 1e7 steps of one member: 2048 environments, since 64 would leave an accelerator idle."""
    import jax
    import jax.numpy as jnp

    import agentgym_jax
    from agentgym_jax.types import Clock

    parts = 2 if small else 20  # the run in so many calls, each told of at once
    num_envs, length, steps = (16, 16, 512) if small else (2048, 32, 10_000_000)
    sizes = [f"train.num_envs={num_envs}", f"train.rollout_length={length}", f"train.total_steps={steps}"]
    sizes += [f"eval.points={parts}", "train.calls=1", *(["algorithm.minibatches=2", "algorithm.epochs=1"] if small else [])]
    assembly = agentgym_jax.assemble(agentgym_jax.load_experiment("brax/ant_ppo_full", overrides=sizes))
    begun = time.perf_counter()
    state = jax.block_until_ready(jax.jit(assembly.loop.init)(jax.random.key(0), assembly.hyper))
    clock = Clock(jnp.int32(0), jnp.int32(assembly.plan.iterations))
    program = jax.jit(assembly.loop.advance, donate_argnums=0).lower(state, assembly.hyper, clock).compile()
    yield {"num_envs": num_envs, "rollout_length": length, "compile_seconds": round(time.perf_counter() - begun, 2)}
    each, curve, begun = assembly.plan.iterations_per_call, [], time.perf_counter()
    for part in range(parts):
        state, curves = program(state, assembly.hyper, Clock(jnp.int32(part * each), clock.total))
        curve.append(np.asarray(curves["episode_return"]))
        seconds, done = time.perf_counter() - begun, assembly.steps((part + 1) * each) - assembly.steps(0)
        yield {"steps": done, "train_seconds": round(seconds, 2), "steps_per_second": round(done / seconds)}
    fifths = np.array_split(np.concatenate(curve), 5)
    yield {"first_fifth_return": _mean(fifths[0]), "last_fifth_return": _mean(fifths[-1])}


def twice(small: bool) -> Told:
    """The same run twice, compiled twice: MinAtar Breakout with convolutions, several seeds."""
    sizes = {"num_envs": 16, "rollout_length": 16, "total_steps": 1024 if small else 200_000}
    runs = [trained("gymnax/breakout_ppo", 2 if small else 4, [*published(small), *NO_EVALUATION], **sizes) for _ in range(2)]
    states = [_bits(run.state) for run in runs]
    iterations = range(len(runs[0].curve_steps))
    differ = [i for i in iterations if len({tuple(_bits({k: x[:, i] for k, x in run.curves.items()})) for run in runs}) > 1]
    yield {
        "equal_to_the_bit": states[0] == states[1] and not differ,
        "iterations": len(iterations),
        "first_iteration_that_differs": differ[0] if differ else None,
        "leaves_that_differ": sum(x != y for x, y in zip(*states, strict=True)),
        "leaves": len(states[0]),
    }


def precision(small: bool) -> Told:
    """bfloat16 beside float32 torsos: MinAtar Breakout, the published convolutions and wide ones."""
    sizes = {"num_envs": 32 if small else 1024, "rollout_length": 16 if small else 32, "calls": 2 if small else 15}
    sizes["total_steps"] = 4 * sizes["num_envs"] * sizes["rollout_length"] * (1 if small else 15)
    wide = () if small else (("wide", images("64,64", 1024)),)
    for name, network in (("published", published(small)), *wide):
        curves = []
        for dtype in ("float32", "bfloat16"):
            run = trained("gymnax/breakout_ppo", 1, [*network, f"network.compute_dtype={dtype}", *NO_EVALUATION], **sizes)
            curves.append(run.curves)
            told = speeds(run)
            yield {f"{name}, {dtype}": {key: told[key] for key in ("steps_per_second", "compile_seconds")}}
        yield {f"{name}, float32 beside bfloat16": _beside(*curves)}


def tests(small: bool) -> Told:
    """One module of tests on this device: exact repetition, streams of randomness, no second trace."""
    import pytest

    counts = _Counts()
    chosen = ["-k", "two_runs"] if small else []
    module = str(peers.ROOT / TEST_MODULE)
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(peers.ROOT), *chosen, module], plugins=[counts])
    yield {"module": TEST_MODULE, "exit_code": int(code), **counts.told}


def shards(small: bool) -> Told:
    """The environments of one member on all devices, beside one device; all devices must hold the same learner."""
    import jax

    import agentgym_jax
    from agentgym_jax.training.parallel import Population

    if small:
        agentgym_jax.use_cores(2)
    devices = jax.local_device_count()
    if devices == 1:
        yield {"left_out": "there is one device"}
        return
    config, network = ("gymnax/cartpole_ppo", []) if small else ("gymnax/breakout_ppo", published(small))
    num_envs, length, calls = (16 * devices, 16, 4) if small else (1024 * devices, 32, 40)
    sizes = [f"train.num_envs={num_envs}", f"train.rollout_length={length}", f"train.total_steps={num_envs * length}"]
    for count in (1, devices):
        overrides = [*network, *NO_EVALUATION, *sizes, f"train.shards={count}"]
        assembly = agentgym_jax.assemble(agentgym_jax.load_experiment(config, overrides=[*overrides, "seeds=1"]))
        population = Population(assembly.loop, 1)
        keys, hyper = (population.place(x) for x in assembly.member_inputs())
        compile_seconds, states = population.compile(keys, hyper), population.init(keys, hyper)
        states, _ = jax.block_until_ready(population.advance(states, hyper, population.clock(0, calls)))
        begun = time.perf_counter()
        for call in range(1, calls):
            states, _ = population.advance(states, hyper, population.clock(call, calls))
        learners = jax.block_until_ready(states.learner)
        speed = (calls - 1) * num_envs * length / (time.perf_counter() - begun)
        each = [_bits(jax.tree.map(lambda x, place=place: x[place], learners)) for place in range(count)]
        told = {"num_envs": num_envs, "steps_per_second": round(speed), "compile_seconds": round(compile_seconds, 2)}
        told |= {"learners_equal_to_the_bit": all(x == each[0] for x in each)} if count > 1 else {}
        yield {f"devices: {count}": told}


class Part(NamedTuple):
    """A part, and the most seconds it may take in full and in small."""

    run: Callable[[bool], Told]
    full: float
    small: float


PARTS = {
    "cartpole": Part(cartpole, 75, 120),
    "breakout": Part(breakout, 75, 120),
    "twice": Part(twice, 60, 120),
    "precision": Part(precision, 75, 120),
    "ant": Part(ant, 150, 120),
    "tests": Part(tests, 75, 120),
    "shards": Part(shards, 60, 120),
}


# ---- what they share


def _evaluation(small: bool) -> list[str]:
    return NO_EVALUATION if small else ["eval.points=5", "eval.episodes=32"]


def _mean(values: np.ndarray) -> float | None:
    """Over the iterations in which an episode ended; None where there are none."""
    known = values[np.isfinite(values)]
    return round(float(known.mean()), 3) if known.size else None


def _bits(tree: Any) -> list[bytes]:
    """The bytes of each leaf; of a typed key those of its data."""
    import jax

    leaves = jax.tree.leaves(tree)
    data = [jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in leaves]
    return [np.asarray(x).tobytes() for x in data]


def _beside(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, Any]:
    """{loss: [[one, other] in iteration 0, in iteration 1]} of the first member."""
    names = ("policy_loss", "value_loss", "entropy")
    return {name: [[float(x[name][0, i]) for x in (one, other)] for i in range(2)] for name in names}


class _Counts:
    """A plugin of pytest that counts outcomes and names what failed."""

    def __init__(self):
        self.told: dict[str, Any] = {"tests_passed": 0, "tests_failed": []}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A failure of set-up or tear-down counts as one of the test."""
        if report.failed:
            self.told["tests_failed"].append(report.nodeid.partition("::")[2])
        elif report.when == "call" and report.passed:
            self.told["tests_passed"] += 1


# ---- the whole


def child(part: str, small: bool) -> None:
    """Prints what it runs on and what the part tells, a line each."""
    for number, told in enumerate(PARTS[part].run(small)):
        if number == 0:  # not earlier: a part may choose its devices
            peers.emit({"about": peers.about()})
        peers.emit(told)


def collected(part: str, small: bool, seconds: float) -> tuple[dict[str, Any], Any]:
    """All that a part told, in `seconds` at most, and what it ran on if it said so."""
    result, about, begun = {}, None, time.perf_counter()
    arguments = ["--child", "--only", part, *(["--small"] if small else [])]
    for line in peers.stream(Path(__file__).resolve(), arguments, seconds):
        about = line.pop("about", about)
        result |= line
    return result | {"seconds": round(time.perf_counter() - begun, 1)}, about


def table(record: dict[str, Any]) -> str:
    """A row for each number that a part told."""
    lines = ["| part | what | result |", "|---|---|---|"]
    for part, result in record["parts"].items():
        lines += [f"| {part} | {what.replace('_', ' ')} | {shown} |" for what, shown in _flat(result)]
    return "\n".join(lines)


def _flat(result: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for what, value in result.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{what}: ")
        else:
            yield before + what, _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) if not value or not isinstance(value[0], list) else "; ".join(map(_shown, value))
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def main() -> int:
    """The parts one after another; 1 when one failed."""
    parser = argparse.ArgumentParser(description="What an accelerator can do, in at most six minutes.")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs, on CPU too")
    parser.add_argument("--out", type=Path, help="a folder for accelerator.json")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.only[0], given.small)
        return 0
    record: dict[str, Any] = {"command": "python experiments/benchmark/accelerator.py" + " --small" * given.small}
    record |= {"day": time.strftime("%Y-%m-%d"), "about": None, "parts": {}}
    end = time.perf_counter() + SECONDS[given.small]
    for name in given.only:
        seconds = min(PARTS[name].small if given.small else PARTS[name].full, end - time.perf_counter())
        result, about = collected(name, given.small, seconds) if seconds > 5 else ({"left_out": "the time was over"}, None)
        record["parts"][name], record["about"] = result, record["about"] or about
        print(f"{name}: {json.dumps(result)}", file=sys.stderr, flush=True)
    folder = given.out or (None if given.small else peers.RESULTS)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "accelerator.json").write_text(json.dumps(record, indent=2) + "\n")
    print(f"{peers.in_words(record['about']) if record['about'] else 'device unknown'}, {record['day']}\n\n{table(record)}")
    bad = [name for name, result in record["parts"].items() if "failed" in result]
    return 1 if bad or record["parts"].get("tests", {}).get("exit_code", 0) else 0


if __name__ == "__main__":
    sys.exit(main())

"""How steps per second grow with the number of environments: a random policy, and PPO.

    python experiments/benchmark/scaling.py [--envs ID ...] [--sizes N ...] [--seconds S] [--out FOLDER]

N = 1 to 4 096 environments of one member on CPU, to 65 536 on an accelerator. Random play is the rollout of training with its
resets, in one compiled scan; PPO is whole iterations, rollout and updates, without evaluation. Compilation is apart. The
best of three rounds counts. Ten minutes on two cores. A size whose rounds would take longer than 45 seconds, going by the
size before, or more memory than is free, is left out with the reason.

Writes experiments/results/benchmark/scaling.json, the table in docs/scaling.md and docs/scaling.png (on an accelerator
scaling_gpu.json and so on); a part of the benchmark goes to a folder, with `--out`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import peers

if TYPE_CHECKING:
    from agentgym_jax.io.running.assemble import Assembly

SIZES, LARGER = (1, 4, 16, 64, 256, 1024, 4096), (16_384, 65_536)  # the larger ones where there is an accelerator
ROUNDS = 3
LEAST_ROWS = 128  # of a minibatch
POINT_SECONDS = 45.0  # of the rounds of one size
CASE_SECONDS = 300.0  # of an environment: no further size is begun after them
HANG_SECONDS = 120.0  # more, and its process is ended
KINDS = {"random": "random policy", "ppo": "PPO"}


@dataclasses.dataclass(frozen=True)
class Case:
    """What is measured of one environment; all that is not named here is as in the configuration."""

    name: str  # for the table and the plot
    config: str
    length: int  # T, steps of each environment in a rollout; longer where N · T would be less than a minibatch
    minibatches: int  # at most, as many as have `LEAST_ROWS` rows each
    call: int  # environment steps of one call at least, so that calling costs nothing beside them
    overrides: tuple[str, ...] = ()


IMAGES = ("network.torso=cnn", "network.channels=[16]", "network.hidden=[128]")  # as in Young & Tian 2019
CASES = {
    "gymnax/CartPole-v1": Case("CartPole", "gymnax/cartpole_ppo", 128, 4, 8192),
    "gymnax/Breakout-MinAtar": Case("MinAtar Breakout", "gymnax/breakout_ppo", 16, 8, 2048, IMAGES),
    "brax/ant": Case("brax ant (spring)", "brax/ant_ppo", 16, 16, 512),
}


# ---- one environment, in a process of its own


def child(id: str, sizes: list[int], seconds: float) -> None:
    """Prints what it runs on, then a line for each size and kind of play."""
    import jax

    import agentgym_jax  # noqa: F401  sets XLA's flag, before the first array

    begun, case, speeds = time.perf_counter(), CASES[id], {}
    peers.emit({"about": peers.about()})
    for num_envs in sizes or (SIZES if jax.default_backend() == "cpu" else SIZES + LARGER):
        for kind, row in points(case, num_envs, seconds, speeds, begun + CASE_SECONDS):
            speeds[kind] = row.get("steps_per_second", speeds.get(kind))
            peers.emit({"environment": id, "what": kind, "num_envs": num_envs, **row})


def points(
    case: Case, num_envs: int, seconds: float, speeds: dict[str, float], end: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Random play and PPO with N environments; `speeds` are those of the size before."""
    import jax

    assembly = assembled(case, num_envs)
    plan, steps = assembly.plan, assembly.steps(assembly.plan.iterations) - assembly.steps(0)
    sizes = {"rollout_length": plan.rollout_length, "steps_of_a_call": steps, "reset": plan.reset}
    state = None
    for kind, make in (("random", random_play), ("ppo", training)):
        row = sizes | ({"minibatches": assembly.experiment.algorithm.minibatches} if kind == "ppo" else {})
        expected = (1 + ROUNDS) * steps / speeds[kind] if speeds.get(kind) else 0.0
        if time.perf_counter() > end:
            yield kind, row | {"left_out": f"the {CASE_SECONDS:.0f} s of this environment were over"}
        elif expected > POINT_SECONDS:
            yield kind, row | {"left_out": f"its rounds would take about {expected:.0f} s"}
        else:
            if state is None:
                state = jax.jit(assembly.loop.init)(jax.random.key(0), assembly.hyper)
            yield kind, row | measured(*make(assembly, state), assembly.hyper, steps, seconds)


def assembled(case: Case, num_envs: int) -> Assembly:
    """One member whose `advance` is a single call of at least `case.call` environment steps."""
    import agentgym_jax

    length = max(case.length, -(-LEAST_ROWS // num_envs))
    rows = num_envs * length
    minibatches = min(case.minibatches, rows // LEAST_ROWS)
    sizes = {"num_envs": num_envs, "rollout_length": length, "total_steps": max(rows, case.call), "calls": 1}
    overrides = [f"train.{name}={value}" for name, value in sizes.items()]
    overrides += [f"algorithm.minibatches={minibatches}", "eval.points=1", *case.overrides]
    return agentgym_jax.assemble(agentgym_jax.load_experiment(case.config, overrides=overrides))


def random_play(assembly: Assembly, state: Any) -> tuple[Callable[..., tuple[Any, Any]], Any]:
    """`(actor, hyper, number) -> actor, episodes`: the rollouts of one call, and the actor at the beginning.

    The state of the environments with all that is observed, and the returns of episodes, leave the program, so that nothing
    of a step can be optimised away.
    """
    import jax
    import jax.numpy as jnp

    from agentgym_jax.rollout.unroll import unroll
    from agentgym_jax.training.baseline import random_algorithm
    from agentgym_jax.types import Clock

    algorithm = random_algorithm(assembly.spec)
    acting, clock = assembly.loop.acting._replace(algorithm=algorithm), Clock(jnp.int32(0), jnp.int32(1))

    def play(actor, hyper, number):
        def rollout(actor, key):
            actor, _, totals = unroll(acting, (), (), actor, state.tasks, key, clock, uniform=False)
            return actor, totals

        keys = jax.random.split(jax.random.fold_in(jax.random.key(1), number), assembly.plan.iterations)
        return jax.lax.scan(rollout, actor, keys)

    return play, state.actor.replace(carry=algorithm.carry((assembly.plan.num_envs,)))


def training(assembly: Assembly, state: Any) -> tuple[Callable[..., tuple[Any, Any]], Any]:
    """`(state, hyper, number) -> state, curves`: the iterations of one call, and the state at the beginning."""
    import jax.numpy as jnp

    from agentgym_jax.types import Clock

    def train(state, hyper, number):
        return assembly.loop.advance(state, hyper, Clock(number * assembly.plan.iterations, jnp.int32(1_000_000)))

    return train, state


def measured(function: Callable[..., Any], state: Any, hyper: Any, steps: int, seconds: float) -> dict[str, Any]:
    """Compiles, checks the memory, and times rounds of as many calls as fit `seconds`, at least one."""
    import jax
    import numpy as np

    from agentgym_jax.io.running.devices import free_bytes
    from agentgym_jax.training.footprint import in_words

    begun = time.perf_counter()
    program = jax.jit(function).lower(state, hyper, np.int32(0)).compile()
    row: dict[str, Any] = {"compile_seconds": round(time.perf_counter() - begun, 2)}
    sizes, free = program.memory_analysis(), free_bytes(jax.devices()[0])
    needed = 0 if sizes is None else sizes.temp_size_in_bytes + sizes.output_size_in_bytes
    if free is not None and needed > 0.7 * free:
        return row | {"left_out": f"it needs {in_words(needed)}, and {in_words(free)} are free"}
    state, _ = jax.block_until_ready(program(state, hyper, np.int32(0)))
    number, rounds = 1, []
    for _ in range(ROUNDS):
        calls, begun = 0, time.perf_counter()
        while calls == 0 or time.perf_counter() - begun < seconds:
            state, _ = jax.block_until_ready(program(state, hyper, np.int32(number)))
            calls, number = calls + 1, number + 1
        rounds.append(round(calls * steps / (time.perf_counter() - begun), 1))
    return row | {"steps_per_second": max(rounds), "rounds": rounds, "megabytes": round(needed / 1e6)}


# ---- table and plot


def series(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[int, dict[str, Any]]]:
    """{(environment, kind): {N: row}} in the order of `CASES`."""
    found = {(id, kind): {} for id in CASES for kind in KINDS}
    for row in rows:
        found[row["environment"], row["what"]][row["num_envs"]] = row
    return {key: by_size for key, by_size in found.items() if by_size}


def table(record: dict[str, Any]) -> str:
    """Markdown: a row for each N, a column for each environment and kind, and what was left out."""
    columns = series(record["rows"])
    sizes = sorted({row["num_envs"] for row in record["rows"]})
    heads = [f"{CASES[id].name}, {KINDS[kind]}" for id, kind in columns]
    lines = ["| N | " + " | ".join(heads) + " |", "|--:" * (1 + len(heads)) + "|"]
    for size in sizes:
        speeds = [by_size.get(size, {}).get("steps_per_second") for by_size in columns.values()]
        lines.append(f"| {size:,} | " + " | ".join("–" if x is None else f"{x:,.0f}" for x in speeds) + " |")
    known = record["about"]
    lines += ["", f"Environment steps per second; {peers.in_words(known)}, jax {known['versions']['jax']}, {record['day']}."]
    left_out = []
    for (id, kind), by_size in columns.items():
        for size, row in by_size.items():
            if "left_out" in row:
                left_out.append(f"- Left out: {CASES[id].name}, {KINDS[kind]}, N = {size:,}: {row['left_out']}.")
    left_out += [f"- Failed: {CASES[id].name}: {why}." for id, why in record["failed"].items()]
    return "\n".join([*lines, *([""] if left_out else []), *left_out])


def plot(record: dict[str, Any], path: Path) -> None:
    """Steps per second against N, both logarithmic: a colour for each environment, full for random play, dashed for PPO."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 5.2), layout="constrained")
    axes, colours = figure.subplots(), dict(zip(CASES, ("#0072b2", "#d55e00", "#009e73"), strict=True))
    for (id, kind), by_size in series(record["rows"]).items():
        known = {size: row["steps_per_second"] for size, row in by_size.items() if "steps_per_second" in row}
        learns = kind == "ppo"
        style: dict[str, Any] = {"linestyle": "--" if learns else "-", "marker": "s" if learns else "o"}
        style["markerfacecolor"] = "white" if learns else colours[id]
        label = f"{CASES[id].name}, {KINDS[kind]}"
        axes.plot(list(known), list(known.values()), color=colours[id], markersize=5.5, label=label, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({row["num_envs"] for row in record["rows"]})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.minorticks_off()
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
    axes.set_xlabel("environments side by side, N")
    axes.set_ylabel("environment steps per second")
    axes.set_title(peers.in_words(record["about"]))
    axes.grid(alpha=0.35)
    axes.grid(alpha=0.15, which="minor", axis="y")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, handlelength=2.8, fontsize="small")
    figure.savefig(path, dpi=120)


def put_into_page(page: Path, name: str, lines: str) -> None:
    """Replaces what stands between the two markers of `name`; at the end of the page where it has none."""
    begin, end = f"<!-- {name}: made by experiments/benchmark/scaling.py -->", f"<!-- end of {name} -->"
    text = page.read_text() if page.exists() else ""
    before, found, rest = text.partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    page.write_text(f"{before if found else before.rstrip() + chr(10) * 2}{begin}\n\n{lines}\n\n{end}{after}")


# ---- the whole


def main() -> None:
    """All environments, each in a process of its own."""
    parser = argparse.ArgumentParser(description="Steps per second of a random policy and of PPO for many sizes.")
    parser.add_argument("--envs", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--sizes", nargs="+", type=int, default=[])
    parser.add_argument("--seconds", type=float, default=0.7, help="of one round")
    parser.add_argument("--out", type=Path, help="a folder for json, table and plot instead of the repository's places")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return child(given.envs[0], given.sizes, given.seconds)
    if (len(given.envs) < len(CASES) or given.sizes) and given.out is None:
        parser.error("a part of the benchmark is no result to publish: name a folder for it with --out")
    record: dict[str, Any] = {"command": "python experiments/benchmark/scaling.py", "day": time.strftime("%Y-%m-%d")}
    record |= {"about": None, "settings": {id: dataclasses.asdict(CASES[id]) for id in given.envs}, "rows": [], "failed": {}}
    for id in given.envs:
        arguments = ["--child", "--envs", id, "--seconds", str(given.seconds)]
        arguments += ["--sizes", *map(str, given.sizes)] if given.sizes else []
        for line in peers.stream(Path(__file__).resolve(), arguments, CASE_SECONDS + HANG_SECONDS):
            print(json.dumps(line), file=sys.stderr, flush=True)
            if "about" in line:
                record["about"] = line["about"]
            elif "failed" in line:
                record["failed"][id] = line["failed"]
            else:
                record["rows"].append(line)
    if not record["rows"]:
        sys.exit(f"scaling: nothing was measured: {record['failed']}")
    return write(record, given.out)


def write(record: dict[str, Any], out: Path | None) -> None:
    """The results as JSON, as a table and as a plot."""
    name = "scaling" if record["about"]["backend"] == "cpu" else f"scaling_{record['about']['backend']}"
    results, docs = (peers.RESULTS, peers.ROOT / "docs") if out is None else (out, out)
    for folder in (results, docs):
        folder.mkdir(parents=True, exist_ok=True)
    (results / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    plot(record, docs / f"{name}.png")
    picture = f"![Steps per second against the number of environments]({name}.png)"
    put_into_page(docs / "scaling.md", name, f"{table(record)}\n\n{picture}")
    print(table(record))


if __name__ == "__main__":
    main()

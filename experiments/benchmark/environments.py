"""How fast multi-agent environments step with random actions, at N = 1, 128 and 1,024.

They run beside jaxmarl's own loop where it has the same environment.

    .venv/bin/python experiments/benchmark/environments.py [rounds] [part of an id]

Both sides play in one process, in turn, in one compiled scan each, and start ended episodes anew: ours as training does it,
jaxmarl by its `step`. Of both are kept the agents' observations, the rewards, the ends, and jaxmarl's `info` beside our
statistics of episodes, so that nothing can be optimised away. Actions are drawn in the same way, those of all environments at
once (jaxmarl's Boxes agent by agent); ours among the legal ones, jaxmarl's of the whole
space. Best of all rounds. Needs the extra `jaxmarl`; writes
experiments/results/benchmark/environments.json and the table of docs/environments.md after every environment. With a part of
an id only its rows change; each row names its revision, rounds and device. All takes 40 minutes on two cores.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import peers
from resets import kept_random, steps_per_second

import envs_jax
from agentgym_jax.io.running.assemble import with_agent_axis
from agentgym_jax.rollout.unroll import make_acting, start, unroll
from agentgym_jax.tasks.base import fixed
from agentgym_jax.types import Clock, Sizes
from envs_jax.spaces import Box

NUM_ENVS = (1, 128, 1024)
STEPS = {1: 2048, 128: 64, 1024: 16}  # of one call
PAGE = peers.ROOT / "docs" / "environments.md"
SAME = {
    "multi/spread": "MPE_simple_spread_v3",
    "multi/speaker_listener": "MPE_simple_speaker_listener_v4",
    "multi/reference": "MPE_simple_reference_v3",
    "multi/tag": "MPE_simple_tag_v3",
    "multi/switch": "switch_riddle",
}
INTRODUCTION = """# Speed of the multi-agent environments

Environment steps per second on {device}, random actions, one compiled loop that starts ended episodes anew; best of {rounds}
rounds (the record says which), in turn with a loop over jaxmarl {jaxmarl}'s `step` where it has the same environment.
`python experiments/benchmark/environments.py` writes this page.

What the two sides share: the way of drawing random actions, and what is kept of a step (the agents' observations, rewards,
ends; jaxmarl's `info`, our metrics). What differs belongs to them: jaxmarl's `step` makes a new start at every step, a limit
of 25 lasts 26, and its loop, that of its baselines, hands one key on and splits it twice a step; ours splits keys before the
loop, takes starts as training does (`docs/resets.md`), plays legal actions only, adds masks and statistics of episodes, and
sees Overcooked in bytes where jaxmarl's version 2 has int32. `multi/switch` has a fourth action and masks, which jaxmarl's
riddle has not.

"""


def ours(id: str, num_envs: int) -> Callable[[], int]:
    """() -> environment steps played by this project's rollout, going on where the call before stopped."""
    env = with_agent_axis(envs_jax.make(id))
    sizes = Sizes(num_envs, STEPS[num_envs])
    acting = make_acting(env, fixed(env.default_params), kept_random(env.spec), sizes, env.reset_mode)
    clock = Clock(jnp.int32(0), jnp.int32(1))

    def rollout(actor: Any, key: jax.Array) -> tuple[Any, Any]:
        actor, trajectory, _ = unroll(acting, {}, {}, actor, (), key, clock, False)
        return actor, trajectory

    return _repeated(rollout, jax.jit(lambda key: start(acting, (), key))(jax.random.key(0)), num_envs)


def theirs(peer: tuple[str, dict[str, Any]], num_envs: int) -> Callable[[], int]:
    """The same for jaxmarl: its `step` under vmap and scan, in the loop of its baselines, where one key is handed on."""
    importlib.import_module("envs_jax.adapters.jaxmarl.library")  # imports it without its noise
    import jaxmarl

    name, arguments = peer
    env = jaxmarl.make(name, **arguments)
    act = _random_actions([env.action_space(agent) for agent in env.agents], num_envs)

    def step(carried: tuple[Any, jax.Array], _: None) -> tuple[tuple[Any, jax.Array], Any]:
        state, key = carried
        key, key_act = jax.random.split(key)
        actions = dict(zip(env.agents, act(key_act), strict=True))
        key, key_step = jax.random.split(key)
        seen, state, reward, done, told = jax.vmap(env.step)(jax.random.split(key_step, num_envs), state, actions)
        return (state, key), ({agent: seen[agent] for agent in env.agents}, reward, done, told)

    def rollout(state: Any, key: jax.Array) -> tuple[Any, Any]:
        (state, _), kept = jax.lax.scan(step, (state, key), None, STEPS[num_envs])
        return state, kept

    first = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), num_envs))[1]
    return _repeated(rollout, first, num_envs)


def _random_actions(spaces: list[Any], num_envs: int) -> Callable[[jax.Array], list[jax.Array]]:
    """key -> uniformly random actions of jaxmarl's spaces, [N] or [N, d] for every agent: one draw, or one for each Box."""
    if all(hasattr(space, "n") for space in spaces):
        sizes = jnp.asarray([space.n for space in spaces])
        draw = lambda key: jnp.floor(jax.random.uniform(key, (num_envs, len(spaces))) * sizes).astype(jnp.int32)  # noqa: E731
        return lambda key: list(draw(key).T)
    boxes = [Box(space.low, space.high, space.shape, space.dtype) for space in spaces]
    return lambda key: [box.sample(key, (num_envs,)) for box, key in zip(boxes, jax.random.split(key, len(boxes)), strict=True)]


def _repeated(rollout: Callable[..., Any], first: Any, num_envs: int) -> Callable[[], int]:
    program, state, keys = jax.jit(rollout), [first], iter(jax.random.split(jax.random.key(1), 100_000))

    def play() -> int:
        state[0], kept = program(state[0], next(keys))
        jax.block_until_ready(kept)
        return num_envs * STEPS[num_envs]

    play()  # compiles
    return play


def peer_of(id: str) -> tuple[str, dict[str, Any]] | None:
    """jaxmarl's name and arguments of the same environment."""
    suite, name = id.split("/")
    if id in SAME:
        return SAME[id], {}
    if suite != "jaxmarl":
        return None
    if name.startswith("smax_"):
        from jaxmarl.environments.smax import map_name_to_scenario

        return "HeuristicEnemySMAX", {"scenario": map_name_to_scenario(name.removeprefix("smax_"))}
    if name.startswith("overcooked_v2_"):
        return "overcooked_v2", {"layout": name.removeprefix("overcooked_v2_")}
    if name.startswith("overcooked_"):
        from jaxmarl.environments.overcooked import overcooked_layouts

        return "overcooked", {"layout": overcooked_layouts[name.removeprefix("overcooked_")]}
    return name, {}


def listed(part: str) -> list[str]:
    """Every multi-agent environment; of Overcooked, whose layouts differ in their walls alone, one layout a version."""
    layouts = {"jaxmarl/overcooked_cramped_room", "jaxmarl/overcooked_v2_cramped_room"}
    found = []
    for id in envs_jax.ids():
        if id.split("/")[0] not in ("multi", "jumanji", "jaxmarl") or part not in id:
            continue
        if "overcooked" in id and id not in layouts:
            continue
        if envs_jax.make(id).spec.num_agents is not None:
            found.append(id)
    return found


def measure(id: str, num_envs: int, rounds: int) -> dict[str, Any]:
    """Both sides of one environment, in turn."""
    sides, peer = {"agentgym_jax": ours(id, num_envs)}, peer_of(id)
    if peer is not None:
        sides["jaxmarl"] = theirs(peer, num_envs)
    runs: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, play in sides.items():
            runs[side].append(steps_per_second(play))
    best = {side: max(speeds) for side, speeds in runs.items()}
    ratio = best["agentgym_jax"] / best["jaxmarl"] if peer else None
    return {"environment": id, "num_envs": num_envs, "steps_per_second": best, "ratio": ratio, "all": runs}


def table(rows: list[dict[str, Any]]) -> str:
    """One row an environment: the speed at each N, and over jaxmarl's."""
    heads = [f"N = {num_envs:,}" for num_envs in NUM_ENVS]
    lines = [f"| environment | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    for id in dict.fromkeys(row["environment"] for row in rows):
        cells = []
        for row in (row for row in rows if row["environment"] == id):
            over = "" if row["ratio"] is None else f" ({row['ratio']:.2f} × jaxmarl)"
            cells.append(f"{row['steps_per_second']['agentgym_jax']:,.0f}{over}")
        lines.append(f"| {id} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(rounds: int, part: str) -> None:
    """Measures all that `part` names, and renews their rows in the record and the page; other rows stay."""
    about, kept = peers.about(), peers.RESULTS / "environments.json"
    ids: dict[str, list[dict[str, Any]]] = {id: [] for id in listed("")}
    for row in json.loads(kept.read_text())["rows"] if kept.exists() else []:
        ids.get(row["environment"], []).append(row)
    told = {"device": peers.in_words(about), "jaxmarl": importlib.metadata.version("jaxmarl")}
    measured = told | {"rounds": rounds, "git": about.pop("git")}
    for id in listed(part):
        ids[id] = [measure(id, num_envs, rounds) | measured for num_envs in NUM_ENVS]
        jax.clear_caches()
        print(table(ids[id]).splitlines()[-1], file=sys.stderr, flush=True)
        rows = [row for own in ids.values() for row in own]
        record = {"command": "python experiments/benchmark/environments.py", **about, "rows": rows}
        kept.write_text(json.dumps(record, indent=2) + "\n")
        least, most = (choose(row["rounds"] for row in rows) for choose in (min, max))
        several = str(least) if least == most else f"{least} to {most}"
        Path(PAGE).write_text(INTRODUCTION.format(**told, rounds=several) + table(rows) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2] if len(sys.argv) > 2 else "")

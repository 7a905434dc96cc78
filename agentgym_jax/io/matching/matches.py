"""Every policy in every group against every other: runs, scripts and random play, measured on the same episodes."""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.checks import ConfigError, check_size
from agentgym_jax.io.config import check
from agentgym_jax.io.config.env_numbers import env_numbers
from agentgym_jax.io.config.experiment import EnvConfig, Experiment
from agentgym_jax.io.config.files import shipped_configs
from agentgym_jax.io.config.load import load_experiment
from agentgym_jax.io.matching import match_report
from agentgym_jax.io.matching.players import Player, groups_of, policy_of, stacked, trained_player
from agentgym_jax.io.running.assemble import DEFAULT_CAP, make_env
from agentgym_jax.io.running.run_directory import create
from agentgym_jax.statistics import bootstrap
from agentgym_jax.training.baseline import random_algorithm
from agentgym_jax.training.loop import evaluation_keys
from agentgym_jax.training.matches import make_match, scripted
from envs_jax import registry
from envs_jax.core import Env, Group
from envs_jax.groups import part_of
from envs_jax.names import unknown
from envs_jax.wrappers import Wrapper
from envs_jax.wrappers.opponent import scripts_of

RANDOM = "random"
_MOST_PAIRINGS = 1024
_REPLICATES = 5000


@dataclasses.dataclass(frozen=True)
class Matches:
    """What `match` returns: `results[name]` is float32 [n_1, ..., n_G, E], an axis a group and E episodes of each pairing.

    Names are those of an evaluation, `group_return.<group>` among them, and `win.<group>`: 1 where the group's return was
    higher than that of every other group. An environment that pays a team has one `return` instead.
    """

    env: str
    players: dict[str, tuple[str, ...]]  # {group: who played it}, in the order of the axes
    results: dict[str, np.ndarray]
    episodes: int
    seed: int
    strength: float
    greedy: bool
    compile_seconds: float
    play_seconds: float
    directory: Path | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, in the order of the axes."""
        return tuple(self.players)

    def mean(self, name: str) -> np.ndarray:
        """The mean over the episodes of every pairing, float64 [n_1, ..., n_G]."""
        return np.asarray(np.mean(self.results[name], axis=-1, dtype=np.float64))

    def interval(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the 95 % bootstrap interval of that mean, [n_1, ..., n_G] each; NaN for a single episode."""
        values = self.results[name].reshape(-1, self.episodes).T
        low, high = bootstrap.interval(lambda x: np.mean(x, axis=1), values, _REPLICATES)
        shape = self.results[name].shape[:-1]
        return np.broadcast_to(low, values.shape[1:]).reshape(shape), np.broadcast_to(high, values.shape[1:]).reshape(shape)

    def returns(self) -> dict[str, str]:
        """{group: the name of its return in `results`}."""
        own = {group: f"group_return.{group}" for group in self.groups}
        return {group: name if name in self.results else "return" for group, name in own.items()}

    def pairings(self) -> Iterator[tuple[tuple[int, ...], dict[str, str]]]:
        """(place on the axes, {group: player}) of every pairing."""
        for place in itertools.product(*(range(len(names)) for names in self.players.values())):
            yield place, {group: names[i] for (group, names), i in zip(self.players.items(), place, strict=True)}

    def table(self) -> Any:
        """A row a pairing, as a rich table."""
        return match_report.table(self)

    def plot(self) -> Any:
        """Heat maps of returns and wins, as a matplotlib figure."""
        return match_report.plot(self)


def match(
    env: Any,
    runs: Sequence[Any] = (),
    episodes: int = 32,
    seed: int = 0,
    strength: float = 1.0,
    greedy: bool = True,
    scripts: bool = True,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> Matches:
    """Plays every policy in every group against every other, in one compiled program.

    A group is played by each run that can, by each of its scripts and by random play. Every pairing plays the same starts, and
    all is fixed by `seed`; with that of a run's evaluation and as many episodes, a greedy run against itself repeats its last
    evaluation, if that had no `eval.params`. Where agents form no groups each is one of its own (`agent_0`, …): cross-play.

    Args:
      env: an id, the name or file of a config, an `EnvConfig`, an `Experiment` or an `Env`. Its wrappers are kept but for
        `opponent`, and the runs must have been trained in the same.
      runs: paths of run directories, `path:seed` for another member than the first, `Run`s or `Policy`s; their final policies.
      episodes: of every pairing. seed: of starts, noise and actions.
      strength: in [0, 1], the probability with which scripts act by their rules, else at random.
      greedy: runs act by their mode, else by their behaviour policy. scripts: whether the environment's scripts take part.
      out: a folder for matches.json, matches.csv and heat_map.png; None writes nothing. overwrite: move an existing one aside.

    Raises:
      ConfigError: in one line, before anything compiles, for a run of another environment, an environment of one agent, and
      more than 1024 pairings.
    """
    episodes, seed = check.whole("episodes", episodes), check.whole("seed", seed, least=0)
    check_size("episodes", episodes)
    check_size("seed", seed)
    strength = check.number("strength", strength)
    if not 0 <= strength <= 1:
        raise ConfigError(f"strength: must be between 0 and 1, got {strength:g}")
    id, built, params = _environment(env)
    apart = _apart(built)
    players = _players(apart, built, id, runs, strength, greedy, scripts)
    field = {group: [i for i, player in enumerate(players) if group in player.groups] for group in groups_of(apart.spec)}
    if (count := math.prod(map(len, field.values()))) > _MOST_PAIRINGS:
        raise ConfigError(f"{count:,} pairings are more than {_MOST_PAIRINGS}: leave runs out, or the scripts")
    directory = None if out is None else create(out, overwrite)
    results, compiled, played = _play(apart, params, players, field, episodes, seed, greedy)
    matches = Matches(
        env=_name(id),
        players={group: tuple(players[i].label for i in who) for group, who in field.items()},
        results=_with_wins(results, groups_of(apart.spec)),
        episodes=episodes,
        seed=seed,
        strength=strength,
        greedy=greedy,
        compile_seconds=compiled,
        play_seconds=played,
        directory=None if directory is None else directory.path,
    )
    if directory is not None:
        match_report.write(matches, directory.path)
    return matches


def _environment(env: Any) -> tuple[Any, Env, Any]:
    """What it is made of (an id or an Env), the environment in its natural shapes without opponents, and its numbers."""
    config = _env_config(env)
    wrappers = [entry for entry in config.wrappers if _wrapper_name(entry) != "opponent"]
    numbers = dict(config.params)
    if len(wrappers) < len(config.wrappers):
        numbers.pop("strength", None)
    config = dataclasses.replace(config, wrappers=wrappers, params=numbers)
    built = make_env(config)
    if built.spec.agents < 2:
        raise ConfigError(f"matches need several agents; {_name(config.id)} has {built.spec.agents}")
    return config.id, built, env_numbers(built, Experiment(config)).params


def _name(id: Any) -> str:
    return id if isinstance(id, str) else type(id).__name__


def _wrapper_name(entry: Any) -> Any:
    return entry.get("name") if isinstance(entry, Mapping) else entry


def _env_config(env: Any) -> EnvConfig:
    if isinstance(env, Experiment):
        return env.env
    if isinstance(env, EnvConfig):
        return env
    if isinstance(env, Env):
        return EnvConfig(env)
    known = [*registry.ids(), *shipped_configs()]
    try:
        return EnvConfig(registry.resolve(env))
    except ValueError:
        if env not in known and not Path(str(env)).suffix:
            raise unknown("environment or config", env, known, "(or give the path of a .yaml file)") from None
    return load_experiment(env).env


def _apart(env: Env) -> Env:
    """The environment with groups: where it has none, every agent is a group of its own."""
    spec = env.spec
    if spec.groups:
        return env
    alone = tuple(Group(f"agent_{i}", 1, spec.observation_space, spec.action_space) for i in range(spec.agents))
    return Wrapper(env, dataclasses.replace(spec, groups=alone))


def _players(
    apart: Env, built: Env, id: Any, runs: Sequence[Any], strength: float, greedy: bool, scripts: bool
) -> list[Player]:
    """Everybody who takes part: runs, then scripts, then random play."""
    if isinstance(runs, str | Path) or not isinstance(runs, Sequence):
        raise ConfigError(f"runs: must be a list of runs, got {runs!r}")
    everything, players, loaded = tuple(groups_of(apart.spec)), [], {}
    for run in runs:
        label, policy = policy_of(run, greedy, loaded)
        player = trained_player(policy, built, id, label)
        players.append(player if player.groups else dataclasses.replace(player, groups=everything))
    written = {group: scripts_of(apart, group) for group in everything} if scripts else {}
    players = _distinct(players, {RANDOM, *itertools.chain(*written.values())})
    for group, own in written.items():
        part = part_of(apart.spec, [group])
        for name, script in own.items():
            algorithm = scripted(script, part)
            players.append(Player(name, algorithm, jnp.float32(strength), (), (group,), ("script", group, name)))
    return [*players, Player(RANDOM, random_algorithm(apart.spec), (), (), everything, RANDOM)]


def _distinct(players: list[Player], taken: set[str]) -> list[Player]:
    """The runs with labels as short as tells them apart, from those who are `taken` as well; objects without a directory are
    counted."""
    labels = [player.label for player in players]
    if doubles := sorted({label for label in labels if labels.count(label) > 1} - {"run", "policy"}):
        raise ConfigError(f"runs: must differ, {', '.join(doubles)} came more than once")
    short = [label.rstrip("/").rpartition("/")[2] for label in labels]
    unique = [s if short.count(s) == 1 else label for s, label in zip(short, labels, strict=True)]
    numbered = [f"{s}-{i + 1}" if labels.count(s) > 1 else s for i, s in enumerate(unique)]
    named = [f"{label} (run)" if label in taken else label for label in numbered]
    return [dataclasses.replace(player, label=label) for player, label in zip(players, named, strict=True)]


def _play(
    env: Env, params: Any, players: list[Player], field: dict[str, list[int]], episodes: int, seed: int, greedy: bool
) -> tuple[dict[str, np.ndarray], float, float]:
    """{name: [n_1, ..., n_G, E]} of all pairings; the seconds to compile and to play them."""
    algorithms, numbers, places = stacked(players, lambda trees: jax.tree.map(lambda *x: jnp.stack(x), *trees))
    kinds = {group: sorted({places[i][0] for i in who}) for group, who in field.items()}
    pairings = list(itertools.product(*field.values()))
    seats = {}
    for axis, group in enumerate(field):
        sat = [places[pairing[axis]] for pairing in pairings]
        which, member = [kinds[group].index(kind) for kind, _ in sat], [member for _, member in sat]
        seats[group] = (jnp.asarray(which, jnp.int32), jnp.asarray(member, jnp.int32))
    key = evaluation_keys(seed, 0)[0 if greedy else 1]
    inputs = (params, tuple(numbers), seats, key, jnp.int32(env.spec.episode_limit or DEFAULT_CAP))
    begun = time.perf_counter()
    play = jax.jit(make_match(env, algorithms, kinds, episodes, explore=not greedy)).lower(*inputs).compile()
    compiled = time.perf_counter()
    results = jax.device_get(play(*inputs))
    shape = tuple(len(who) for who in field.values())
    played = {name: np.asarray(x).reshape(*shape, episodes) for name, x in results.items()}
    return played, compiled - begun, time.perf_counter() - compiled


def _with_wins(results: dict[str, np.ndarray], groups: list[str]) -> dict[str, np.ndarray]:
    """The results with `win.<group>`, where groups are paid apart and there are two or more."""
    own = {group: results[f"group_return.{group}"] for group in groups if f"group_return.{group}" in results}
    wins = {}
    for group, value in own.items():
        rest = [other for name, other in own.items() if name != group]
        if rest:
            wins[f"win.{group}"] = (value > np.max(rest, axis=0)).astype(np.float32)
    return results | wins

"""Trained policies as players of an environment's groups: in matches, and frozen as opponents that others learn against."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

import agentgym_jax
from agentgym_jax.algorithms.base import Algorithm
from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.training.matches import frozen, trained
from envs_jax.core import Env, EnvSpec
from envs_jax.groups import part_of
from envs_jax.wrappers import Wrapper
from envs_jax.wrappers.opponent import scripts_of

if TYPE_CHECKING:
    from agentgym_jax.io.running.policy import Policy

_OPPONENT = "opponent"
_ARGUMENTS = ("name", "group", "policy", "strength", "seed", "greedy")
_SEES = ("num_agents", "observation_space", "action_space", "groups")  # of a spec: what an action depends on


@dataclasses.dataclass(frozen=True)
class Player:
    """Who can play some groups of an environment: an algorithm that acts for all its agents, in its natural shapes."""

    label: str
    algorithm: Algorithm
    learner: Any
    hyper: Any
    groups: tuple[str, ...]  # that it can play
    kind: Any  # hashable; those of one kind differ in learner and hyper alone, and one program serves them


def groups_of(spec: EnvSpec) -> list[str]:
    """The names of the groups of an environment."""
    return [group.name for group in spec.groups]


def trained_player(policy: Policy, env: Env, id: Any, label: str) -> Player:
    """A run's policy as a player of `env`. One that learned against an `opponent` plays the groups that were left to it.

    `id` is what `env` was made of, an id or an Env. Raises ConfigError, in one line that begins with `label`, when it learned
    in another environment, or saw or did other things there; other arguments are no reason, such as a longer time limit.
    """
    assembly = policy.assembly
    experiment = assembly.experiment
    names = [id, experiment.env.id]
    if not all(isinstance(name, str) for name in names):
        names = [_class(env), _class(assembly.env)]
    here, there = names
    if here != there:
        raise ConfigError(f"{label} was trained in {there}, which is not {here}; choose a run of this environment")
    wrappers = [entry for entry in experiment.env.wrappers if isinstance(entry, Mapping)]
    played = [str(entry["group"]) for entry in wrappers if entry["name"] == _OPPONENT]
    left = tuple(name for name in groups_of(env.spec) if name not in played)
    part = part_of(env.spec, left) if played and left else None
    expected, found = env.spec if part is None else part.spec, assembly.env.spec
    for field in _SEES:
        ours, theirs = getattr(expected, field), getattr(found, field)
        if ours != theirs:
            raise ConfigError(
                f"{label} does not fit: its {field} is {theirs}, here it is {ours}; use the same arguments and"
                " wrappers (for a match: the run's config.yaml in place of the id)"
            )
    return Player(
        label=label,
        algorithm=trained(assembly.algorithm, assembly.env, part),
        learner=policy.learner,
        hyper=policy.hyper,
        groups=left,
        kind=(experiment.name, experiment.algorithm, experiment.network, tuple(played), assembly.spec, _form(policy)),
    )


def policy_of(run: Any, greedy: bool, loaded: dict[str, Any]) -> tuple[str, Policy]:
    """A label and the policy that a path, `path:seed`, `Run` or `Policy` stands for; the first member where none is named.

    `loaded` remembers runs by their path. Raises ConfigError for what is no run, and for a seed that did not run.
    """
    if isinstance(run, str | Path):
        path, seed = _path_and_seed(str(run))
        if path not in loaded:
            loaded[path] = agentgym_jax.load_run(path)
        return str(run), loaded[path].policy(seed=seed, greedy=greedy)
    if hasattr(run, "assembly") and hasattr(run, "learner"):
        return "policy", dataclasses.replace(run, greedy=greedy)
    if not hasattr(run, "policy"):
        raise ConfigError(f"a run is a path of a run directory, path:seed, a Run or a Policy, got {run!r}")
    return str(run.directory or "run"), run.policy(greedy=greedy)


def _path_and_seed(text: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"(.+):(\d+)", text)
    return (found[1], int(found[2])) if found and not Path(text).exists() else (text, None)


def frozen_opponent(entry: Any, env: Env, id: Any) -> Any:
    """An entry of `env.wrappers`; one of an `opponent` whose `policy` is a run directory, with that run's policy as script.

    `env` is what is wrapped, made of `id`. Beside the wrapper's own arguments such an entry takes `seed`, which member plays
    (default: the first), and `greedy`, whether it acts by its mode (default: true). Raises ConfigError for a path that is no
    run, and for a run that cannot play the group.
    """
    if not isinstance(entry, Mapping) or entry.get("name") != _OPPONENT:
        return entry
    check.known_keys(_OPPONENT, entry, _ARGUMENTS)
    if not _is_path(entry.get("policy"), entry, env):
        if of_runs := [name for name in ("seed", "greedy") if name in entry]:
            raise ConfigError(f"opponent.{of_runs[0]}: is for a run, and {entry.get('policy')} is none; leave it out")
        return entry
    entry = dict(entry)
    path, seed, greedy = entry["policy"], entry.pop("seed", None), entry.pop("greedy", True)
    check.flag("opponent.greedy", greedy)
    group, label = entry.get("group"), f"opponent.policy: {path}"
    if group not in groups_of(env.spec):
        return entry  # the wrapper says what is wrong
    try:
        policy = agentgym_jax.load_run(path).policy(seed=None if seed is None else check.whole("opponent.seed", seed, least=0))
    except ConfigError as error:
        raise ConfigError(f"{label}: {error}") from None
    player = trained_player(policy, env, id, label)
    if group not in player.groups:
        raise ConfigError(f"{label} plays {', '.join(player.groups)}, not {group}: it learned against a policy there")
    part = part_of(env.spec, [group])
    return entry | {"policy": frozen(player.algorithm, player.learner, player.hyper, part, explore=not greedy)}


def _is_path(policy: Any, entry: Mapping[str, Any], env: Env) -> bool:
    """Whether a policy is meant as a path: no script has that name, and it looks like one or is there."""
    if not isinstance(policy, str) or policy == "random" or policy in scripts_of(env, str(entry.get("group"))):
        return False
    return "/" in policy or Path(policy).is_dir()


def _class(env: Env) -> str:
    return type(env.unwrapped if isinstance(env, Wrapper) else env).__name__


def _form(policy: Policy) -> Any:
    """The structure and shapes of its numbers: a rate that is constant and one that falls are no members of one program."""
    leaves, structure = jax.tree.flatten((policy.learner, policy.hyper))
    return structure, tuple(jnp.shape(leaf) for leaf in leaves)


def stacked(players: Sequence[Player], stack: Callable[..., Any]) -> tuple[list[Algorithm], list[Any], list[tuple[int, int]]]:
    """Players by kinds: an algorithm and (learner, hyper), leaves [M, ...], a kind; and (kind, member) of each player."""
    kinds: dict[Any, list[Player]] = {}
    places = []
    for player in players:
        members = kinds.setdefault(player.kind, [])
        members.append(player)
        places.append((list(kinds).index(player.kind), len(members) - 1))
    numbers = [stack([(member.learner, member.hyper) for member in members]) for members in kinds.values()]
    return [members[0].algorithm for members in kinds.values()], numbers, places

"""Groups of agents that learn at a pace of their own, against non-stationarity: each is part of the others' environment.

Two time scales, where one group moves slowly or seldom while another adapts to it (Leslie & Collins 2005, "Individual
Q-learning in normal form games"), as settings of the optimiser's step: a factor on the learning rate, and a period.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from agentgym_jax.checks import ConfigError, check_choice, check_whole
from agentgym_jax.models.sharing import GROUPS
from agentgym_jax.types import Clock
from envs_jax.core import EnvSpec

_DEFAULTS = {"learning_rate": 1.0, "period": 1}


class GroupSteps(Mapping[str, Mapping[str, Any]]):
    """{group: {learning_rate: factor, period: k}}, hashable; an empty one changes nothing.

    The step of a group's parameters is multiplied by its `learning_rate`, a number of at least 0, and is taken only in
    iterations that `period` divides, the first included. Moments and the gradient's norm are reckoned as ever, so nobody
    else's step changes. Raises ConfigError for an unknown key and a wrong number.
    """

    def __init__(self, given: Any, field: str = "algorithm.group_steps"):
        if not isinstance(given, Mapping):
            raise ConfigError(f"{field}: must be {{group: {{learning_rate: factor, period: k}}}}, got {given!r}")
        self.field, self._paces = field, {str(name): _pace(f"{field}.{name}", pace) for name, pace in given.items()}

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return dict(self._paces[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._paces)

    def __len__(self) -> int:
        return len(self._paces)

    def __hash__(self) -> int:
        return hash(frozenset((name, *pace.values()) for name, pace in self._paces.items()))

    def __repr__(self) -> str:
        return repr(self._paces)

    def check(self, spec: EnvSpec, init: Callable[[jax.Array], Any]) -> None:
        """Raises ConfigError, in one line, for a name that no group has, and where no parameters of `init(key)` are its own."""
        if not self:
            return
        if not spec.groups:
            raise ConfigError(f"{self.field}: the agents of this environment form no groups; leave it out")
        for name in self:
            check_choice(self.field, name, [group.name for group in spec.groups])
        params = jax.eval_shape(init, jax.random.key(0))
        owners = {_group_of(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)}
        if missing := [name for name in self if name not in owners]:
            raise ConfigError(f"{self.field}: {missing[0]} shares its parameters with others; set network.sharing: group")

    def take(self, params: Any, updates: Any, clock: Clock) -> Any:
        """`params` after a step of `updates`, a tree of the same structure, each group at its own pace."""

        def take(path: Any, value: jax.Array, update: jax.Array) -> jax.Array:
            pace = self._paces.get(_group_of(path), _DEFAULTS)
            if pace == _DEFAULTS:
                return value + update
            now = clock.iteration % pace["period"] == 0
            return jnp.where(now, value + pace["learning_rate"] * update, value)

        return jax.tree_util.tree_map_with_path(take, params, updates)


def _pace(field: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{field}: must be {{learning_rate: factor, period: k}}, got {given!r}")
    for key in given:
        check_choice(field, key, _DEFAULTS)
    pace = _DEFAULTS | dict(given)
    factor = pace["learning_rate"]
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0.0 <= factor < math.inf:
        raise ConfigError(f"{field}.learning_rate: must be a number of at least 0, got {factor!r}")
    check_whole(f"{field}.period", pace["period"])
    return {"learning_rate": float(factor), "period": pace["period"]}


def _group_of(path: Any) -> Any:
    """The group whose parameters lie at this path of a tree, or None."""
    keys = [getattr(entry, "key", None) for entry in path]
    return keys[keys.index(GROUPS) + 1] if GROUPS in keys[:-1] else None

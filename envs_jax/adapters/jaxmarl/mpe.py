"""The particle environments of Lowe et al. 2017, arXiv:1706.02275, after PettingZoo's."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs_jax.adapters.common import check_arguments, check_time_limit
from envs_jax.adapters.jaxmarl.arguments import check_choice, check_values, defaults
from envs_jax.adapters.jaxmarl.base import JaxmarlEnv, State
from envs_jax.adapters.jaxmarl.library import PARTICLES
from envs_jax.core import EnvSpec, Group
from envs_jax.pictures import plane
from envs_jax.spaces import Box, Discrete
from envs_jax.wrappers.checks import number

_CHOICES = {"action_type": {"discrete": "Discrete", "continuous": "Continuous"}, "score_function": {"sum": "sum", "min": "min"}}
# Of the library's arguments: those that follow from others, and the numbers of the physics, which it takes without naming them.
_NOT_OURS = ("dim_c", "dim_p", "max_steps", "dt", "agents", "landmarks", "action_spaces", "observation_spaces", "colour")
_RANGES = {"dt": (1e-6, math.inf), "damping": (0.0, 1.0), "contact_margin": (1e-6, math.inf), "view_radius": (0.0, math.inf)}
_PHYSICS = {"dt": 0.1, "damping": 0.25, "contact_force": 100.0, "contact_margin": 1e-3}


class MPE(JaxmarlEnv):
    """`MPE_<name>`, by the library's ids. Episodes never truly end: `time_limit` cuts them, after exactly as many steps.

    Agents of different kinds are groups, named as the library names its agents (adversary, agent, speaker, ...). Observations
    are padded with zeros to the widest, and what an agent cannot do is masked. Rewards are individual; the library's logs show
    the sum over agents. All agents' observations side by side are the world.

    Args:
        name: the library's id.
        time_limit: steps until an episode is cut; the library's own 25 lasts 26.
        kwargs: the library's own arguments: how many agents and landmarks of each kind, `local_ratio`, `action_type`
            (`discrete` or `continuous`), `view_radius` and `score_function` of FACMAC's; and of the physics `dt`, `damping`,
            `contact_force` and `contact_margin`.

    Raises ValueError for an argument that this environment does not take, and for a value that it cannot have.
    """

    def __init__(self, name: str, /, time_limit: int = 25, **kwargs: Any):
        environment = f"jaxmarl/{name}"
        limit = check_time_limit(environment, time_limit)
        library = _build(environment, PARTICLES[name], limit, kwargs)
        names = self.controlled(library)
        seen = jax.eval_shape(library.reset, jax.random.PRNGKey(0))[0]
        self._widths = [seen[agent].shape[0] for agent in names]
        self._choices = [_action_space(library, agent) for agent in names]
        widest = max(self._choices, key=lambda space: space.n if isinstance(space, Discrete) else space.shape[0])
        spec = EnvSpec(
            observation_space=_seen(max(self._widths)),
            action_space=widest,
            num_agents=len(names),
            episode_limit=limit,
            groups=_groups(names, self._widths, self._choices),
        )
        super().__init__(library, spec, names)
        self._mask = spec.own_actions if isinstance(widest, Discrete) else None
        self._idle = {name: jnp.zeros(widest.shape, widest.dtype) for name in library.agents if name not in names}

    def controlled(self, library: Any) -> tuple[str, ...]:
        """The library's names of the agents; it moves the others."""
        return tuple(library.agents)

    def view(self, state: State) -> jax.Array:
        seen, widest = self.library.get_obs(state.library), self.spec.observation_space.shape[0]
        return jnp.stack([jnp.pad(seen[name], (0, widest - len(seen[name]))) for name in self.names])

    def action_mask(self, state: State) -> Any:
        return () if self._mask is None else jnp.asarray(self._mask)

    def actions(self, action: jax.Array) -> dict[str, jax.Array]:
        own = [action[i, : space.shape[0]] if isinstance(space, Box) else action[i] for i, space in enumerate(self._choices)]
        return dict(zip(self.names, own, strict=True)) | self._idle

    def render(self, state: State) -> jax.Array:
        """An RGB picture, uint8 [160, 160, 3]: agents and landmarks in the library's colours."""
        return plane(state.library.p_pos, self.library.rad.tolist(), self.library.colour)


def _build(environment: str, build: Any, limit: int, given: dict[str, Any]) -> Any:
    """The library's environment with these arguments of ours, its time limit included where it can be told."""
    known = {name: value for name, value in defaults(build).items() if name not in _NOT_OURS}
    own = isinstance(build, type)  # the sizes of the others are fixed
    known |= _PHYSICS if own else {}
    check_arguments(environment, (*known, "time_limit"), given)
    choices = {name: value for name, value in given.items() if name in _CHOICES}
    for name, value in choices.items():
        check_choice(environment, name, value, _CHOICES[name])
    check_values(environment, known, {name: value for name, value in given.items() if name not in choices})
    for name in given.keys() & _RANGES.keys():
        number(f"{environment}: {name}", given[name], *_RANGES[name])
    named = {name: _CHOICES[name][value] for name, value in choices.items()}
    try:
        library = build(**given | named | ({"max_steps": limit} if own else {}))
    except AssertionError as error:
        raise ValueError(f"{environment}: {error}") from None
    if not np.any(library.collide):  # all forces are zero, which XLA does not always see: a step may be three times as long
        library._apply_environment_force = lambda force, state: force
    return library


def _seen(width: int) -> Box:
    return Box(-np.inf, np.inf, (width,))


def _action_space(library: Any, agent: str) -> Discrete | Box:
    space = library.action_space(agent)
    return Discrete(int(space.n)) if hasattr(space, "n") else Box(0.0, 1.0, space.shape)


def _groups(names: tuple[str, ...], widths: list[int], choices: list[Discrete | Box]) -> tuple[Group, ...]:
    """A group for each kind of agent, the first part of its name; () where all are of one kind."""
    kinds = [name.rpartition("_")[0] for name in names]
    first = {kind: kinds.index(kind) for kind in kinds}
    if len(first) == 1:
        return ()
    return tuple(Group(kind, kinds.count(kind), _seen(widths[i]), choices[i]) for kind, i in first.items())

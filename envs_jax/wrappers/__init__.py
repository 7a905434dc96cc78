"""Wrappers: an environment around another one, one idea a file.

In an experiment they are written by name and applied in order: `wrappers: [agent_ids, {name: frame_stack, size: 4}]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from envs_jax.core import Env
from envs_jax.names import check_arguments, unknown
from envs_jax.wrappers.actions import ScaleActions
from envs_jax.wrappers.agents import AgentAxis, AgentIds, TeamReward
from envs_jax.wrappers.base import Wrapper
from envs_jax.wrappers.discretise import DiscretiseActions
from envs_jax.wrappers.flatten import Flatten
from envs_jax.wrappers.frame_stack import FrameStack
from envs_jax.wrappers.joint import Joint
from envs_jax.wrappers.opponent import Opponent
from envs_jax.wrappers.pad import Pad
from envs_jax.wrappers.resize import Resize
from envs_jax.wrappers.reward import RewardHook, ScaleReward
from envs_jax.wrappers.sticky_actions import StickyActions
from envs_jax.wrappers.time_limit import TimeLimit

WRAPPERS: dict[str, Callable[..., Wrapper]] = {
    "agent_ids": AgentIds,
    "discretise_actions": DiscretiseActions,
    "flatten": Flatten,
    "frame_stack": FrameStack,
    "hook_reward": RewardHook,
    "joint": Joint,
    "opponent": Opponent,
    "pad": Pad,
    "resize": Resize,
    "scale_actions": ScaleActions,
    "scale_reward": ScaleReward,
    "sticky_actions": StickyActions,
    "team_reward": TeamReward,
    "time_limit": TimeLimit,
}


def apply_wrappers(env: Env, wrappers: Iterable[str | Mapping[str, Any]]) -> Env:
    """`env` inside the named wrappers, the first one innermost.

    An entry is a name, or a mapping with `name` and the wrapper's arguments. Raises ValueError, with the nearest name, for
    an unknown wrapper or argument, and for a wrapper that does not suit the environment.
    """
    for entry in wrappers:
        if not isinstance(entry, str | Mapping):
            raise ValueError(f"a wrapper is a name or a mapping with `name` and its arguments, got {entry!r}")
        arguments = {"name": entry} if isinstance(entry, str) else dict(entry)
        name = arguments.pop("name", None)
        if not isinstance(name, str) or name not in WRAPPERS:
            raise unknown("wrapper", name, WRAPPERS)
        check_arguments(f"wrapper {name}", WRAPPERS[name], arguments)
        env = WRAPPERS[name](env, **arguments)
    return env


__all__ = [
    "WRAPPERS",
    "AgentAxis",
    "AgentIds",
    "DiscretiseActions",
    "Flatten",
    "FrameStack",
    "Joint",
    "Opponent",
    "Pad",
    "Resize",
    "RewardHook",
    "ScaleActions",
    "ScaleReward",
    "StickyActions",
    "TeamReward",
    "TimeLimit",
    "Wrapper",
    "apply_wrappers",
]

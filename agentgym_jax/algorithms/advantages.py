"""Credit assignment for on-policy learners. A new idea is one function of this signature and its name in a config:

    advantages(steps, values, next_values, policy, hyper) -> advantages [T, N, A], value targets [T, N, A]

`steps` is the recorded `Transition` [T, N, A, ...], `values` the critic's raw output on it ([T, N, A], or [T, N, A, actions]
for an action-value critic), `next_values` the values of each step's own next observation, `policy` the parameters of the
current action distribution on `steps`, and `hyper` the algorithm's numbers at this moment of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentgym_jax.ops import returns
from agentgym_jax.types import Transition

Advantages = Callable[[Transition, Any, Any, Any, Any], tuple[Any, Any]]


def gae(steps: Transition, values, next_values, policy, hyper) -> tuple[Any, Any]:
    """Generalised advantage estimation (Schulman et al. 2016), exact through time limits, deaths and reused slots."""
    del policy
    cut = returns.trace_cuts(steps.last, steps.reset)
    return returns.gae(steps.reward, hyper.gamma * steps.discount, values, next_values, cut, hyper.gae_lambda)


ADVANTAGES: dict[str, Advantages] = {"gae": gae}


def register_advantages(name: str, advantages: Advantages) -> None:
    """Makes `algorithm.advantages: name` mean this function."""
    ADVANTAGES[name] = advantages

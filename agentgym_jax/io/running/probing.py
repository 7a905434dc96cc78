"""Probe environments run on an algorithm: what it should have learnt is known, so what it got wrong can be said in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.io.config.algorithm_section import default_settings
from agentgym_jax.io.config.experiment import EnvConfig, EvalConfig, Experiment, TrainConfig
from agentgym_jax.io.running.progress import Reporter
from agentgym_jax.io.running.run import Run
from agentgym_jax.io.running.runner import prepare
from agentgym_jax.models.config import NetworkConfig

GAMMA = 0.8  # a discount at which right and wrong values lie far apart
_NUMBERS = {"gamma": GAMMA, "learning_rate": 5e-3}  # set where the algorithm has them, so that a probe takes seconds


@dataclasses.dataclass(frozen=True)
class Check:
    """What is right on one probe, and what it most often means when it is not."""

    probe: str
    greedy_return: float | None  # of the greedy policy; None: any action is as good
    value: float | None  # mean over the states of a rollout; read where the algorithm logs `value_mean`
    meaning: str
    tolerance: float = 0.1  # of the value, relative to the larger of 1 and the right one
    torso: str = "mlp"


CHECKS = (
    Check("constant", None, 1.0, "the value of a state whose only reward is 1 is not learnt: look at the value loss"),
    Check("discounted", None, (GAMMA + 1) / 2, "a reward one step later is not discounted by gamma once", 0.05),
    Check(
        "truncation",
        None,
        1 / (1 - GAMMA),
        "a time limit counts as a death: bootstrap from next_observation wherever discount is not 0, and cut traces at `last`",
    ),
    Check("policy", 1.0, 1.0, "the better of two actions is not found: look at the sign of the policy loss and of advantages"),
    Check(
        "policy_observation", 1.0, 1.0, "the policy does not depend on the observation: rows may be shuffled against actions"
    ),
    Check("masked", 1.0, 1.0, "illegal actions are taken or the legal one is not found: apply action_mask in act and in learn"),
    Check("multi_discrete", 1.0, 1.0, "one of several action heads is not learnt: log probabilities must be summed over heads"),
    Check("continuous", 0.0, None, "a continuous action misses its target: look at log_prob and at the range of actions"),
    Check(
        "team", 1.0, 1.0, "two agents with one reward do not both learn: keep the agent axis together, count the reward once"
    ),
    Check(
        "individual",
        5.0,
        (1 + 2 + 2 * GAMMA + 2) / 3,
        "agents that die at different times are mixed up: weigh rows by `alive`, cut each value by its own discount",
    ),
    Check(
        "memory",
        1.0,
        None,
        "a recurrent network does not remember: train on whole windows from the carry that acted, cut only where `reset` is",
        torso="gru",
    ),
)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The outcome of one probe."""

    probe: str
    state: str  # right, wrong, unjudged, or not run
    text: str


def probe_algorithm(name: str, steps: int = 32_768) -> Iterator[Verdict]:
    """Trains the algorithm for `steps` environment steps on every probe that it can act in, and judges each."""
    for check in CHECKS:
        try:
            session = prepare(_experiment(name, check, steps), reporter=Reporter())
        except ValueError as error:
            yield Verdict(check.probe, "not run", " ".join(str(error).split()))
        else:
            yield judge(check, session.train())


def _experiment(name: str, check: Check, steps: int) -> Experiment:
    _, hyper = default_settings(name)
    fields = {field.name for field in dataclasses.fields(get_algorithm(name).hyper)}
    changes: dict[str, Any] = {key: value for key, value in _NUMBERS.items() if key in fields}
    return Experiment(
        env=EnvConfig(f"probe/{check.probe}"),
        algorithm=name,
        hyper=dataclasses.replace(hyper, **changes),
        network=NetworkConfig(torso=check.torso, hidden=(32,), recurrent=32),
        train=TrainConfig(total_steps=steps, num_envs=16, rollout_length=16),
        eval=EvalConfig(points=1),
    )


def judge(check: Check, run: Run) -> Verdict:
    """Compares the greedy return and the mean value at the end of the run with what is right."""
    if np.any(run.curves["diverged"] > 0):
        return Verdict(check.probe, "wrong", "its numbers stopped being finite")
    found = float(np.mean(run.last_evaluation["greedy"]["return"]))
    said: list[str] = []
    good = True
    if check.greedy_return is not None:
        good &= abs(found - check.greedy_return) <= 0.1 * max(1.0, abs(check.greedy_return))
        said.append(f"greedy return {found:.3g} (right: {check.greedy_return:.3g})")
    if check.value is not None and "value_mean" in run.curves:
        value = _mean_at_end(run.curves["value_mean"])
        good &= abs(value - check.value) <= check.tolerance * max(1.0, abs(check.value))
        said.append(f"mean value {value:.3g} (right: {check.value:.3g})")
    if not said:
        return Verdict(check.probe, "unjudged", f"nothing to compare: log `value_mean` in `learn`; greedy return {found:.3g}")
    text = ", ".join(said)
    return Verdict(check.probe, "right" if good else "wrong", text if good else f"{text}: {check.meaning}")


def _mean_at_end(curve: np.ndarray) -> float:
    return float(np.mean(curve[:, -max(1, curve.shape[1] // 10) :]))

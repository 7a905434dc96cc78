import dataclasses

import numpy as np
import pytest

from agentgym_jax.io.running.learning import learning, protocol
from agentgym_jax.io.running.run import Seconds
from tests.io.test_report import made_up


def with_returns(curves, threshold=None):
    """A run of four seeds whose greedy returns are these [4, 3]."""
    run = made_up()
    episodes = np.float32(np.repeat(np.asarray(curves)[..., None], 4, axis=-1))
    evaluation = {**run.evaluation, "greedy": {"return": episodes}}
    experiment = dataclasses.replace(run.experiment, eval=dataclasses.replace(run.experiment.eval, threshold=threshold))
    return dataclasses.replace(run, evaluation=evaluation, experiment=experiment, seconds=Seconds(train=2.0))


CURVES = [[0.0, 4, 4], [0.0, 2, 6], [5.0, 1, 3], [0.0, 0, 0]]


def test_the_curves_are_told_seed_by_seed():
    result = learning(with_returns(CURVES))
    assert result["drawdown"]["per_seed"] == [0, 0, 4, 0]
    assert result["final_gap"]["per_seed"] == [0, 0, 2, 0]
    assert result["smoothness"]["per_seed"] == [1, 1, pytest.approx(2 / 6), 1]
    assert result["area_under_curve"]["per_seed"] == pytest.approx([2, 5 / 3, (5 + 3 + 2) / 3, 0])
    assert result["worst_seed"] == {"seed": 3, "return": 0}
    assert result["cvar"]["per_seed"] == pytest.approx([4, 6, 3, 0])
    assert result["steps_to_threshold"] is result["solved_share"] is None


def test_steps_and_seconds_to_a_threshold():
    run = with_returns(CURVES, threshold=4)
    result, steps = learning(run), run.evaluation_steps
    reached = result["steps_to_threshold"]
    assert reached["per_seed"] == [steps[1], steps[2], steps[0], np.inf]
    assert reached["missing"] == 1
    assert reached["mean"] == np.mean(steps)
    assert result["seconds_to_threshold"]["per_seed"][1] == pytest.approx(2.0 * steps[2] / run.total_steps)
    assert result["solved_share"] == 0.5


def test_a_seed_that_diverged_is_the_worst_and_is_counted():
    curves = np.array(CURVES)
    curves[1, 2], curves[2, 1] = np.inf, np.nan
    result = learning(with_returns(curves, threshold=3))
    assert result["worst_seed"]["seed"] == 1
    assert result["drawdown"]["missing"] == 2
    assert result["solved_share"] == 0.5


def test_the_protocol_is_recorded():
    run = made_up()
    record = protocol(run)
    assert record["points"] == 3
    assert record["even"]
    assert record["interval_steps"] == run.evaluation_steps[1] - run.evaluation_steps[0]
    assert (record["episodes"], record["seeds"], record["enough_seeds_for_claims"]) == (4, 4, False)
    assert record["environment_version"] == 1
    ten = dataclasses.replace(run, experiment=dataclasses.replace(run.experiment, seeds=10))
    assert protocol(ten)["enough_seeds_for_claims"]
    uneven = dataclasses.replace(run, evaluation_steps=np.array([16, 48, 64]))
    assert not protocol(uneven)["even"]
    assert protocol(uneven)["interval_steps"] is None

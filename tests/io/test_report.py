import dataclasses
import io

import numpy as np
from PIL import Image
from rich.console import Console

from agentgym_jax.io.config.experiment import EvalConfig
from agentgym_jax.io.running import report
from agentgym_jax.io.running.assemble import assemble
from agentgym_jax.io.running.run import Run
from tests.io.support import tiny


def made_up(points=3, sweep=None, episodes=4):
    """A run of made-up numbers: member m returns m at the first point and one more at each later one."""
    experiment = dataclasses.replace(tiny("seeds=4"), sweep=sweep or {}, eval=EvalConfig(points=points, episodes=episodes))
    members, iterations = len(experiment.members), experiment.iterations
    returns = np.arange(members)[:, None, None] + np.arange(points)[None, :, None] + np.zeros((1, 1, episodes))
    block = {"return": np.float32(returns), "agent_return": np.float32(returns), "cut": np.zeros_like(returns, np.float32)}
    curve = np.float32(np.linspace(0, 1, iterations) + np.arange(members)[:, None])
    curve[:, 0] = np.nan
    curves = {"episode_return": curve, "diverged": np.zeros((members, iterations), np.float32)}
    curves["diverged"][1, -1] = 1
    return Run(
        experiment=experiment,
        assembly=assemble(experiment),
        state=None,
        curves=curves,
        curve_steps=16 * np.arange(1, iterations + 1),
        evaluation={"greedy": block, "sampled": block},
        evaluation_steps=16 * iterations // points * np.arange(1, points + 1),
        absolute={"return": returns[:, -1]},
        total_steps=16 * iterations,
        compiles=1,
    )


def printed(table):
    stream = io.StringIO()
    Console(file=stream, width=120).print(table)
    return stream.getvalue()


def test_summary_is_of_the_last_point_and_over_seeds():
    summary = report.summarise(made_up())
    greedy = summary["evaluation"]["greedy"]["return"]
    assert {name: greedy[name] for name in ("mean", "std", "iqm")} == {"mean": 3.5, "std": np.std([2, 3, 4, 5]), "iqm": 3.5}
    assert greedy["per_seed"] == [2.0, 3.0, 4.0, 5.0]
    assert summary["diverged"] == [1]
    assert "sweep" not in summary


def test_a_sweep_is_summarised_point_by_point():
    summary = report.summarise(made_up(sweep={"algorithm.gamma": [0.9, 0.99]}))
    assert [point["evaluation"]["greedy"]["return"]["mean"] for point in summary["sweep"]] == [3.5, 7.5]
    assert summary["diverged"] == [{"seed": 1, "algorithm.gamma": 0.9}]
    assert "0.99" in printed(report.sweep_table(summary))


def test_the_table_leaves_out_what_says_nothing():
    text = printed(report.result_table(report.summarise(made_up()), "title"))
    assert "greedy" in text
    assert "3.5" in text
    assert "agent_return" not in text
    assert "cut" not in text


def test_the_curve_has_a_line_a_seed_the_iqm_and_a_band_in_environment_steps(tmp_path):
    run = made_up()
    figure = run.plot()
    evaluation, training = figure.axes
    *thin, bold = evaluation.lines
    assert len(thin) == 4
    assert bold.get_linewidth() > 2 * thin[0].get_linewidth()
    assert bold.get_xdata()[-1] == run.total_steps
    assert bold.get_ydata().tolist() == [1.5, 2.5, 3.5]
    assert len(evaluation.collections) == 1
    assert training.lines[-1].get_xdata()[-1] == run.total_steps
    assert "environment steps" in evaluation.get_xlabel()
    figure.savefig(tmp_path / "curve.png")
    with Image.open(tmp_path / "curve.png") as image:
        assert image.width > 800
    with Image.open(io.BytesIO(figure._repr_png_())) as shown_in_a_notebook:
        assert shown_in_a_notebook.width > 800


def test_one_point_and_a_sweep_can_be_drawn_too(tmp_path):
    run = made_up(points=1, sweep={"algorithm.gamma": [0.9, 0.99]})
    figure = run.plot()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["gamma 0.9", "gamma 0.99"]
    figure.savefig(tmp_path / "curve.png")

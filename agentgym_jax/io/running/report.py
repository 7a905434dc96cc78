"""What a run tells a person: summary, tables and the learning curve."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from agentgym_jax.io.running.learning import learning, protocol
from agentgym_jax.io.running.statistics import episodes_over_members, iqm_band, nan_mean
from envs_jax.core import Env

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from agentgym_jax.io.running.run import Run

_WINDOWS = 100  # points of a training curve in the plot


def summarise(run: Run) -> dict[str, Any]:
    """summary.json. With a sweep, `evaluation` is over all members (`per_seed` in their order) and `sweep` has each point; with
    `eval.params` it is over all held-out settings, and `held_out` has each.
    """
    experiment, last = run.experiment, run.last_evaluation
    summary = {
        "env": env_name(experiment.env.id),
        "algorithm": experiment.name,
        "seeds": list(experiment.seeds),
        "total_steps": run.total_steps,
        "evaluation": {policy: episodes_over_members(results) for policy, results in last.items()},
        "compile_seconds": run.seconds.compile,
        "train_seconds": run.seconds.train,
        "evaluation_seconds": run.seconds.evaluation,
        "steps_per_second": len(experiment.members) * run.total_steps / max(run.seconds.train, 1e-9),
        "compiles": run.compiles,
        "diverged": diverged_members(run),
        "absolute": episodes_over_members(run.absolute),
        "protocol": protocol(run),
        "learning": learning(run),
    }
    if experiment.eval.params:
        summary["held_out"] = [_held_out_summary(run, index) for index in range(len(experiment.eval.params))]
    if experiment.sweep:
        summary["sweep"] = [_point_summary(run, index) for index in range(len(experiment.points))]
    return summary


def _point_summary(run: Run, index: int) -> dict[str, Any]:
    rows = rows_of_point(run, index)
    evaluation = {
        policy: episodes_over_members({name: values[rows] for name, values in results.items()})
        for policy, results in run.last_evaluation.items()
    }
    absolute = episodes_over_members({name: values[rows] for name, values in run.absolute.items()})
    return {**run.experiment.points[index], "evaluation": evaluation, "absolute": absolute}


def _held_out_summary(run: Run, index: int) -> dict[str, Any]:
    """The last evaluation in the environments that had the index-th of `eval.params`; they were dealt in turn."""
    settings = run.experiment.eval.params
    evaluation = {
        policy: episodes_over_members({name: values[:, index :: len(settings)] for name, values in results.items()})
        for policy, results in run.last_evaluation.items()
    }
    return {"params": dict(settings[index]), "evaluation": evaluation}


def rows_of_point(run: Run, index: int) -> slice:
    """The members of one swept point on the population axis."""
    seeds = len(run.experiment.seeds)
    return slice(index * seeds, (index + 1) * seeds)


def diverged_members(run: Run) -> list[Any]:
    """The seeds whose numbers stopped being finite; with a sweep {"seed": …, swept key: …} each."""
    bad = np.any(run.curves["diverged"] > 0, axis=1)
    return [_label(run.experiment, index) for index in map(int, np.flatnonzero(bad))]


def _label(experiment: Any, index: int) -> Any:
    member = experiment.members[index]
    return dict(member) if experiment.sweep else member["seed"]


def env_name(id: Any) -> str:
    """An environment's id, or the class of an object."""
    return type(id).__name__ if isinstance(id, Env) else id


def result_table(summary: Mapping[str, Any], title: str) -> Table:
    """The last evaluation and the absolute metric: a row a policy and metric."""
    table = Table(title=title, title_justify="left")
    for heading in ("policy", "metric"):
        table.add_column(heading)
    for heading in ("IQM", "mean", "std", "min", "max"):
        table.add_column(heading, justify="right")
    blocks = {**summary["evaluation"], "best, greedy": summary["absolute"]}
    for policy, metrics in blocks.items():
        for name, values in metrics.items():
            if not _says_nothing(name, values, metrics):
                table.add_row(policy, name, *_numbers(values))
    return table


def _says_nothing(name: str, values: Mapping[str, Any], metrics: Mapping[str, Any]) -> bool:
    """A mean over agents that is the return itself, or no episode that was cut."""
    same = name == "agent_return" and values["per_seed"] == metrics["return"]["per_seed"]
    return same or (name == "cut" and not any(values["per_seed"]))


def sweep_table(summary: Mapping[str, Any]) -> Table:
    """A row a swept point: statistics over its seeds of the greedy return at the last evaluation."""
    points = summary["sweep"]
    keys = [key for key in points[0] if key not in ("evaluation", "absolute")]
    table = Table(title="greedy return at each point", title_justify="left")
    for heading in (*keys, "IQM", "mean", "std", "min", "max"):
        table.add_column(heading, justify="right")
    for point in points:
        table.add_row(*(f"{point[key]:g}" for key in keys), *_numbers(point["evaluation"]["greedy"]["return"]))
    return table


def _numbers(values: Mapping[str, Any]) -> list[str]:
    known = [x for x in values["per_seed"] if x is not None and np.isfinite(x)]
    ends = (min(known), max(known)) if known else (None, None)
    return [_short(x) for x in (values["iqm"], values["mean"], values["std"], *ends)]


def _short(x: float | None) -> str:
    return "–" if x is None or not np.isfinite(x) else f"{x:.4g}" if abs(x) < 1000 else f"{x:,.0f}"


_MEANINGS = (
    "Each seed's mean over its episodes, then statistics over seeds; IQM is the mean of the middle half of them.",
    "greedy: the policy's mode; sampled: with its noise; both at the end. best, greedy: the best evaluation's, fresh episodes.",
    "return: the reward of an episode, a team's counted once, else summed over agents; cut: episodes ended by eval.cap.",
)


def plot(run: Run) -> Figure:
    """Greedy evaluation and training episodes against environment steps: thin line a seed, IQM bold, 95 % interval as band."""
    from matplotlib.figure import Figure

    panels = _panels(run)
    figure = shown_in_notebooks(Figure)(figsize=(5.5 * len(panels), 4.2), layout="constrained")
    for axes, (title, x, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for index, point in enumerate(run.experiment.points):
            label = ", ".join(f"{key.rpartition('.')[2]} {value:g}" for key, value in point.items()) or "IQM"
            _draw(axes, x, curves[rows_of_point(run, index)], f"C{index % 10}", label)
        axes.set_xlabel("environment steps of one seed")
        axes.set_ylabel("episode return")
        axes.set_title(title)
        axes.grid(alpha=0.3)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(_steps_formatter())
    figure.axes[0].legend(fontsize="small")
    figure.suptitle(f"{env_name(run.experiment.env.id)}   {run.experiment.name}   seeds: {len(run.experiment.seeds)}")
    return figure


def shown_in_notebooks(figure_class: type) -> type:
    """A figure made without pyplot, so that nothing of it stays open, has no picture in a notebook by itself."""

    def png(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=90)
        return buffer.getvalue()

    return type("Curve", (figure_class,), {"_repr_png_": png})


def _panels(run: Run) -> list[tuple[str, np.ndarray, np.ndarray]]:
    panels = []
    if len(run.evaluation_steps):
        greedy = np.mean(run.evaluation["greedy"]["return"], axis=-1, dtype=np.float64)
        panels.append((f"evaluation, greedy, {run.experiment.eval.episodes} episodes", run.evaluation_steps, greedy))
    if "episode_return" in run.curves:
        x, curves = _thinned(run.curve_steps, run.curves["episode_return"])
        panels.append(("training episodes", x, curves))
    return panels


def _thinned(x: np.ndarray, curves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most about `_WINDOWS` points, each the mean of its neighbours."""
    edges = np.array_split(np.arange(len(x)), min(len(x), _WINDOWS))
    return np.array([x[edge[-1]] for edge in edges]), np.stack([nan_mean(curves[:, edge], axis=1) for edge in edges], axis=1)


def _draw(axes: Any, x: np.ndarray, curves: np.ndarray, colour: str, label: str) -> None:
    marker = "o" if len(x) == 1 else ""
    for index, curve in enumerate(curves):
        known = np.isfinite(curve)
        name = "each seed" if label == "IQM" and index == 0 else None
        axes.plot(x[known], curve[known], color=colour, linewidth=0.7, alpha=0.45, marker=marker and ".", label=name)
    middle, low, high = iqm_band(curves)
    known = np.isfinite(middle)
    axes.plot(x[known], middle[known], color=colour, linewidth=2.4, marker=marker, label=label)
    if len(curves) > 1:
        name = "its 95 % interval" if label == "IQM" else None
        axes.fill_between(x[known], low[known], high[known], color=colour, alpha=0.2, linewidth=0, label=name)


def _steps_formatter() -> Any:
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep="")


def show(summary: Mapping[str, Any], directory: Any = None) -> None:
    """Prints the tables of a finished run, then time, speed, who diverged and where things are."""
    console = make_console()
    title = f"{summary['env']}, {summary['algorithm']}: evaluation at {summary['total_steps']:,} steps"
    console.print(result_table(summary, title))
    if "sweep" in summary:
        console.print(sweep_table(summary))
    members = len(summary["seeds"]) * len(summary.get("sweep", [None]))
    lines = [
        *_MEANINGS,
        f"{members} member{'s' if members > 1 else ''} × {summary['total_steps']:,} steps"
        f" in {summary['train_seconds']:.1f} s of training"
        f" ({summary['steps_per_second']:,.0f} steps/s over all), {summary['evaluation_seconds']:.1f} s of evaluation,"
        f" {summary['compile_seconds']:.1f} s of compilation ({summary['compiles']} trace)",
    ]
    if summary["diverged"]:
        lines.append(f"diverged (not finite any more): {', '.join(str(x) for x in summary['diverged'])}")
    if directory is not None:
        lines.append(f"run directory: {directory}")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def show_evaluation(results: Mapping[str, Mapping[str, np.ndarray]], run: Run) -> None:
    """Prints the table of an evaluation made again."""
    summary = {
        "seeds": run.experiment.seeds,
        "evaluation": {policy: episodes_over_members(metrics) for policy, metrics in results.items()},
        "absolute": {},
    }
    make_console().print(result_table(summary, f"{run.directory}: evaluation at {run.total_steps:,} steps"))


def make_console() -> Console:
    """Standard output; wide enough for a table where it is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=120)

"""Progress of a run on a terminal (live, its clock ticking between calls) or as plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Reporter:
    """Says nothing; the base of those that speak. `total` and `steps` are environment steps of one member."""

    def __init__(self):
        self._members, self._total, self._steps, self._from = 1, 1, 0, 0
        self._begun = time.monotonic()
        self._rate = 0.0
        self._evaluation = ""

    def begin(self, members: int, total: int) -> None:
        """Before compilation."""
        self._members, self._total = members, total

    def trained_from(self, steps: int) -> None:
        """Compilation is over and training goes on from here."""
        self._steps, self._from, self._begun = steps, steps, time.monotonic()
        self._show()

    def advanced(self, steps: int, train_seconds: float) -> None:
        """A call is done: steps of one member so far, and the seconds of training alone that they took."""
        self._steps = steps
        self._rate = self._members * steps / max(train_seconds, 1e-9)
        self._show()

    def evaluated(self, iqm: float, steps: int) -> None:
        """An evaluation is done: the IQM over members of the greedy return."""
        self._evaluation = f"greedy return {iqm:.4g} (IQM) at {steps:,}"
        self._show()

    def note(self, text: str) -> None:
        """A line of its own."""

    def close(self) -> None:
        """The end; a live display gives the terminal back."""

    def _status(self) -> str:
        elapsed = time.monotonic() - self._begun
        done = self._steps - self._from
        left = elapsed * (self._total - self._steps) / done if done else None
        parts = [f"{self._steps:,}/{self._total:,} steps"]
        if self._rate:
            parts += [f"{self._rate:,.0f} steps/s", f"{_clock(left)} left"]
        return " · ".join([*parts, self._evaluation] if self._evaluation else parts)

    def _show(self) -> None:
        """Shows the status."""


class Lines(Reporter):
    """A line a call."""

    def __init__(self, stream: TextIO | None = None):
        super().__init__()
        self._stream = stream or sys.stderr

    def begin(self, members: int, total: int) -> None:
        super().begin(members, total)
        self.note("compiling")

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def _show(self) -> None:
        self.note(f"{self._status()} · {_clock(time.monotonic() - self._begun)} elapsed")


class Live(Reporter):
    """One line that a thread keeps redrawing, so that the time ticks while a call runs."""

    def __init__(self, console: Console):
        super().__init__()
        left, right = TextColumn("{task.description}"), TextColumn("{task.fields[status]}")
        self._progress = Progress(left, BarColumn(bar_width=24), TimeElapsedColumn(), right, console=console)
        self._task: Any = None

    def begin(self, members: int, total: int) -> None:
        super().begin(members, total)
        self._progress.start()
        self._task = self._progress.add_task("compiling", total=None, status="")

    def trained_from(self, steps: int) -> None:
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task("training", total=self._total, status="")
        super().trained_from(steps)

    def note(self, text: str) -> None:
        self._progress.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        self._progress.stop()

    def _show(self) -> None:
        self._progress.update(self._task, completed=self._steps, status=self._status())


def make_reporter(quiet: bool = False) -> Reporter:
    """The reporter that suits where standard error goes."""
    if quiet:
        return Reporter()
    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Lines()


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"

"""Ctrl-C and SIGTERM end a run between two writes; while it trains, at the end of the running call, so that it can be saved."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A run was stopped by a signal; `signum` says by which."""

    def __init__(self, signum: int):
        super().__init__(signal.Signals(signum).name)
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """130 for Ctrl-C, 143 for SIGTERM, as shells have it."""
        return 128 + self.signum


class Signals:
    """Turns the two signals into `Interrupted`: at once, after the end of a `shield`, or where a `deferred` body asks.

    A second signal does not wait for such a body. As a context manager this puts the earlier handlers back. Only the main
    thread gets signals; elsewhere it does nothing.
    """

    def __init__(self, ends_process: bool = False, say: Callable[[str], None] = lambda text: None):
        """`ends_process`: this process is the run's alone, and the second signal ends it at once, even in the middle of a call.

        `say` is told, from another thread, when the first signal is taken and waits.
        """
        self._pending: int | None = None
        self._shields = 0
        self._deferring = False
        self._count = 0
        self._before: dict[int, object] = {}
        self._watcher = _Watcher(self, say) if ends_process else None

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for signum in _SIGNALS:
                self._before[signum] = signal.signal(signum, self._handle)
            if self._watcher is not None:
                self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._before and self._watcher is not None:
            self._watcher.stop()
        for signum, handler in self._before.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]  # what signal.signal returned
        self._before = {}

    @contextlib.contextmanager
    def shield(self) -> Iterator[None]:
        """No signal interrupts the body; one that came meanwhile is raised after it."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._pending is not None and not self._shields and not self.waits:
            raise Interrupted(self._pending)

    @contextlib.contextmanager
    def deferred(self, wanted: bool = True) -> Iterator[None]:
        """The body looks for itself, by `pending` and `check`, whether a first signal has come."""
        self._deferring = wanted
        try:
            yield
        finally:
            self._deferring = False

    @property
    def pending(self) -> bool:
        """Whether a signal has come."""
        return self._pending is not None

    @property
    def waits(self) -> bool:
        """Whether the next signal, or the one that came, waits for the body that runs."""
        return self._deferring and self._count <= 1

    def check(self) -> None:
        """Raises `Interrupted` if a signal has come."""
        if self._pending is not None:
            raise Interrupted(self._pending)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        self._pending = signum  # told again by the next shield where Python swallows it, as in a callback of its collector
        self._count += 1
        if not self._shields and not self.waits:
            raise Interrupted(signum)


class _Watcher:
    """Hears signals while the main thread is inside a compiled call, where Python's handlers have to wait."""

    def __init__(self, signals: Signals, say: Callable[[str], None]):
        self._signals, self._say = signals, say
        self._before = -1
        self._ends = (-1, -1)

    def start(self) -> None:
        self._ends = os.pipe()
        os.set_blocking(self._ends[1], False)
        self._before = signal.set_wakeup_fd(self._ends[1], warn_on_full_buffer=False)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def stop(self) -> None:
        """The thread ends when the pipe does."""
        signal.set_wakeup_fd(self._before)
        os.close(self._ends[1])

    def _listen(self) -> None:
        count = 0
        while heard := os.read(self._ends[0], 1):
            if heard[0] not in _SIGNALS:
                continue
            count += 1
            name = signal.Signals(heard[0]).name
            if count > 1:
                show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a live display has hidden it
                os.write(2, f"{show_cursor}\n{name}: left at once\n".encode())
                os._exit(128 + heard[0])  # whatever is being written is whole or not there
            if self._signals.waits:
                self._say(f"{name}: the running call is finished and saved first; once more leaves at once")
        os.close(self._ends[0])

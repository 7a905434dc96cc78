"""Ctrl-C and SIGTERM end a run between two writes, so that what was logged stays whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


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
    """Turns the two signals into `Interrupted`, at once, or after the end of a `shield`.

    As a context manager it puts the earlier handlers back. Only the main thread gets signals; elsewhere it does nothing.
    """

    def __init__(self):
        self._pending: int | None = None
        self._shields = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM):
                self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
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
        if self._pending is not None and not self._shields:
            raise Interrupted(self._pending)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        self._pending = signum  # told again by the next shield where Python swallows it, as in a callback of its collector
        if not self._shields:
            raise Interrupted(signum)

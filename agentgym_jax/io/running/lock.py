"""One process writes to a run directory at a time."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from agentgym_jax.checks import ConfigError


class Lock:
    """A file that says which process writes here, locked while that process lives.

    The system gives the lock back when a process ends, however it ends, so a file that a killed process left behind is known
    to be stale. On a file system without locks nothing is guarded.
    """

    def __init__(self, path: Path):
        """Raises ConfigError, naming process and machine, when another one holds it."""
        self.path = path
        self._file = _locked(path)
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._file.flush()

    def release(self) -> None:
        """Removes the file; again does nothing."""
        if not self._file.closed:
            self.path.unlink(missing_ok=True)
            self._file.close()


def refuse_live(path: Path) -> None:
    """Raises ConfigError when a process holds the lock at `path`; a stale file is removed."""
    if path.exists():
        Lock(path).release()


def _locked(path: Path) -> IO[str]:
    while True:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115  open as long as the lock is held
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "another process"
            file.close()
            raise ConfigError(f"{path.parent} is being written by {who}; wait until it ends, or stop it") from None
        except OSError:
            return file  # no locks here
        try:
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        file.close()  # its holder removed it between our two steps

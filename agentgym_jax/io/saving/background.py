"""Writing checkpoints while training goes on: in the background, whole or not at all, and never silently not."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.saving.checkpoint import read_meta, snapshot, stored_steps, write
from agentgym_jax.io.saving.durable import sync, sync_tree

_UNFINISHED = re.compile(r"\.saving-\d+")


class SaveError(RuntimeError):
    """A checkpoint could not be written; the message is one line for a person."""


class Checkpoints:
    """The checkpoints in one folder: the last `keep` of them, and the one with the best score.

    A checkpoint is written under another name, put on the disk, and only then gets its own; older ones are removed after
    that. At most one is being written.
    """

    def __init__(self, folder: Path, keep: int = 2):
        """Makes the folder, and removes what a killed process left unfinished in it."""
        self.folder, self.keep = folder, keep
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if _UNFINISHED.match(path.name):
                shutil.rmtree(path)
        self._writer = ThreadPoolExecutor(1, "checkpoint")
        self._running: Future[None] | None = None
        self._scores = {step: _score(folder, step) for step in stored_steps(folder)}

    def save(self, step: Any, state: Any, meta: Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> None:
        """Copies `state` and `meta` and begins to write them, and the arrays `extra`, under the environment steps so far.

        `meta`: plain data; its `score` (None: unknown) says which checkpoint is the best. `extra` is not copied. Returns as
        soon as the copies are made, and waits only for the checkpoint before. Raises SaveError when that one failed,
        ValueError for a step that is no whole number.
        """
        step = _whole(step)
        self._wait()
        arrays, keys = snapshot(state)
        arrays |= extra or {}
        copied = json.loads(json.dumps({**meta, "keys": keys}, allow_nan=False))
        self._running = self._writer.submit(self._write, step, arrays, copied)

    def check(self) -> None:
        """Raises SaveError if the checkpoint that was being written has failed; does not wait."""
        if self._running is not None and self._running.done():
            self._wait()

    def close(self) -> None:
        """Waits for what is being written. Raises SaveError if that failed."""
        self._writer.shutdown()
        self._wait()

    def remove_after(self, step: int) -> None:
        """Removes the checkpoints beyond `step`, when a run goes on from there."""
        for other in [other for other in self._scores if other > step]:
            self._remove(other)

    def _wait(self) -> None:
        running, self._running = self._running, None
        if running is None or (error := running.exception()) is None:
            return
        kept = stored_steps(self.folder)
        newest = f"the newest complete one is at {kept[-1]} steps" if kept else "there is no complete one"
        raise SaveError(
            f"a checkpoint could not be written to {self.folder}: {' '.join(str(error).split())[:300]}; {newest}"
        ) from error

    def _write(self, step: int, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """In the background; any error waits in the future until the next look at it."""
        unfinished, path = self.folder / f".saving-{step}", self.folder / str(step)
        write(unfinished, arrays, meta)
        sync_tree(unfinished)
        unfinished.rename(path)
        sync(self.folder)
        self._scores[step] = meta.get("score")
        scored = {other: score for other, score in self._scores.items() if score is not None}
        kept = set(sorted(self._scores)[-self.keep :])
        kept |= {max(scored, key=lambda other: (scored[other], other))} if scored else set()
        for other in [other for other in self._scores if other not in kept]:
            self._remove(other)

    def _remove(self, step: int) -> None:
        """Under its own name a checkpoint is whole, so it loses that name first."""
        doomed = (self.folder / str(step)).rename(self.folder / f".saving-{step}")
        shutil.rmtree(doomed)
        del self._scores[step]


def _score(folder: Path, step: int) -> float | None:
    """None for one that cannot be read: it is no candidate for the best."""
    try:
        return read_meta(folder, step)["score"]
    except ConfigError:
        return None


def _whole(step: Any) -> int:
    if int(step) != step:
        raise ValueError(f"a checkpoint needs a whole number of steps, got {step}")
    return int(step)

"""Where a run writes, decided before anything compiles: nothing is overwritten, an unwritable folder is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.running.lock import refuse_live
from agentgym_jax.io.saving.durable import write_atomically


@contextlib.contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """What cannot be read, or does not hold what it should, becomes one line that names the path."""
    try:
        yield
    except ConfigError:
        raise
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path} is damaged: {type(error).__name__} {' '.join(str(error).split())[:300]}") from error


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """The files of one run."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def provenance(self) -> Path:
        return self.path / "provenance.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def evaluations(self) -> Path:
        return self.path / "evaluations.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def curve(self) -> Path:
        return self.path / "curve.png"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    def add_resumption(self, resumption: Mapping[str, Any]) -> None:
        """Appends to the list `resumptions` of provenance.json."""
        with damage_named(self.provenance):
            known = json.loads(self.provenance.read_text())
        known["resumptions"] = [*known.get("resumptions", []), dict(resumption)]
        write_atomically(self.provenance, json.dumps(known, indent=2) + "\n")

    def cpu_devices(self) -> int:
        """How many CPU devices the run had, which the same program needs again; 1 for a run elsewhere."""
        with damage_named(self.provenance):
            machine = json.loads(self.provenance.read_text())["machine"]
            return len(machine["devices"]) if machine["backend"] == "cpu" else 1

    def contents(self) -> str:
        """What is there, as one line."""
        paths = [path for path in self.path.iterdir() if path != self.lock]
        names = sorted(path.name + ("/" if path.is_dir() else "") for path in paths)
        return f"{self.path}: {', '.join(names) or 'nothing'}"


def create(out: str | Path, overwrite: bool = False) -> RunDirectory:
    """Makes the folder of a new run.

    A folder that holds anything is refused; `overwrite` moves it aside, to `<name>.old-<time>`, and deletes nothing. Raises
    ConfigError for that, when a process still writes there, and when the folder cannot be made or written.
    """
    path = Path(out)
    try:
        if path.is_dir() and any(path.iterdir()):
            if not overwrite:
                raise ConfigError(f"run directory {path} exists; choose another --out, or --overwrite to move it aside")
            refuse_live(RunDirectory(path).lock)
            path.rename(_free(path.with_name(f"{path.name}.old-{_now()}")))
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(f"run directory {path} cannot be written: {error.strerror or error}") from None
    return RunDirectory(path)


def existing(path: str | Path) -> RunDirectory:
    """The folder of a finished or interrupted run. Raises ConfigError when it is none."""
    directory = RunDirectory(Path(path))
    if not directory.path.is_dir():
        raise ConfigError(f"run directory {path} does not exist")
    for needed in (directory.config, directory.provenance, directory.checkpoints):
        if not needed.exists():
            raise ConfigError(f"{path} is not a run directory with a checkpoint: it has no {needed.name}")
    return directory


def default_path(suite: str, config: str, root: str | Path = "runs") -> Path:
    """`runs/<suite>_<config>-<time>`, with a number behind it when two runs start in one second."""
    return _free(Path(root) / f"{suite}_{config}-{_now()}")


def _now() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def _free(path: Path) -> Path:
    number, candidate = 2, path
    while candidate.exists():
        candidate, number = path.with_name(f"{path.name}-{number}"), number + 1
    return candidate

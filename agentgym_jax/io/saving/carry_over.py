"""Records of a run that goes on: without what lies beyond its checkpoint, in place or in a new directory."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.config.load import to_yaml
from agentgym_jax.io.loggers import label
from agentgym_jax.io.running.run_directory import RunDirectory
from agentgym_jax.io.saving.durable import sync, write_atomically


def cut(directory: RunDirectory, steps: int) -> None:
    """Removes the records beyond `steps` from the .jsonl files, and a last line that a crash cut off.

    One truncation a file: whoever is killed here leaves the file as it was or as it shall be.
    """
    for path in (directory.metrics, directory.evaluations):
        if path.exists():
            kept = sum(len(line) for line in _lines(path, steps))
            os.truncate(path, kept)
            sync(path)


def copy(source: RunDirectory, target: RunDirectory, steps: int, experiment: Experiment, members: Sequence[int]) -> None:
    """The configuration, provenance and records of these members up to `steps` into a new directory; see `cut`."""
    place = {member: index for index, member in enumerate(members)}
    for old, new in ((source.metrics, target.metrics), (source.evaluations, target.evaluations)):
        records = [json.loads(line) for line in _lines(old, steps)] if old.exists() else []
        kept = [{**record, "member": place[record["member"]]} for record in records if record["member"] in place]
        new.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
    for member in experiment.members:
        if (source.tensorboard / label(member)).is_dir():
            shutil.copytree(source.tensorboard / label(member), target.tensorboard / label(member))
    target.checkpoints.mkdir()
    write_atomically(target.provenance, source.provenance.read_text())
    write_atomically(target.config, to_yaml(experiment))


def _lines(path: Path, steps: int) -> list[bytes]:
    """The leading whole lines of records up to `steps`; their steps rise."""
    lines = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            if not line.endswith(b"\n") or json.loads(line)["step"] > steps:
                break
        except (ValueError, KeyError, TypeError):
            break
        lines.append(line)
    return lines

"""Event files for TensorBoard, a folder a member."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_jax.io.loggers.base import evaluation_means, label

_LENGTH, _CHECK = struct.Struct("<Q"), 4  # a record is its length, a checksum of that, its bytes and a checksum of those


class TensorBoard:
    """Scalars by member: `train/<name>` and `evaluation/<policy>/<name>`.

    `steps`: a run that goes on from there. Records beyond are taken out of the files first, so that every curve goes on with
    the next step and none is there twice.
    """

    def __init__(self, folder: Path, members: Sequence[Mapping[str, Any]], steps: int | None = None):
        from tensorboardX import SummaryWriter

        folders = [folder / label(member) for member in members]
        # The file's name has whole seconds only: two processes of one second must not write the same file.
        suffix = "" if steps is None else f".from-{steps}"
        for path in folders if steps is not None else []:
            for events in path.glob("*tfevents*"):
                truncate_events(events, steps or 0)
        self._writers = [SummaryWriter(logdir=str(path), filename_suffix=suffix) for path in folders]

    def metrics(self, index: int, member: Mapping[str, Any], step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writers[index].add_scalar(f"train/{name}", value, step)

    def evaluation(self, index: int, member: Mapping[str, Any], step: int, results: Mapping[str, Mapping[str, Any]]) -> None:
        for name, mean in evaluation_means(results).items():
            self._writers[index].add_scalar(f"evaluation/{name}", mean, step)

    def flush(self) -> None:
        for writer in self._writers:
            writer.flush()

    def close(self) -> None:
        for writer in self._writers:
            writer.close()


def truncate_events(path: Path, steps: int) -> None:
    """Rewrites an event file without the records beyond `steps` and without a last one that a crash cut off.

    A file that holds nothing else is removed, so that a second try from the same checkpoint may take its name.
    """
    from tensorboardX.proto.event_pb2 import Event

    kept, scalars = [], 0
    for record in read_events(path):
        event = Event.FromString(record[_LENGTH.size + _CHECK : -_CHECK])
        if event.step <= steps:
            kept.append(record)
            scalars += bool(event.summary.value)
    if not scalars:
        path.unlink()
        return
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(b"".join(kept))
    os.replace(new, path)


def read_events(path: Path) -> Iterator[bytes]:
    """The whole records of an event file, each with its frame."""
    data, start = path.read_bytes(), 0
    while start + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, start)
        end = start + _LENGTH.size + _CHECK + length + _CHECK
        if end > len(data):
            return
        yield data[start:end]
        start = end

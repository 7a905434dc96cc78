"""Writes that survive: a file or folder appears under its name only once all of it is on the disk."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replaces `path`: whoever reads it, at whatever moment, finds the old text or the new one, never a part."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    sync(new)
    os.replace(new, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file, or the list of names in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """`sync` for a folder and everything in it."""
    for path, _, files in os.walk(folder):
        for name in files:
            sync(Path(path) / name)
        sync(Path(path))

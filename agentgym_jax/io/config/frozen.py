"""Settings that can be hashed and compared: lists become tuples and mappings `FrozenMap`s, and back for files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


class FrozenMap(Mapping[str, Any]):
    """A read-only mapping that is hashable when its values are."""

    def __init__(self, items: Mapping[str, Any] | None = None):
        self._items = {str(name): freeze(value) for name, value in (items or {}).items()}

    def __getitem__(self, name: str) -> Any:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._items.items(), key=lambda item: item[0])))

    def __repr__(self) -> str:
        return repr(self._items)


def freeze(value: Any) -> Any:
    """`value` with lists as tuples, mappings as `FrozenMap`s and numpy numbers and arrays as Python's; the rest as it is."""
    if isinstance(value, Mapping) and not isinstance(value, FrozenMap):
        return FrozenMap(value)
    if type(value) in (list, tuple):
        return tuple(freeze(x) for x in value)
    if isinstance(value, np.ndarray | np.generic):
        return freeze(value.tolist())
    return value


def thaw(value: Any) -> Any:
    """The inverse for files: tuples as lists and mappings as dicts."""
    if isinstance(value, Mapping):
        return {name: thaw(x) for name, x in value.items()}
    if type(value) in (list, tuple):
        return [thaw(x) for x in value]
    return value

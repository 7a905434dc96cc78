"""Checks of wrappers' arguments: one clear error that names the argument and what was given."""

from __future__ import annotations

import math
from typing import Any


def whole(field: str, value: Any, least: int = 1, remark: str = "") -> int:
    """The value, a whole number of at least `least`; else ValueError. `remark` follows the number in the message."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{field} must be a whole number of at least {least}{remark}, got {value!r}")
    return value


def number(field: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """The value, a finite number in `low` … `high`; else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"{field} must be a finite number{between(low, high)}, got {value!r}")
    return float(value)


def between(low: float, high: float) -> str:
    """The range in words, to follow a noun: nothing where there is none."""
    if math.isinf(high):
        return "" if math.isinf(low) else f" of at least {low:g}"
    return f" between {low:g} and {high:g}"

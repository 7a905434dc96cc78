"""Settings as the user wrote them, turned into what the dataclasses hold; else one line with field, value and remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from agentgym_jax.checks import ConfigError, check_flag, check_whole
from envs_jax.names import nearest


def whole(field: str, value: Any, least: int = 1) -> Any:
    """`value` as an int of at least `least`; 1e6 counts as whole, 1.5 and True do not."""
    number_like = isinstance(value, int | float) and not isinstance(value, bool)
    if number_like and math.isfinite(value) and value == int(value):
        value = int(value)
    check_whole(field, value, least)
    return value


def number(field: str, value: Any) -> float:
    """`value` as a finite float."""
    try:
        result = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError):
        result = math.nan
    if not math.isfinite(result):
        raise ConfigError(f"{field}: must be a finite number, got {value!r}")
    return result


def flag(field: str, value: Any) -> bool:
    """`value`, which must be true or false."""
    check_flag(field, value)
    return value


def instance(field: str, value: Any, kind: type) -> Any:
    """`value`, which must be a `kind`."""
    if not isinstance(value, kind):
        raise ConfigError(f"{field}: must be a {kind.__name__}, got {type(value).__name__} {value!r}")
    return value


def known_keys(section: str, given: Iterable[Any], known: Iterable[str]) -> None:
    """Refuses a key that is not known, with the nearest that is."""
    known = list(known)
    for name in given:
        if name not in known:
            close = nearest(str(name), known, count=1)
            remedy = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            raise ConfigError(f"unknown key {f'{section}.' if section else ''}{name}; {remedy}")

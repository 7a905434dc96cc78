"""Checks of what a user wrote: one clear error that names the field, the value and the remedy, before anything compiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from envs_jax.names import nearest


class ConfigError(ValueError):
    """The configuration cannot be run; the message is one line for a person."""


def check_choice(field: str, value: Any, choices: Iterable[str]) -> None:
    """`value` is one of `choices`, else a `ConfigError` with the nearest."""
    choices = tuple(choices)
    if value not in choices:
        near = nearest(str(value), choices)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"{field}: {value!r} is not one of {', '.join(choices)}{hint}")


def check_whole(field: str, value: Any, least: int = 1) -> None:
    """`value` is a whole number of at least `least` that an int64 holds, else a `ConfigError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{field}: must be a whole number of at least {least}, got {value!r}")
    if value >= 2**63:
        raise ConfigError(f"{field}: must be below 2^63, got {value:.3g}")


def check_size(field: str, value: int) -> None:
    """A size of an array, or of several together, stays inside int32, else a `ConfigError`."""
    if value >= 2**31:
        raise ConfigError(f"{field}: must be below 2^31 = 2,147,483,648, got {value:,}")


def check_flag(field: str, value: Any) -> None:
    """`value` is true or false, else a `ConfigError`."""
    if not isinstance(value, bool):
        raise ConfigError(f"{field}: must be true or false, got {value!r}")


def check_divides(field: str, part: int, whole_field: str, whole: int) -> None:
    """`part` divides `whole`, else a `ConfigError` with both numbers."""
    if whole % part:
        raise ConfigError(f"{field}: {part} does not divide {whole_field} = {whole}; choose a divisor of {whole}")

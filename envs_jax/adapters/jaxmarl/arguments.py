"""Constructor arguments that are passed on to the library, which takes whatever it is given."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from envs_jax.names import unknown


def defaults(build: Callable[..., Any]) -> dict[str, Any]:
    """The arguments that a class or function takes by name, with their defaults."""
    parameters = inspect.signature(build).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}


def check_values(environment: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raises ValueError unless every given value is of the kind of its default: true or false, a whole number ≥ 1, a number."""
    for name, value in given.items():
        wanted, fits = _kind(known[name], value)
        if not fits:
            raise ValueError(f"{environment}: {name} must be {wanted}, got {value!r}")


def check_choice(environment: str, name: str, value: Any, known: Iterable[str]) -> None:
    """Raises ValueError, with the nearest of the known names, unless `value` is one of them."""
    if value not in (known := tuple(known)):
        raise unknown(f"{name} of {environment}", value, known)


def _kind(default: Any, value: Any) -> tuple[str, bool]:
    if isinstance(default, bool):
        return "true or false", isinstance(value, bool)
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if isinstance(default, int):
        return "a whole number, at least 1", number and isinstance(value, int) and value >= 1
    return "a finite number", number

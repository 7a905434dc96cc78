"""Constructor arguments of brax's classes, which take whatever they are given and fail, if at all, inside a trace."""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from envs_jax.adapters.common import check_arguments


def defaults(build: Callable[..., Any]) -> dict[str, Any]:
    """The arguments that a class takes by name, with their defaults; those with physics also take `n_frames`."""
    parameters = inspect.signature(build).parameters.values()
    own = {parameter.name: parameter.default for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
    return own | {"n_frames": 1} if "backend" in own else own


def check_values(environment: str, accepted: Mapping[str, Any], backends: tuple[str, ...], given: Mapping[str, Any]) -> None:
    """Lets pass what is of the type of its default in `accepted`.

    Raises ValueError, in one line, for a name that is not accepted, a value of another type, and a backend not in `backends`.
    """
    check_arguments(environment, [*accepted, "time_limit"], given)
    for name, value in given.items():
        if name != "backend":
            _check_type(f"{environment}: {name}", accepted[name], value)
        elif value not in backends:
            raise ValueError(f"{environment} has no backend {value!r}: it supports {', '.join(backends)}")


def _check_type(field: str, default: Any, value: Any) -> None:
    if isinstance(default, bool):
        wanted, fits = "true or false", isinstance(value, bool)
    elif isinstance(default, enum.Enum):
        values = [choice.value for choice in type(default)]
        wanted, fits = f"one of {', '.join(values)}", value in values
    elif isinstance(default, int):
        wanted, fits = "a whole number, at least 1", isinstance(value, int) and not isinstance(value, bool) and value >= 1
    elif isinstance(default, tuple):
        wanted = f"{len(default)} numbers"
        fits = isinstance(value, list | tuple) and len(value) == len(default) and all(map(_is_number, value))
    else:
        wanted, fits = "a finite number", _is_number(value) and math.isfinite(value)
    if not fits:
        raise ValueError(f"{field} must be {wanted}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)

"""Errors for unknown names that say which known name was probably meant. Imports nothing heavy."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

_MOST = 30  # known names that an error lists


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` of the known names that look most like `name`, best first; case, suite and version may be off."""
    forms: dict[str, str] = {}
    for candidate in known:
        bare = candidate.rpartition("/")[2]
        for form in (candidate, bare, bare.rpartition("-v")[0]):
            forms.setdefault(form.lower(), candidate)
    found: list[str] = []
    for form in difflib.get_close_matches(name.lower(), [form for form in forms if form], n=3 * count, cutoff=0.6):
        if forms[form] not in found:
            found.append(forms[form])
    return found[:count]


def unknown(kind: str, name: object, known: Iterable[str], remedy: str = "") -> ValueError:
    """The error for a name that nobody knows: the name, the nearest known ones (or the first thirty), and how to see more."""
    known = list(known)
    close = nearest(str(name), known)
    listed = ", ".join(known[:_MOST]) + (f" and {len(known) - _MOST} more" if len(known) > _MOST else "")
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {listed}"
    return ValueError(f"unknown {kind} {name!r}: {hint}{' ' + remedy if remedy else ''}")


def check_arguments(kind: str, function: Callable[..., Any], arguments: Iterable[str]) -> None:
    """Raises ValueError for an argument that `function` does not take by name, with the nearest, or one that is missing."""
    arguments = list(arguments)
    own = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "env")]
    known = [p.name for p in own if p.kind is not p.VAR_KEYWORD]
    for argument in arguments:
        if argument not in known and len(known) == len(own):
            raise unknown(f"argument of {kind}", argument, known) if known else ValueError(f"{kind} takes no `{argument}`")
    for parameter in own:
        if parameter.name in known and parameter.default is parameter.empty and parameter.name not in arguments:
            raise ValueError(f"{kind} needs the argument `{parameter.name}`")

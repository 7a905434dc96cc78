"""Values of a sweep: a list, an even range or random draws. Imports no jax, since members are counted before jax starts."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check

KINDS = {"range": "steps", "log_range": "steps", "uniform": "draws", "log_uniform": "draws"}
ZIP = "zip"  # the key of a sweep under which several keys go hand in hand
_MOST = 65_536
_HOW = "a list of values, {range: [0.1, 0.9], steps: 5}, log_range, or {log_uniform: [1e-4, 1e-2], draws: 8, seed: 0}, uniform"


def flat(given: Mapping[str, Any], kinds: Iterable[str] = KINDS) -> dict[str, Any]:
    """{dotted key: what stands for its values}: nested mappings, as overrides on a command line make them, become dots.

    A later key wins. What has one of `kinds`, or a size, is a range and stays.
    """
    result: dict[str, Any] = {}
    stops = {*kinds, *KINDS.values()}
    for key, value in given.items():
        if isinstance(value, Mapping) and not stops & set(value) and key != ZIP:
            result |= {f"{key}.{inner}": each for inner, each in flat(value, kinds).items()}
        else:
            result[key] = value
    return result


def values(field: str, given: Any) -> tuple[Any, ...]:
    """The values that `given` stands for, at least one.

    A list is taken as it is. `{range: [low, high], steps: n}` is n ≥ 2 numbers from low to high, both included, evenly
    spaced; `log_range` is even in the logarithm. `{uniform: [low, high], draws: n, seed: 0}` and `log_uniform` are n numbers
    drawn at random; other fields draw other numbers from the same seed. Numbers that are made here are rounded to six
    digits. Raises ConfigError for anything else.
    """
    if isinstance(given, Mapping):
        return _numbers(field, given)
    if not isinstance(given, list | tuple) or not given:
        raise ConfigError(f"{field} must be {_HOW}, got {given!r}")
    return tuple(given)


def count(given: Any) -> int:
    """How many values that will be; 1 for what `values` refuses."""
    if isinstance(given, Mapping):
        given = next((given[size] for size in ("steps", "draws") if size in given), 1)
        return int(given) if isinstance(given, int | float) and 1 <= given <= _MOST else 1
    return max(1, len(given)) if isinstance(given, list | tuple) else 1


def bounds(field: str, kind: str, given: Any) -> tuple[float, float]:
    """`[low, high]` as two finite numbers, low < high, above 0 where `kind` is of logarithms."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ConfigError(f"{field}.{kind}: must be [low, high], got {given!r}")
    low, high = (check.number(f"{field}.{kind}", value) for value in given)
    if low >= high:
        raise ConfigError(f"{field}.{kind}: low must be below high, got [{low:g}, {high:g}]")
    if kind.startswith("log_") and low <= 0:
        raise ConfigError(f"{field}.{kind}: both ends must be above 0, got [{low:g}, {high:g}]")
    return low, high


def _numbers(field: str, given: Mapping[str, Any]) -> tuple[float, ...]:
    kinds = [name for name in given if name in KINDS]
    if len(kinds) != 1:
        other = [name for name in given if name not in (*KINDS, *KINDS.values(), "seed")]
        raise ConfigError(f"{field}{f': unknown kind {other[0]};' if other else ''} must be {_HOW}, got {dict(given)}")
    (kind,) = kinds
    size = KINDS[kind]
    check.known_keys(field, given, [kind, size] + (["seed"] if size == "draws" else []))
    if size not in given:
        raise ConfigError(f"{field}: {kind} needs `{size}`, how many numbers; got {dict(given)}")
    number = check.whole(f"{field}.{size}", given[size], least=2 if size == "steps" else 1)
    if number > _MOST:
        raise ConfigError(f"{field}.{size}: must be at most {_MOST:,}, got {number:,}")
    low, high = bounds(field, kind, given[kind])
    if kind.startswith("log_"):
        low, high = np.log(low), np.log(high)
    if size == "steps":
        numbers = np.linspace(low, high, number)
    else:
        seed = check.whole(f"{field}.seed", given.get("seed", 0), least=0)
        numbers = np.random.default_rng([seed, zlib.crc32(field.encode())]).uniform(low, high, number)
    if kind.startswith("log_"):
        numbers = np.exp(numbers)
    return tuple(float(f"{x:.6g}") for x in numbers)

"""Seeds: a count or a list. Imports no jax, since the command line counts members before jax starts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.config import check
from agentgym_jax.io.sweeps import ranges

_LARGEST = 2**31 - 1
_MOST = 65_536  # members are kept apart one by one on the host


def as_seeds(seeds: Any) -> tuple[int, ...]:
    """A count n as (0, …, n − 1), a list as it is. Raises ConfigError for none, doubles and what is no seed."""
    if hasattr(seeds, "tolist"):
        seeds = seeds.tolist()
    if not isinstance(seeds, list | tuple):
        if check.whole("seeds", seeds) > _MOST:
            raise ConfigError(f"seeds: must be at most {_MOST:,} of them, got {seeds}")
        return tuple(range(check.whole("seeds", seeds)))
    result = tuple(check.whole("seeds", seed, least=0) for seed in seeds)
    if not result:
        raise ConfigError("seeds: at least one is needed")
    doubles = sorted({seed for seed in result if result.count(seed) > 1})
    if doubles:
        raise ConfigError(f"seeds: must differ, {', '.join(map(str, doubles))} came more than once")
    if max(result) > _LARGEST:
        raise ConfigError(f"seeds: must be at most {_LARGEST}, got {max(result)}")
    return result


def parse_seeds(text: str) -> int | list[int]:
    """`16` as a count, `3,7,9` as a list; a comma behind a single number makes a list of one."""
    if not re.fullmatch(r"[0-9]+(,[0-9]+)*,?", text):
        raise ConfigError(f"--seeds: must be a count (16) or a list (3,7,9), got {text!r}")
    return [int(seed) for seed in text.strip(",").split(",")] if "," in text else int(text)


def count_members(plain: Mapping[str, Any]) -> int:
    """Members that an experiment file asks for: seeds × swept points. What is malformed counts as one and is refused later."""
    seeds, sweep = plain.get("seeds", 1), plain.get("sweep")
    given = ranges.flat(sweep) if isinstance(sweep, Mapping) else {}
    together = given.pop(ranges.ZIP, None)
    counts = [ranges.count(values) for values in given.values()]
    counts += [ranges.count(values) for values in list(together.values())[:1]] if isinstance(together, Mapping) else []
    count = len(seeds) if isinstance(seeds, list) else seeds if isinstance(seeds, int | float) else 1
    count = count if 1 <= count <= _MOST else 1
    return int(count) * math.prod(counts)


def wanted_devices(plain: Mapping[str, Any], cores: int) -> int:
    """Virtual CPU devices that serve an experiment file: one for every core, or as many as its members use."""
    train = plain.get("train")
    shards = train.get("shards", 1) if isinstance(train, Mapping) else 1
    shards = int(shards) if isinstance(shards, int) and 1 <= shards <= _MOST else 1
    return max(shards, min(cores // shards, count_members(plain)) * shards)

"""What a run needs of the memory that there is, and the population that fits into it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax

from agentgym_jax.io.running.assemble import Assembly
from agentgym_jax.training.blocks import Blocks
from agentgym_jax.training.footprint import Footprint, footprint, in_words
from agentgym_jax.training.parallel import Population

_PART = 0.8  # of the free memory is used; programs and transfers want the rest


def make_population(assembly: Assembly, programs: Any = None) -> tuple[Population | Blocks, str]:
    """The population of an experiment, in blocks where it asks for them or would not fit, and a line on its memory.

    `programs` {size: programs of a population}: what was compiled for the same loop, see `Population`.
    """
    programs = {} if programs is None else programs
    train, size = assembly.experiment.train, len(assembly.experiment.members)
    keys, hypers = assembly.member_inputs()
    each = footprint(assembly.loop, *jax.tree.map(lambda x: x[0], (keys, hypers)))
    population = Population(assembly.loop, size, train.population)
    free = free_bytes(population.devices[0])
    block = min(train.block or _most_at_a_time(population, each, free), size)
    line = f"memory: about {in_words(each.state)} a member"
    if block < size:
        population = Population(assembly.loop, block, train.population, programs=programs.setdefault(block, {}))
        whole = Blocks(population, size)
        line += f", {block} of {size} members at a time"
    else:
        whole = population = Population(assembly.loop, size, train.population, programs=programs.setdefault(size, {}))
    needed = bytes_needed(population, each)
    if free is not None:
        line += f", {in_words(needed)} on {_where(population)}, which has {in_words(free)} free"
        line += ": it will hardly fit; use fewer members, environments or a smaller memory" if needed > free else ""
    return whole, line


def bytes_needed(population: Population, each: Footprint) -> int:
    """Bytes of one accelerator, or of all virtual CPU devices together, since they share theirs."""
    at_once = population.rows if population.mode == "vmap" else 1
    return each.of(population.rows, at_once) * (len(population.devices) if _is_cpu(population) else 1)


def free_bytes(device: Any) -> int | None:
    """Memory that a device could still give, in bytes; of the whole machine for CPU devices. None where it is not told."""
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0) if "bytes_limit" in stats else None
    known = Path("/proc/meminfo")
    if known.exists():
        lines = dict(line.split(":", 1) for line in known.read_text().splitlines() if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    if "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _most_at_a_time(population: Population, each: Footprint, free: int | None) -> int:
    """All members, or halves of them until they fit; on CPU always all, since those who wait wait in the same memory."""
    rows = population.rows
    while free is not None and rows > 1 and not _is_cpu(population):
        if each.of(rows, rows if population.mode == "vmap" else 1) <= _PART * free:
            break
        rows = -(-rows // 2)
    return rows * population.groups


def _is_cpu(population: Population) -> bool:
    return population.devices[0].platform == "cpu"


def _where(population: Population) -> str:
    return "this machine" if _is_cpu(population) else f"each {population.devices[0].device_kind}"

"""Compiled programs that later runs of a process use again: what differs in numbers and seeds alone is compiled once."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from agentgym_jax.algorithms.registry import get_algorithm
from agentgym_jax.io.config.experiment import Experiment
from agentgym_jax.io.running.assemble import Assembly, assemble
from agentgym_jax.io.sweeps import varied as sweep
from agentgym_jax.ops.schedules import as_hyper
from envs_jax.core import Env

_MOST = 8  # kept at a time, the one used longest ago goes first
# What jax takes into account when it traces, and a compiled program therefore holds.
_OPTIONS = (
    "jax_enable_x64", "jax_default_matmul_precision", "jax_default_prng_impl", "jax_threefry_partitionable",
    "jax_numpy_rank_promotion", "jax_numpy_dtype_promotion", "jax_debug_nans", "jax_disable_jit",
)  # fmt: skip


class Parts(NamedTuple):
    """What a run is made of."""

    assembly: Assembly
    programs: dict[int, dict[str, Any]]  # {size of a population: its compiled programs}; empty before the first compilation
    traces: list[None]  # grows with every trace of `advance` that this run causes
    told: list[list[None]]  # holds the `traces` of the newest run, whom a trace is told


_kept: OrderedDict[Any, Parts] = OrderedDict()


def parts(experiment: Experiment) -> Parts:
    """The parts of an experiment, with the programs of an earlier run that had the same in everything static.

    Static is all but numbers, seeds and what is logged; the number of members counts, since it is a shape. Objects of Python
    (an `Env`, models) are the same when they are the same objects. Raises what `assemble` raises.
    """
    key = static_key(experiment) if isinstance(experiment, Experiment) else None
    kept = None if key is None else _kept.get(key)
    if kept is not None and any(kept.programs.values()):
        _kept.move_to_end(key)
        kept.told[0] = []
        return kept._replace(assembly=_with_numbers(kept.assembly, experiment), traces=kept.told[0])
    told: list[list[None]] = [[]]
    made = Parts(assemble(experiment, on_trace=lambda: told[0].append(None)), {}, told[0], told)
    if key is not None:
        _kept[key] = made
        _kept.move_to_end(key)
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    return made


def forget() -> None:
    """Drops all programs that are kept."""
    _kept.clear()


def _with_numbers(assembly: Assembly, experiment: Experiment) -> Assembly:
    hypers = tuple(as_hyper(sweep.at_point(experiment.hyper, point)) for point in experiment.points)
    return dataclasses.replace(assembly, experiment=experiment, hyper=as_hyper(experiment.hyper), hypers=hypers)


def static_key(experiment: Experiment) -> Any:
    """Everything about an experiment that its compiled programs depend on; None where that cannot be hashed."""
    key = (
        get_algorithm(experiment.name).make,
        tuple(_told_apart(getattr(experiment, name)) for name in ("env", "name", "algorithm", "network", "train", "eval")),
        jax.tree.structure(experiment.hyper),
        tuple(sweep.static_keys(experiment.sweep, experiment.hyper)),
        len(experiment.members),
        tuple(str(getattr(jax.config, name, None)) for name in _OPTIONS),
        tuple(jax.local_devices()),
    )
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _told_apart(value: Any) -> Any:
    """`value` with types, since 1, 1.0 and true are three settings, and environments by identity."""
    if isinstance(value, Env):
        return type(value), id(value)
    if isinstance(value, Mapping):
        return tuple((name, _told_apart(each)) for name, each in sorted(value.items()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), tuple(_told_apart(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, list | tuple):
        return tuple(_told_apart(each) for each in value)
    return type(value), value

"""Checkpoints: a state as named arrays in host order, and JSON beside them, by orbax; checked when they are read.

There is no layout of devices in it, so another machine can read it, and no code. PRNG keys are stored as their data with the
name of their generator, and become keys again. Every array has a checksum, and so has the JSON.
"""

from __future__ import annotations

import json
import logging
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
import orbax.checkpoint as ocp

from agentgym_jax.checks import ConfigError
from agentgym_jax.types import Best, TrainState

FORMAT = 2
STATE = "state"  # with this begin the names of a state's arrays
OPTIONAL: Mapping[str, Any] = {"score": None, "seconds": {}, "program": {}}  # of the JSON: a default and a warning without it
_CHECKSUM = "checksum"
_T = TypeVar("_T")


class Checkpoint(NamedTuple):
    """One that was read and is whole."""

    path: Path
    step: int  # environment steps of one member
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def state(self, template: TrainState) -> TrainState:
        """The state, leaves [P, ...] on the host, in the structure of `template` (arrays or their shapes).

        A checkpoint without `best`, which evaluations alone write, gets that of a run that was never evaluated, and a warning.
        Raises ConfigError, naming the array, when something does not fit.
        """
        if any(name.startswith(f"{STATE}.best") for name in self.arrays):
            return self.fit(template, STATE)
        warnings.warn(f"checkpoint {self.path} has no best policy; the present one is taken for it", stacklevel=2)
        state = self.fit(template.replace(best=()), STATE)
        score: Any = np.full(template.best.score.shape, -np.inf, template.best.score.dtype)
        return state.replace(best=Best(score, jax.tree.map(lambda x: x.copy(), state.learner)))

    def fit(self, template: Any, name: str = "") -> Any:
        """The arrays whose names begin with `name`, as host arrays in the structure of `template`; see `state`."""
        wanted, keys = named_leaves(template, name), self.meta["keys"]
        for stored in self.arrays:
            if stored.startswith(name) and stored not in wanted:
                raise ConfigError(f"checkpoint {self.path} has {stored}, which this experiment's state has not")
        fitted = [self._fit(leaf, shape, keys.get(leaf)) for leaf, shape in wanted.items()]
        return jax.tree.unflatten(jax.tree.structure(template), fitted)

    def _fit(self, name: str, leaf: Any, key_impl: str | None) -> Any:
        """A stored array as the leaf that a template wants; `key_impl` names the PRNG of a key."""
        array = self.arrays.get(name)
        shape = jax.eval_shape(jax.random.key_data, leaf) if is_key(leaf) else leaf
        if array is None and int(np.prod(shape.shape)) == 0:
            array = np.zeros(shape.shape, shape.dtype)  # orbax stores nothing for an array without elements
        if array is None:
            raise ConfigError(f"checkpoint {self.path} has no {name}, which this experiment's state needs")
        if array.shape != shape.shape or array.dtype != shape.dtype:
            stored, wanted = (f"{x.dtype}{list(x.shape)}" for x in (array, shape))
            raise ConfigError(f"checkpoint {self.path}: {name} is {stored} there, this experiment needs {wanted}")
        return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=key_impl) if is_key(leaf) else array


# ---- reading


def stored_steps(folder: Path) -> list[int]:
    """The steps of all complete checkpoints in a folder, rising; what a killed process was still writing is not among them."""
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit()) if folder.is_dir() else []


def newest(folder: Path, use: Callable[[Checkpoint], _T], step: int | None = None) -> _T:
    """`use(checkpoint)` of the newest checkpoint, or of the one at `step`.

    Raises ConfigError where there is none, or where it is damaged or `use` refuses it: in one line, which names the newest
    one that is good.
    """
    steps = stored_steps(folder)
    if not steps:
        raise ConfigError(f"{folder} holds no complete checkpoint")
    if step is not None and step not in steps:
        raise ConfigError(f"{folder} has no checkpoint at {step} steps; it has {', '.join(map(str, steps))}")
    chosen = steps[-1] if step is None else step
    try:
        return use(read(folder, chosen))
    except ConfigError as error:
        for other in (x for x in reversed(steps) if x != chosen):
            if _good(folder, other, use):
                offer = f"the newest good one is at {other} steps: agentgym resume {folder.parent} --from {other}"
                raise ConfigError(f"{error}; {offer}") from None
        raise ConfigError(f"{error}; there is no other good one") from None


def _good(folder: Path, step: int, use: Callable[[Checkpoint], Any]) -> bool:
    try:
        use(read(folder, step))
    except ConfigError:
        return False
    return True


def read(folder: Path, step: int) -> Checkpoint:
    """The checkpoint at these steps, every checksum compared. Raises ConfigError, in one line, for a damaged or foreign one."""
    path = (folder / str(step)).absolute()
    quieten()
    meta = read_meta(folder, step)
    try:
        arguments = {name: ocp.RestoreArgs(restore_type=np.ndarray) for name in meta["arrays"]}
        which = ocp.args.Composite(state=ocp.args.PyTreeRestore(restore_args=arguments))
        arrays = _orbax().restore(path, args=which)["state"]
        damaged = [name for name, known in meta["arrays"].items() if checksum(arrays[name]) != known]
    except Exception as error:  # whatever orbax and tensorstore make of broken files
        raise ConfigError(f"checkpoint {path} is damaged: {_short(error)}") from error
    if damaged:
        raise ConfigError(f"checkpoint {path} is damaged: {damaged[0]} is not what was written")
    return Checkpoint(path, step, meta, arrays)


def read_meta(folder: Path, step: int) -> dict[str, Any]:
    """What is stored beside the arrays. Raises ConfigError for a damaged one and for another version of the format."""
    path = (folder / str(step)).absolute()
    try:
        meta = dict(_orbax().restore(path, args=ocp.args.Composite(meta=ocp.args.JsonRestore()))["meta"])
        version, known = meta["format"], meta.pop(_CHECKSUM, None)
    except Exception as error:
        raise ConfigError(f"checkpoint {path} is damaged: {_short(error)}") from error
    if version != FORMAT:
        raise ConfigError(f"checkpoint {path} has format {version}, this version of agentgym_jax reads {FORMAT}")
    if known != _json_checksum(meta):
        raise ConfigError(f"checkpoint {path} is damaged: its description is not what was written")
    for name, default in OPTIONAL.items():
        if name not in meta:
            warnings.warn(f"checkpoint {path} has no {name!r}; {default!r} is taken for it", stacklevel=2)
            meta[name] = default
    return meta


def _short(error: Exception) -> str:
    return f"{type(error).__name__} {' '.join(str(error).split())[:200]}"


# ---- writing


def snapshot(state: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Copies of the leaves of a tree by name, which nobody else writes to, and the generators of those that are keys."""
    leaves = named_leaves(state, STATE)
    keys = {name: str(jax.random.key_impl(x)) for name, x in leaves.items() if is_key(x)}
    return {name: np.array(jax.random.key_data(x) if name in keys else x) for name, x in leaves.items() if x.size}, keys


def write(path: Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Writes the files of a checkpoint into the new folder `path`."""
    quieten()
    sums = {name: checksum(array) for name, array in arrays.items()}
    sealed = seal({**meta, "format": FORMAT, "arrays": sums})
    _orbax().save(
        path.absolute(), args=ocp.args.Composite(state=ocp.args.PyTreeSave(dict(arrays)), meta=ocp.args.JsonSave(sealed))
    )


def seal(meta: Mapping[str, Any]) -> dict[str, Any]:
    """`meta` with its own checksum."""
    return {**meta, _CHECKSUM: _json_checksum(meta)}


def checksum(array: np.ndarray) -> int:
    """Of an array's bytes."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _json_checksum(meta: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(meta, sort_keys=True, allow_nan=False).encode())


def _orbax() -> ocp.Checkpointer:
    return ocp.Checkpointer(ocp.CompositeCheckpointHandler())


def quieten() -> None:
    """Orbax comments on its own defaults."""
    logging.getLogger("absl").setLevel(logging.ERROR)


# ---- names


def named_leaves(tree: Any, name: str = "") -> dict[str, Any]:
    """Every leaf by its path, behind `name`."""
    return {name + jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a typed PRNG key."""
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)

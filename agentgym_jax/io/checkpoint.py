"""Checkpoints: the whole train state, the iteration, the resolved config, the provenance and a format version, by orbax.

A state is stored as named arrays in host order, without the layout of devices, so that another machine can read it. PRNG keys
are stored as their data and become keys again on the template.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from agentgym_jax.checks import ConfigError

FORMAT = 1


class Checkpoints:
    """The checkpoints in one folder; writing goes on in the background, the newest complete one is kept."""

    def __init__(self, folder: Path, read_only: bool = False):
        logging.getLogger("absl").setLevel(logging.ERROR)  # orbax comments on its own defaults
        options = ocp.CheckpointManagerOptions(read_only=read_only, create=not read_only, max_to_keep=None if read_only else 1)
        self._manager = ocp.CheckpointManager(folder.absolute(), options=options)

    def save(self, step: int, state: Any, meta: dict[str, Any]) -> None:
        """Stores `state` under the environment steps so far. Raises what went wrong with the previous one, if anything did."""
        self._manager.wait_until_finished()
        self._manager.check_for_errors()
        leaves = named_leaves(state)
        keys = {name: str(jax.random.key_impl(x)) for name, x in leaves.items() if is_key(x)}
        arrays = {name: np.asarray(jax.random.key_data(x) if name in keys else x) for name, x in leaves.items() if x.size}
        meta = {"format": FORMAT, "arrays": sorted(arrays), "keys": keys, **meta}
        self._manager.save(
            int(step), args=ocp.args.Composite(state=ocp.args.PyTreeSave(arrays), meta=ocp.args.JsonSave(meta)), force=True
        )

    def meta(self) -> dict[str, Any]:
        """What was stored beside the newest state. Raises ConfigError when there is none or its format is newer than this."""
        meta = self._manager.restore(self._newest(), args=ocp.args.Composite(meta=ocp.args.JsonRestore()))["meta"]
        if meta.get("format", 0) > FORMAT:
            raise ConfigError(f"the checkpoint has format {meta['format']}, newer than {FORMAT}; update agentgym_jax")
        return meta

    def restore(self, template: Any) -> Any:
        """The newest state as host arrays, in the structure of `template` (arrays, or shapes as from `jax.eval_shape`).

        Raises ConfigError, naming the array, when it does not fit the template.
        """
        wanted, meta = named_leaves(template), self.meta()
        arguments = {name: ocp.RestoreArgs(restore_type=np.ndarray) for name in meta["arrays"]}
        for name in arguments:
            if name not in wanted:
                raise ConfigError(f"the checkpoint has {name}, which this experiment's state has not")
        which = ocp.args.Composite(state=ocp.args.PyTreeRestore(restore_args=arguments))
        arrays = self._manager.restore(self._newest(), args=which)["state"]
        fitted = [_fit(name, arrays.get(name), leaf, meta["keys"].get(name)) for name, leaf in wanted.items()]
        return jax.tree.unflatten(jax.tree.structure(template), fitted)

    def close(self) -> None:
        """Waits for what is being written, and raises if that failed."""
        self._manager.wait_until_finished()
        self._manager.check_for_errors()
        self._manager.close()

    def _newest(self) -> int:
        step = self._manager.latest_step()
        if step is None:
            raise ConfigError(f"{self._manager.directory} holds no complete checkpoint")
        return step


def named_leaves(tree: Any) -> dict[str, Any]:
    """Every leaf by its path."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a typed PRNG key."""
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _fit(name: str, array: np.ndarray | None, leaf: Any, key_impl: str | None) -> Any:
    """A stored array as the leaf that the template wants; `key_impl` names the PRNG of a key."""
    shape = jax.eval_shape(jax.random.key_data, leaf) if is_key(leaf) else leaf
    if array is None and int(np.prod(shape.shape)) == 0:
        array = np.zeros(shape.shape, shape.dtype)  # orbax stores nothing for an array without elements
    if array is None:
        raise ConfigError(f"the checkpoint has no {name}, which this experiment's state needs")
    if array.shape != shape.shape or array.dtype != shape.dtype:
        stored, wanted = (f"{x.dtype}{list(x.shape)}" for x in (array, shape))
        raise ConfigError(f"{name} is {stored} in the checkpoint, this experiment needs {wanted}")
    return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=key_impl) if is_key(leaf) else array

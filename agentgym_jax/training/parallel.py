"""A population over devices. The only file that knows `pmap`.

P members are split over G groups of devices, ⌈P / G⌉ on each, without any communication between groups; a population that
does not divide is padded with copies of its last member, which are dropped again. A group is one device, or `loop.shards`
that share the environments of each of its members and hold the same learner. Everything on devices has the layout
[D, ⌈P / G⌉, ...], a group's devices side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.checks import ConfigError
from agentgym_jax.training.loop import Loop
from agentgym_jax.training.population import over_members, resolve_mode
from agentgym_jax.types import Across, Clock, TrainState

_AXIS = "devices"


def across_devices(shards: int) -> Across:
    """The reductions of a loop whose members have their environments on `shards` devices; inside `Population` alone."""
    if shards == 1:
        return Across()

    def groups() -> list[list[int]] | None:
        count = jax.lax.axis_size(_AXIS)
        return None if count == shards else np.arange(count).reshape(-1, shards).tolist()

    return Across(
        mean=lambda x: jax.lax.pmean(x, _AXIS, axis_index_groups=groups()),
        max=lambda x: jax.lax.pmax(x, _AXIS, axis_index_groups=groups()),
        size=shards,
        index=lambda: jax.lax.axis_index(_AXIS) % shards,
    )


def host_order(tree: Any, groups: int, shards: int, size: int) -> Any:
    """Leaves [D, rows, ...] as those of `size` members, [P, ...]: devices that share a member all hold its learner.

    In a `TrainState` their parts of the environments are put together again, and those of the memory laid side by side,
    [P, shards, ...].
    """

    def first(x: Any) -> Any:
        x = x.reshape(groups, shards, *x.shape[1:])[:, 0]
        return x.reshape(-1, *x.shape[2:])[:size]

    def every(x: Any) -> Any:
        x = x.reshape(groups, shards, *x.shape[1:]).swapaxes(1, 2)
        return x.reshape(-1, *x.shape[2:])[:size]

    if not isinstance(tree, TrainState) or shards == 1:
        return jax.tree.map(first, tree)
    actor = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[3:]), jax.tree.map(every, tree.actor))
    rest = jax.tree.map(first, tree.replace(actor=(), memory=()))
    return rest.replace(actor=actor, memory=jax.tree.map(every, tree.memory))


def state_shapes(loop: Loop, keys: Any, hyper: Any) -> TrainState:
    """Shapes and dtypes of the states of all members in host order, from `keys` and `hyper` [P, ...]; nothing is run."""
    size, shapes = jax.tree.leaves(hyper)[0].shape[0], shapes_on_devices(loop, jax.vmap(loop.init), keys, hyper)
    return jax.eval_shape(lambda tree: host_order(tree, 1, loop.shards, size), shapes)


def shapes_on_devices(loop: Loop, function: Callable[..., Any], *args: Any) -> Any:
    """Shapes of what a function gives on the devices that share a member, [shards, ...]; nothing is run."""
    return jax.eval_shape(_on_every_device(loop, function), *args)


def jaxpr_on_devices(loop: Loop, function: Callable[..., Any], *args: Any) -> Any:
    """The operations of a function on one of the devices that share a member; nothing is run."""
    return jax.make_jaxpr(_on_every_device(loop, function))(*args).jaxpr


def _on_every_device(loop: Loop, function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.vmap(function, in_axes=None, axis_name=_AXIS, axis_size=loop.shards)


def _on_host(x: jax.Array) -> Any:
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        data: Any = np.asarray(jax.random.key_data(x))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
    return np.asarray(jax.device_get(x))


class Population:
    """P members of one loop, compiled for the devices that carry them.

    The two programs `advance` and `evaluate` and the small `init` are compiled ahead of time by `compile`. `advance` and
    `evaluate` take over the states they are given (their buffers are donated): use the returned ones.
    """

    def __init__(
        self,
        loop: Loop,
        size: int,
        mode: str = "auto",
        devices: Sequence[Any] | None = None,
        programs: dict[str, Callable[..., Any]] | None = None,
    ):
        """`devices`: at most this many are used, one member or more on each group; default all local ones.

        `programs`: where the compiled programs are kept; those of a population that was made with the same arguments serve
        this one too, and nothing is compiled again.

        Raises ConfigError where there are fewer devices than share a member.
        """
        devices = list(devices or jax.local_devices())
        self.loop, self.size = loop, size
        self.mode = resolve_mode(mode, devices[0].platform)
        if self.mode == "vmap" and devices[0].platform == "cpu":
            devices = devices[:1]  # vmapped training on several virtual CPU devices can hang whatever the flags
        if len(devices) < loop.shards:
            raise ConfigError(f"train.shards: {loop.shards} devices are to share a member, but there are {len(devices)}")
        self.groups = max(1, min(len(devices) // loop.shards, size))
        self.devices = devices[: self.groups * loop.shards]
        self.rows = -(-size // self.groups)
        self._programs = {} if programs is None else programs

    # ---- layout

    def place(self, tree: Any) -> Any:
        """Leaves [P, ...] in host order onto the devices, [D, ⌈P / G⌉, ...].

        Of a `TrainState` every device gets its own part of the environments, and of the memory, which is [P, shards, ...].
        """
        shards = self.loop.shards
        index = np.minimum(np.arange(self.groups * self.rows), self.size - 1).reshape(self.groups, self.rows)

        def copied(x: Any) -> Any:
            return np.repeat(x[index], shards, axis=0)

        def dealt(x: Any) -> Any:  # [P, shards, ...] -> a part for every device
            x = np.swapaxes(x[index], 1, 2)
            return x.reshape(-1, *x.shape[2:])

        def cut(x: Any) -> Any:  # [P, N, ...] -> [P, shards, N / shards, ...]
            return x.reshape(x.shape[0], shards, -1, *x.shape[2:])

        if not isinstance(tree, TrainState) or shards == 1:
            return self._shard(tree, copied)
        actor, memory = self._shard(tree.actor, lambda x: dealt(cut(x))), self._shard(tree.memory, dealt)
        return self._shard(tree.replace(actor=(), memory=()), copied).replace(actor=actor, memory=memory)

    def members(self, tree: Any) -> Any:
        """Leaves [D, ⌈P / G⌉, ...] back in host order without the padding, [P, ...], on the host; the inverse of `place`."""
        return host_order(jax.tree.map(_on_host, tree), self.groups, self.loop.shards, self.size)

    def clock(self, iteration: int, total: int) -> Clock:
        """The clock on every device: an unmapped argument would be a transfer in every call."""
        count = len(self.devices)
        return self._shard(Clock(np.full(count, iteration, np.int32), np.full(count, total, np.int32)))

    def round(self, number: int) -> jax.Array:
        """The evaluation round on every device."""
        return self._shard(np.full(len(self.devices), number, np.int32))

    def _shard(self, tree: Any, layout: Callable[[Any], Any] = lambda x: x) -> Any:
        """Every leaf as `layout` arranges it on the host, [D, ...], and from there straight to the devices."""
        mesh = jax.make_mesh((len(self.devices),), (_AXIS,), devices=self.devices)
        sharding = jax.NamedSharding(mesh, jax.P(_AXIS))

        def leaf(x: Any) -> jax.Array:
            if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(leaf(jax.random.key_data(x)), impl=jax.random.key_impl(x))
            return jax.device_put(layout(np.asarray(x)), sharding)

        return jax.tree.map(leaf, tree)

    # ---- programs

    def compile(self, keys: Any, hyper: Any) -> float:
        """Compiles init, advance and evaluate for placed `keys` and `hyper`; returns the seconds, 0 where they exist."""
        if self._programs:
            return 0.0
        begun = time.perf_counter()
        loop, clock, number = self.loop, self.clock(0, 1), self.round(0)
        init = self._map(lambda each, _: loop.init(*each), has_state=False)
        advance = self._map(loop.advance)
        evaluate = self._map(loop.evaluate)
        lowered = init.lower((keys, hyper), clock)
        states = lowered.out_info
        self._programs |= {
            "init": lowered.compile(),
            "advance": advance.lower(states, hyper, clock).compile(),
            "evaluate": evaluate.lower(states, hyper, number).compile(),
        }
        return time.perf_counter() - begun

    def _map(self, function: Callable[..., Any], has_state: bool = True) -> Any:
        mapped = over_members(function, self.mode, has_state)
        return jax.pmap(mapped, axis_name=_AXIS, devices=self.devices, donate_argnums=(0,) if has_state else ())

    def init(self, keys: Any, hyper: Any) -> Any:
        """The states of all members, warm-up done, from placed `keys` and `hyper`."""
        return self._programs["init"]((keys, hyper), self.clock(0, 1))

    def advance(self, states: Any, hyper: Any, clock: Clock) -> tuple[Any, dict[str, jax.Array]]:
        """K iterations of every member: the new states, and curves [D, ⌈P / G⌉, K]."""
        return self._programs["advance"](states, hyper, clock)

    def evaluate(self, states: Any, hyper: Any, number: jax.Array) -> tuple[Any, Any]:
        """One evaluation round of every member (see `Loop`): the new states, and results [D, ⌈P / G⌉, E]."""
        return self._programs["evaluate"](states, hyper, number)

"""A population over devices. The only file that knows `pmap`.

P members are split over D devices, ⌈P / D⌉ on each, without any communication; a population that does not divide is padded
with copies of its last member, which are dropped again. Everything on devices has the layout [D, ⌈P / D⌉, ...].
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from agentgym_jax.training.loop import Loop
from agentgym_jax.training.population import over_members, resolve_mode
from agentgym_jax.types import Clock

_AXIS = "devices"


class Population:
    """P members of one loop, compiled for the devices that carry them.

    The two programs `advance` and `evaluate` and the small `init` are compiled ahead of time by `compile`. `advance` and
    `evaluate` take over the states they are given (their buffers are donated): use the returned ones.
    """

    def __init__(self, loop: Loop, size: int, mode: str = "auto", devices: Sequence[Any] | None = None):
        """`devices`: at most this many are used, one member or more on each; default all local ones."""
        devices = list(devices or jax.local_devices())
        self.loop, self.size = loop, size
        self.mode = resolve_mode(mode, devices[0].platform)
        if self.mode == "vmap" and devices[0].platform == "cpu":
            devices = devices[:1]  # vmapped training on several virtual CPU devices can hang whatever the flags
        self.devices = devices[: max(1, min(len(devices), size))]
        self.rows = -(-size // len(self.devices))
        self._programs: dict[str, Callable[..., Any]] = {}

    # ---- layout

    def place(self, tree: Any) -> Any:
        """Leaves [P, ...] in host order onto the devices, [D, ⌈P / D⌉, ...]."""
        index = np.minimum(np.arange(len(self.devices) * self.rows), self.size - 1).reshape(len(self.devices), self.rows)
        return self._shard(jax.tree.map(lambda x: jnp.asarray(x)[index], tree))

    def members(self, tree: Any) -> Any:
        """Leaves [D, ⌈P / D⌉, ...] back in host order without the padding, [P, ...], on the host."""

        def leaf(x):
            if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
                data = leaf(jax.random.key_data(x))
                return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
            host = np.asarray(jax.device_get(x))
            return host.reshape(-1, *host.shape[2:])[: self.size]

        return jax.tree.map(leaf, tree)

    def clock(self, iteration: int, total: int) -> Clock:
        """The clock on every device: an unmapped argument would be a transfer in every call."""
        count = len(self.devices)
        return self._shard(Clock(jnp.full(count, iteration, jnp.int32), jnp.full(count, total, jnp.int32)))

    def round(self, number: int) -> jax.Array:
        """The evaluation round on every device."""
        return self._shard(jnp.full(len(self.devices), number, jnp.int32))

    def _shard(self, tree: Any) -> Any:
        mesh = jax.make_mesh((len(self.devices),), (_AXIS,), devices=self.devices)
        sharding = jax.NamedSharding(mesh, jax.P(_AXIS))
        return jax.tree.map(lambda x: jax.device_put(x, sharding), tree)

    # ---- programs

    def compile(self, keys: Any, hyper: Any) -> float:
        """Compiles init, advance and evaluate for placed `keys` and `hyper`; returns the seconds it took."""
        begun = time.perf_counter()
        loop, clock, number = self.loop, self.clock(0, 1), self.round(0)
        init = self._map(lambda each, _: loop.init(*each), has_state=False)
        advance = self._map(loop.advance)
        evaluate = self._map(loop.evaluate)
        lowered = init.lower((keys, hyper), clock)
        states = lowered.out_info
        self._programs["init"] = lowered.compile()
        self._programs["advance"] = advance.lower(states, hyper, clock).compile()
        self._programs["evaluate"] = evaluate.lower(states, hyper, number).compile()
        return time.perf_counter() - begun

    def _map(self, function: Callable[..., Any], has_state: bool = True) -> Any:
        mapped = over_members(function, self.mode, has_state)
        return jax.pmap(mapped, axis_name=_AXIS, devices=self.devices, donate_argnums=(0,) if has_state else ())

    def init(self, keys: Any, hyper: Any) -> Any:
        """The states of all members, warm-up done, from placed `keys` and `hyper`."""
        return self._programs["init"]((keys, hyper), self.clock(0, 1))

    def advance(self, states: Any, hyper: Any, clock: Clock) -> tuple[Any, dict[str, jax.Array]]:
        """K iterations of every member: the new states, and curves [D, ⌈P / D⌉, K]."""
        return self._programs["advance"](states, hyper, clock)

    def evaluate(self, states: Any, hyper: Any, number: jax.Array) -> tuple[Any, Any]:
        """One evaluation round of every member (see `Loop`): the new states, and results [D, ⌈P / D⌉, E]."""
        return self._programs["evaluate"](states, hyper, number)

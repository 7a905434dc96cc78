"""What must be settled before jax starts its backend: one XLA flag, virtual CPU devices, the compilation cache.

Imports neither jax nor jaxlib, so that importing `agentgym_jax` stays cheap.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

FLAG = "--xla_cpu_enable_concurrency_optimized_scheduler=false"
_FLAG_NAME = FLAG.partition("=")[0]
_TESTED = ((0, 10), (0, 12))  # jaxlib from … to below …: XLA aborts the process on a flag that it does not know
_DEVICE_FLAG = "--xla_force_host_platform_device_count"
_status = "not set: agentgym_jax has not been imported"


def jaxlib_version() -> str:
    """The installed jaxlib's version, or "" when there is none."""
    try:
        return importlib.metadata.version("jaxlib")
    except importlib.metadata.PackageNotFoundError:
        return ""


def backend_started() -> bool:
    """Whether jax has read its flags already, after which neither flags nor the number of devices can change."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(bridge is not None and bridge.backends_are_initialized())


def append_flag() -> None:
    """Appends `FLAG` to XLA_FLAGS unless the user chose a value, jaxlib is an untested version or jax is running already.

    With XLA's default CPU scheduler, programs that vmap training over seeds can stop for ever with all threads asleep.
    """
    global _status
    version = jaxlib_version()
    number = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    flags = os.environ.get("XLA_FLAGS", "")
    if FLAG in flags:
        _status = "active"
    elif _FLAG_NAME in flags:
        _status = "set by you to another value"
    elif not _TESTED[0] <= number < _TESTED[1]:
        _status = f"not set: jaxlib {version or 'is missing and'} was not tested with it"
    elif backend_started():
        _status = "not set: jax was running before agentgym_jax was imported; import agentgym_jax first"
    else:
        os.environ["XLA_FLAGS"] = f"{flags} {FLAG}".strip()
        _status = "active"


def flag_status() -> str:
    """`active`, or why the scheduler flag is not."""
    return _status


def cores() -> int:
    """How many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_cores(count: int | None = None) -> int:
    """Gives jax `count` virtual CPU devices (default: one for every core), so that a population uses all cores.

    Call it before the first array is made. Returns the number of CPU devices; where you set
    `--xla_force_host_platform_device_count` in XLA_FLAGS yourself, your number stays. Raises RuntimeError when jax is
    running already with fewer, and ValueError for a count below 1.
    """
    count = cores() if count is None else count
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"use_cores needs a count of at least 1, got {count!r}")
    import jax

    if _DEVICE_FLAG in os.environ.get("XLA_FLAGS", ""):
        return jax.local_device_count("cpu")
    if not backend_started():
        jax.config.update("jax_num_cpu_devices", count)
        return count
    if (have := jax.local_device_count("cpu")) < count:
        raise RuntimeError(f"jax is running already with {have} CPU devices; call use_cores() before any array is made")
    return have


def use_compilation_cache() -> str:
    """Keeps compiled programs on disk between runs, and returns the folder; a folder that you chose for jax stays."""
    import jax

    if not jax.config.jax_compilation_cache_dir:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "agentgym_jax" / "xla"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
    return str(jax.config.jax_compilation_cache_dir)

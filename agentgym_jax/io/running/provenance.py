"""Where numbers come from: versions, devices, flags and commits, for the run directory and for bug reports."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from agentgym_jax import _runtime

PACKAGES = (
    "agentgym-jax", "jax", "jaxlib", "flax", "optax", "numpy", "scipy", "orbax-checkpoint", "omegaconf",
    "gymnax", "jumanji", "brax", "mujoco", "jaxmarl",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Installed versions of Python and of what can change a number; packages that are missing are left out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """What the program runs on; starts jax's backend."""
    devices = jax.devices()
    return {
        "platform": platform.platform(),
        "backend": jax.default_backend(),
        "devices": [str(device) for device in devices],
        "device_kind": devices[0].device_kind,
        "processor": processor(),
        "cores": _runtime.cores(),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "cpu_scheduler_flag": _runtime.flag_status(),
        "jax_environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("JAX_")},
        "compilation_cache": jax.config.jax_compilation_cache_dir or "",
        "x64": bool(jax.config.jax_enable_x64),
        "prng": str(jax.config.jax_default_prng_impl),
    }


def processor() -> str:
    """The model of the CPU, for which XLA compiles; "" where the system does not tell."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def git_commit(folder: Path, but: Sequence[str] = ()) -> dict[str, Any] | None:
    """The commit that `folder` is checked out at and whether it was changed since; None outside a repository.

    `but`: paths in it, such as those of results, whose changes do not count.
    """
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", *(f":!{path}" for path in but))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "changed": bool(changed)}


def _git(folder: Path, *command: str) -> str:
    words = ["git", "-C", str(folder), *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout.strip()


def provenance(seeds: tuple[int, ...]) -> dict[str, Any]:
    """Everything of this page, the seeds and the command line. `git` is the working directory's commit, if it has one."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": sys.argv,
        "seeds": list(seeds),
        "versions": versions(),
        "machine": machine(),
        "git": git_commit(Path.cwd()),
        "agentgym_jax_git": git_commit(Path(__file__).resolve().parent),
    }

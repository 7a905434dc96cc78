"""Strictness for the whole suite, settled before jax starts.

Rank promotion raises and warnings are errors (`pyproject.toml` names the exceptions), there are four CPU devices, and compiled
programs are kept under `.cache/jax` of the checkout, so that a second run of the suite is faster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import hypothesis
import jax
import pytest

import agentgym_jax  # noqa: F401  appends the XLA flag without which vmapped training can hang on CPU

ROOT = Path(__file__).resolve().parent.parent

# jax writes cache entries without a lock, so every pytest-xdist worker has a folder of its own.
CACHE = ROOT / ".cache" / "jax" / os.environ.get("PYTEST_XDIST_WORKER", "main")

jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

# Compiling makes a first example slow, and a suite that gates changes must not depend on luck.
hypothesis.settings.register_profile("agentgym_jax", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("agentgym_jax")


@pytest.fixture
def relaxed_rank_promotion() -> Iterator[None]:
    """Lets arrays of different rank meet, for tests that step a library which relies on it."""
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT

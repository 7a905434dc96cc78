"""`agentgym info`: what belongs into a bug report."""

from __future__ import annotations

from agentgym_jax import _runtime


def info() -> None:
    """Print versions, devices, XLA flags and the compilation cache."""
    _runtime.use_compilation_cache()
    from agentgym_jax.io.running.provenance import machine, versions

    for name, value in {**versions(), **machine()}.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        print(f"{name + ':':22} {shown}")

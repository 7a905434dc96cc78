"""Runs that compile with little effort: their programs run a few times only."""

from __future__ import annotations

import jax
import pytest

from agentgym_jax.io.running import programs
from tests.envs.contract import QUICK

_compile = jax.stages.Lowered.compile


@pytest.fixture(scope="module")
def quick():
    """Programs that are compiled inside it are hardly optimised, and none is there before or after."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.stages.Lowered, "compile", lambda lowered: _compile(lowered, QUICK))
        programs.forget()
        yield
        programs.forget()

"""Where Sokoban's levels come from: made here and solvable, from a file, or a download that is never silent."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_jax.adapters import jumanji
from envs_jax.adapters.jumanji import sokoban_levels

from .jumanji_play import QUICKLY

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")

NEARLY = [  # three boxes in place, one a push away
    "##########",
    "#*       #",
    "#*       #",
    "#*       #",
    "#        #",
    "#  @$.   #",
    "#        #",
    "#        #",
    "#        #",
    "##########",
]


def nearly_solved():
    codes = {"#": (1, 0), " ": (0, 0), "@": (0, 3), "$": (0, 4), ".": (2, 0), "*": (2, 4)}
    return np.array([[[codes[cell] for cell in row] for row in NEARLY]], np.uint8)


def where(flags, new, old):
    return jnp.where(flags.reshape(-1, *[1] * (old.ndim - 1)), new, old)


def test_generated_levels_can_be_solved(monkeypatch):
    monkeypatch.setattr("jumanji.environments.routing.sokoban.generator.hf_hub_download", None)  # nothing may be downloaded
    levels = sokoban_levels.generate(40)
    env = jumanji.make("Sokoban-v0", num_levels=40)
    transition = jax.jit(jax.vmap(env.transition, (None, 0, 0, None)), compiler_options=QUICKLY)
    generator = env.library.generator
    np.testing.assert_array_equal(generator._fixed_grids, levels.fixed)
    assert len(np.unique(levels.variable, axis=0)) == 40 and ((levels.fixed == 2) & (levels.variable == 4)).sum() == 0
    starts = np.argwhere(levels.variable == 3)[:, 1:]
    state = jax.vmap(env.initial, (0, None))(jax.random.split(jax.random.PRNGKey(0), 40), ())
    board = {"fixed_grid": levels.fixed, "variable_grid": levels.variable, "agent_location": starts}
    state = state.replace(library=state.library.replace(**jax.tree.map(jnp.asarray, board)))
    solved = np.zeros(40, bool)
    for actions in levels.solutions.T:
        after, _ = transition(jax.random.PRNGKey(0), state, jnp.maximum(actions, 0), ())
        acting = (actions != sokoban_levels.STAY) & ~solved
        state = jax.tree.map(functools.partial(where, acting), after, state)
        solved |= np.asarray(state.ended)
    assert solved.all()


def test_levels_from_outside(monkeypatch, tmp_path):
    def offline(**_):
        raise OSError("no network")

    monkeypatch.setattr("jumanji.environments.routing.sokoban.generator.hf_hub_download", offline)
    with pytest.raises(ValueError, match=r"`boxoban` cannot be downloaded \(OSError: no network\); take `generated`"):
        jumanji.make("Sokoban-v0", levels="boxoban")
    path = tmp_path / "levels.npy"
    for wrong, message in ((nearly_solved()[..., 0], r"shape \(n, 10, 10, 2\)"), (nearly_solved() % 4, "4 boxes, got 0")):
        np.save(path, wrong)
        with pytest.raises(ValueError, match=message):
            jumanji.make("Sokoban-v0", levels=str(path))

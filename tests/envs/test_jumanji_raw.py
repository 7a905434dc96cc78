"""`observation: raw`: the library's own tree, for one agent and for several."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jumanji import environments as library
from jumanji.environments.routing.maze.generator import RandomGenerator

import envs_jax

from .contract import check_types, relaxed
from .jumanji_play import LONG, Case, play_case

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")


@pytest.mark.parametrize("id", [id for id in envs_jax.ids() if id.startswith("jumanji/")])
def test_raw_observations_have_their_spaces(id):
    with relaxed():
        check_types(envs_jax.make(id, observation="raw"))


@pytest.mark.parametrize(
    ("name", "kwargs", "build"),
    [
        ("Maze-v0", {"num_rows": 3, "num_cols": 3}, lambda: library.Maze(RandomGenerator(3, 3), time_limit=LONG)),
        ("LevelBasedForaging-v0", {"time_limit": 20}, lambda: library.LevelBasedForaging(time_limit=LONG)),
    ],
)
def test_raw_observations_are_the_librarys(name, kwargs, build):
    play = play_case(name, Case({**kwargs, "observation": "raw"}, build, episodes=2, steps=3))
    shown = (play.timesteps.observation, play.library_timesteps.observation)
    ours, theirs = jax.tree.map(lambda leaf: leaf[play.running()], shown)
    spaces = play.env.spec.observation_space
    if play.env.spec.num_agents is not None:
        ours, number = ours
        spaces, _ = spaces
        np.testing.assert_array_equal(number, np.broadcast_to(np.arange(2), number.shape))
        theirs = jax.tree.map(lambda leaf: np.stack([leaf] * 2, axis=1), theirs)
    assert ours._fields == theirs._fields == spaces._fields
    jax.tree.map(np.testing.assert_array_equal, tuple(ours), tuple(theirs))
    contained = jax.tree.map(lambda space, x: jax.vmap(space.contains)(x.reshape(-1, *space.shape)).all(), spaces, ours)
    assert all(jax.tree.leaves(contained))

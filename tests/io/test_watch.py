"""Watching: what is played is what is told, the pictures show it, and nothing of the user's is lost."""

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image, ImageSequence

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.running import runner
from agentgym_jax.io.watch import planes, watch, watchable
from tests.io.resuming import Notes, quick_programs
from tests.io.support import tiny


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with quick_programs():
        yield tmp_path


def frames(path):
    with Image.open(path) as gif:
        assert gif.info["loop"] == 0
        return [(np.asarray(frame.convert("RGB")), frame.info["duration"]) for frame in ImageSequence.Iterator(gif)]


def test_random_play_is_repeatable_and_has_a_frame_a_state(here):
    watched = watch("multi/switch", seed=3, episodes=2)
    assert watched.path.name == "multi_switch.gif"
    lengths = [int(episode["length"]) for episode in watched.episodes]
    assert watched.frames == sum(lengths) + 2
    shown = frames(watched.path)
    assert len(shown) == watched.frames
    assert [i for i, (_, duration) in enumerate(shown) if duration == 1500] == [lengths[0], watched.frames - 1]
    assert shown[0][0].shape == (144 * 3 + 26, 120 * 3, 3)
    mean = np.mean([episode["return"] for episode in watched.episodes])
    assert watched.line().startswith(f"multi/switch, random play, 2 episodes, on average: return {mean:.4g}, length ")
    first = watched.path.read_bytes()
    with pytest.raises(ConfigError, match="multi_switch.gif exists; choose another --out, or --overwrite"):
        watch("multi/switch", seed=4)
    assert watched.path.read_bytes() == first
    watch("multi/switch", seed=3, episodes=2, overwrite=True)
    assert watched.path.read_bytes() == first


def test_a_run_is_watched_as_it_was_evaluated(here):
    network = "network={torso: gru, hidden: [8], recurrent: 8}"
    experiment = tiny("env={id: multi/matrix, kwargs: {rounds: 3}}", "algorithm.name=ippo", network, "seeds=[3, 7]")
    run = runner.prepare(experiment, out=here / "run", reporter=Notes()).train()
    before = sorted((path, path.stat().st_mtime_ns) for path in (here / "run").rglob("*"))
    for member, target in enumerate(("run", "run:7")):  # nothing in this game is left to chance
        watched = watch(target)
        evaluated = run.last_evaluation["greedy"]
        assert watched.episodes[0]["return"] == evaluated["return"][member, 0]
        assert watched.episodes[0]["success"] == evaluated["success"][member, 0]
        assert watched.player == "ippo (greedy)"
    assert watched.path.name == "run-seed7.gif"
    assert sorted((path, path.stat().st_mtime_ns) for path in (here / "run").rglob("*")) == before
    assert watch("run", out="sampled.gif", greedy=False).player == "ippo (sampled)"
    with pytest.raises(ConfigError, match="env.kwargs.rounds=2: a run keeps its own settings"):
        watch("run", out="other.gif", overrides=["env.kwargs.rounds=2"])
    with pytest.raises(ConfigError, match="seed: 5 did not run"):
        watch("run:5")


def test_overrides_reach_the_environment():
    watched = watch("multi/rendezvous", overrides=["env.kwargs={size: 2, agents: 4, limit: 2}", "env.params.step_cost=0.5"])
    assert watched.episodes[0] | {"agent_return": 0} == {"return": -1, "agent_return": 0, "length": 2, "success": 0}


def test_an_image_that_is_observed_is_shown_a_colour_a_plane():
    watched = watch("probe/image", out="image.gif")
    assert watched.frames == watched.episodes[0]["length"] + 1
    image = jnp.zeros((2, 3, 4), bool).at[0, 0, 1].set(True).at[1, 2, 3].set(True)
    shown = np.asarray(planes(image))
    lit = {tuple(place) for place in np.argwhere((shown != 24).any(-1))}
    assert lit == {(0, 0), (1, 2)}
    assert (shown[0, 0] != shown[1, 2]).any()
    coloured = jnp.full((2, 2, 3), 7, jnp.uint8)
    np.testing.assert_array_equal(planes(coloured), coloured)


def test_all_own_games_can_be_watched():
    assert set(watchable()) >= {"multi/matrix", "multi/rendezvous", "multi/switch", "multi/two_step"}


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("multi/swich", {}, "multi/swich is no run directory, and unknown environment .* did you mean multi/switch"),
        ("probe/observation", {}, "draws no pictures, .* multi/matrix, .*multi/switch"),
        ("multi/switch", {"out": "film.mp4"}, "film.mp4 must end in .gif"),
        ("multi/switch", {"out": "no/film.gif"}, "its folder does not exist"),
        ("multi/switch", {"episodes": 0}, "episodes: .* 0"),
        ("multi/switch", {"overrides": ["env.kwargs.prisoner=4"]}, "did you mean prisoners"),
        (".", {"out": "film.gif"}, "not a run directory"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_one_line(here, target, settings, message):
    with pytest.raises(ValueError, match=message) as refused:
        watch(target, **settings)
    assert "\n" not in str(refused.value)
    assert not list(here.iterdir())

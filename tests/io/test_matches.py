"""Matches of runs that are on disk: who may play what, what is measured and written, and runs as frozen opponents."""

import csv
import dataclasses
import json

import jax
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import agentgym_jax
from agentgym_jax.io.config.experiment import EnvConfig, EvalConfig
from agentgym_jax.io.config.load import load_experiment, to_yaml
from agentgym_jax.io.matching import match_report
from agentgym_jax.io.matching.matches import Matches, match
from agentgym_jax.io.running.assemble import assemble, make_env
from agentgym_jax.io.running.policy import Policy
from envs_jax import registry
from envs_jax.wrappers import Opponent
from tests.duel import Duel
from tests.envs.contract import QUICK
from tests.envs.stubs import Deaths
from tests.io.support import tiny

EPISODES = 4


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of two runs of `mine/duel`: `both` plays every group (seeds 0 and 1), `hunter` learned against it."""
    folder, compile_ = tmp_path_factory.mktemp("matches"), jax.stages.Lowered.compile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_registered", {**registry._registered, "mine/duel": Duel, "mine/longer_duel": Duel})
        patch.setattr(jax.stages.Lowered, "compile", lambda lowered: compile_(lowered, QUICK))
        agentgym_jax.train(duel(), out=folder / "both", quiet=True)
        hunter = duel(f"env.wrappers=[{{name: opponent, group: hiders, policy: {folder / 'both'}, seed: 1, greedy: false}}]")
        agentgym_jax.train(dataclasses.replace(hunter, seeds=1), out=folder / "hunter", quiet=True)
        yield folder


def duel(*overrides):
    return tiny("env={id: mine/duel}", "algorithm.name=ippo", "train.total_steps=16", "eval.points=1", *overrides)


@pytest.fixture(scope="module")
def played(runs):
    names = [str(runs / "both"), f"{runs / 'both'}:1", str(runs / "hunter")]
    return match("mine/duel", names, episodes=EPISODES, out=runs / "out")


def test_everybody_plays_every_group_that_it_can(played):
    assert played.players == {
        "hiders": ("both", "both:1", "still", "alternate", "random"),
        "seeker": ("both", "both:1", "hunter", "copy", "random"),
    }
    assert played.groups == ("hiders", "seeker")
    for name in ("group_return.hiders", "group_return.seeker", "win.hiders", "win.seeker", "found", "success", "length", "cut"):
        assert played.results[name].shape == (5, 5, EPISODES), name
    still, copy = (played.players[group].index(name) for group, name in (("hiders", "still"), ("seeker", "copy")))
    assert played.mean("group_return.seeker")[still, copy] == 6.0
    assert played.mean("win.seeker")[still, copy] == 1.0 and played.mean("win.hiders")[still, copy] == 0.0


def test_a_run_against_itself_repeats_its_last_evaluation(played, runs):
    recorded = agentgym_jax.load_run(runs / "both").last_evaluation["greedy"]
    for member in (0, 1):
        for name in ("return", "group_return.hiders", "group_return.seeker", "length", "found"):
            np.testing.assert_allclose(played.results[name][member, member], recorded[name][member], rtol=1e-6, err_msg=name)


def test_runs_whose_numbers_have_other_forms_meet(played, runs):
    """A rate that falls and one that stays are no members of one program. One run is called as a script is."""
    agentgym_jax.train(duel("algorithm.learning_rate={start: 1e-3, end: 0}"), out=runs / "still", quiet=True)
    met = match("mine/duel", [str(runs / "both"), str(runs / "still")], episodes=EPISODES)
    assert met.players["hiders"] == ("both", "still (run)", "still", "alternate", "random")
    own = played.results["group_return.seeker"]
    np.testing.assert_array_equal(met.results["group_return.seeker"][0, 0], own[0, 0])
    assert np.isfinite(met.results["group_return.seeker"][1, 1]).all()


def test_it_is_written_and_nothing_is_overwritten(played, runs):
    folder = runs / "out"
    assert sorted(path.name for path in folder.iterdir()) == ["heat_map.png", "matches.csv", "matches.json"]
    content = json.loads((folder / "matches.json").read_text())
    assert content["env"] == "mine/duel" and content["episodes"] == EPISODES and len(content["pairings"]) == 25
    row = content["pairings"][13]
    assert (row["hiders"], row["seeker"]) == ("still", "copy") and row["group_return.seeker"] == 6.0
    with open(folder / "matches.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 25 and float(rows[13]["group_return.seeker.low"]) == 6.0
    with Image.open(folder / "heat_map.png") as image:
        assert image.width > 800 and image.height > 500
    with pytest.raises(ValueError, match="exists"):
        match("mine/duel", [str(runs / "both")], out=folder)


def made_up(**changes):
    """Matches of made-up numbers: two groups of two players each, where the mean is 10 · row + column."""
    means = np.float32([[0, 1], [10, 11]])
    values = means[..., None] + np.float32([-2, -1, 1, 2])
    results = {"return": values, "group_return.a": values, "group_return.b": -values, "cut": np.zeros_like(values)}
    players, settings = {"a": ("x", "y"), "b": ("x", "z")}, {"seed": 0, "strength": 1.0, "greedy": True}
    fields = {"env": "made/up", "players": players, "results": results, "episodes": 4, **settings}
    return Matches(**(fields | {"compile_seconds": 1.0, "play_seconds": 1.0} | changes))


def test_means_intervals_and_heat_maps_are_those_of_the_episodes():
    matches = made_up()
    assert matches.mean("group_return.a").tolist() == [[0, 1], [10, 11]]
    low, high = matches.interval("group_return.a")
    assert low.shape == high.shape == (2, 2)
    assert (low < matches.mean("group_return.a")).all() and (high > matches.mean("group_return.a")).all()
    assert (low >= matches.mean("group_return.a") - 2).all() and (high <= matches.mean("group_return.a") + 2).all()
    first, second = (axes for axes in matches.plot().axes if axes.get_title())
    assert first.images[0].get_array().tolist() == [[0, 1], [10, 11]] and second.get_title() == "return of b"
    assert [label.get_text() for label in first.get_xticklabels()] == ["x", "z"]
    assert [text.get_text() for text in first.texts] == ["0", "1", "10", "11"]
    rows = match_report.records(matches)
    assert rows[2] | {"a": "y", "b": "x", "return": 10.0} == rows[2]
    console = Console(width=100, record=True)
    console.print(matches.table())
    text = console.export_text()
    assert "return of a" in text and f"[{low[1, 0]:.3g}, {high[1, 0]:.3g}]" in text and "cut" not in text


def test_one_episode_has_no_interval():
    values = {name: x[..., :1] for name, x in made_up().results.items()}
    assert all(np.isnan(x).all() for x in made_up(results=values, episodes=1).interval("return"))


def test_agents_without_groups_are_seats_of_their_own(runs):
    """Cross-play: two agents of a team, which has one return."""
    matches = match("probe/team", episodes=8)
    assert matches.players == {"agent_0": ("random",), "agent_1": ("random",)}
    assert matches.returns() == {"agent_0": "return", "agent_1": "return"}
    assert matches.results["success"].shape == (1, 1, 8) and "win.agent_0" not in matches.results


def test_a_run_as_a_frozen_opponent_is_kept_as_a_path(runs):
    experiment = load_experiment(runs / "hunter" / "config.yaml")
    assert f"policy: {runs / 'both'}" in to_yaml(experiment)
    env = make_env(experiment.env)
    assert isinstance(env, Opponent) and env.group == "hiders" and env.spec.num_agents == 1
    assert assemble(duel_against(runs / "both", "params: {strength: 0.5, prize: 2}")).params["strength"] == 0.5
    weak = duel_against(runs / "both", "params: {strength: {start: 0, end: 1}}")
    held_out = assemble(dataclasses.replace(weak, eval=EvalConfig(params=[{"strength": 0}, {"strength": 0.5}])))
    assert held_out.params["strength"] == 1.0, "opponents may grow, and measure at any strength"
    key, params = jax.random.key(0), env.default_params
    state = jax.eval_shape(env.initial, key, params)
    assert jax.eval_shape(env.transition, key, state, np.zeros(1, np.int32), params)[1].reward.shape == (1,)


def duel_against(run, rest="params: {}", arguments="group: hiders"):
    return duel(f"env={{id: mine/duel, {rest}, wrappers: [{{name: opponent, {arguments}, policy: {run}}}]}}")


@pytest.mark.parametrize(
    ("run", "arguments", "message"),
    [
        ("none/run", "group: hiders", "opponent.policy: none/run: run directory none/run does not exist"),
        ("{runs}/hunter", "group: hiders", "plays seeker, not hiders"),
        ("{runs}/both", "group: hiders, seed: 9", "seed: 9 did not run"),
        ("{runs}/both", "group: hiders, greedy: 2", "opponent.greedy: must be true or false"),
        ("still", "group: hiders, seed: 1", "opponent.seed: is for a run, and still is none; leave it out"),
        ("{runs}/both", "group: hiders, sed: 9", "unknown key opponent.sed; did you mean seed?"),
        ("stil", "group: hiders", "did you mean still"),
    ],
)
def test_opponents_that_cannot_be_are_refused_in_one_line(runs, run, arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        assemble(duel_against(run.format(runs=runs), arguments=arguments))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("env", "names", "changes", "message"),
    [
        ("mine/dule", [], {}, "unknown environment or config 'mine/dule': did you mean mine/duel"),
        ("none.yaml", [], {}, "config file none.yaml does not exist"),
        ("probe/policy", [], {}, "matches need several agents; probe/policy has 1"),
        ("mine/duel", ["none"], {}, "run directory none does not exist"),
        ("mine/duel", ["{runs}/both:7"], {}, "seed: 7 did not run; the run has 0, 1"),
        ("mine/duel", ["{runs}/both", "{runs}/both"], {}, "runs: must differ"),
        ("mine/duel", [3], {}, "a run is a path"),
        ("probe/two_groups", ["{runs}/both"], {}, "both was trained in mine/duel, which is not probe/two_groups"),
        ("mine/longer_duel", ["{runs}/both"], {}, "both was trained in mine/duel, which is not mine/longer_duel"),
        (EnvConfig(Deaths(), wrappers=()), ["{runs}/both"], {}, "both was trained in Duel, which is not Deaths"),
        (EnvConfig(Duel(), wrappers=("agent_ids",)), ["{runs}/both"], {}, "its observation_space is .*, here it is"),
        ("mine/duel", [], {"strength": 2}, "strength: must be between 0 and 1, got 2"),
        ("mine/duel", [], {"episodes": 0}, "episodes: must be a whole number"),
        ("mine/duel", "both", {}, "runs: must be a list"),
    ],
)
def test_what_cannot_be_matched_is_refused_in_one_line(runs, env, names, changes, message):
    names = [name.format(runs=runs) if isinstance(name, str) else name for name in names] if isinstance(names, list) else names
    with pytest.raises(ValueError, match=message) as error:
        match(env, names, **changes)
    assert "\n" not in str(error.value)


def test_too_many_pairings_are_refused_with_their_number():
    env = Deaths(ends=(2,) * 11)  # eleven agents without groups, and two policies for each
    policy = Policy(assemble(agentgym_jax.Experiment(env, "ippo")), None, None)
    with pytest.raises(ValueError, match="2,048 pairings are more than 1024"):
        match(env, [policy])

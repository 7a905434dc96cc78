"""jumanji's packing, tour, colouring and scheduling problems against jumanji itself, over whole episodes of random play."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jumanji.environments import CVRP, TSP, BinPack, FlatPack, GraphColoring, JobShop, Knapsack
from jumanji.environments.logic.graph_coloring.generator import RandomGenerator as Graphs
from jumanji.environments.packing.bin_pack.generator import RandomGenerator as Boxes
from jumanji.environments.packing.flat_pack.generator import RandomFlatPackGenerator as Jigsaws
from jumanji.environments.packing.flat_pack.reward import BlockDenseReward
from jumanji.environments.packing.job_shop.generator import RandomGenerator as Shops
from jumanji.environments.packing.knapsack.generator import RandomGenerator as Items
from jumanji.environments.packing.knapsack.reward import SparseReward as SparseValue
from jumanji.environments.routing.cvrp.generator import UniformGenerator as Customers
from jumanji.environments.routing.cvrp.reward import SparseReward as SparseRoute
from jumanji.environments.routing.tsp.generator import UniformGenerator as Cities

from envs_jax.adapters import jumanji

from . import jumanji_play
from .jumanji_play import Case, Play, play_case

pytestmark = [
    pytest.mark.usefixtures("relaxed_rank_promotion"),
    pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types:FutureWarning"),  # jumanji's own BinPack
]

CASES = {
    "BinPack-v2": Case(
        {"max_num_items": 4, "max_num_ems": 8, "obs_num_ems": 5},
        lambda: BinPack(Boxes(4, 8, split_num_same_items=2), obs_num_ems=5),
        library_action=lambda action: jnp.array([action // 4, action % 4]),
        steps=5,
    ),
    "FlatPack-v0": Case(
        {"num_row_blocks": 2, "num_col_blocks": 3, "reward": "block_dense"},
        lambda: FlatPack(Jigsaws(2, 3), BlockDenseReward()),
        library_action=lambda action: jnp.array([action // 60, action // 15 % 4, action // 5 % 3, action % 5]),
        steps=7,
    ),
    "CVRP-v1": Case(
        {"num_nodes": 4, "max_capacity": 6, "max_demand": 5, "reward": "sparse"},
        lambda: CVRP(Customers(4, 6, 5), SparseRoute()),
        steps=9,
    ),
    "TSP-v1": Case({"num_cities": 5}, lambda: TSP(Cities(5)), steps=6),
    "Knapsack-v1": Case(
        {"num_items": 6, "total_budget": 1.5, "reward": "sparse"},
        lambda: Knapsack(Items(6, 1.5), SparseValue()),
        steps=7,
    ),
    "GraphColoring-v1": Case(
        {"num_nodes": 5, "edge_probability": 0.5},
        lambda: GraphColoring(Graphs(5, 0.5)),
        steps=6,
    ),
    "JobShop-v0": Case(
        {"num_jobs": 2, "num_machines": 3, "max_num_ops": 2, "max_op_duration": 2, "time_limit": 4},
        lambda: JobShop(Shops(2, 3, 2, 2)),
        obey=0.85,
        episodes=64,
        steps=6,
    ),
}
ILLEGAL = {"CVRP-v1": -8 * np.sqrt(2), "TSP-v1": -5 * np.sqrt(2), "GraphColoring-v1": -5, "JobShop-v0": -2 * 2 * 2}  # others 0


@pytest.fixture(scope="module")
def plays():
    return {name: play_case(name, case) for name, case in CASES.items()}


@pytest.fixture(params=CASES)
def play(request, plays):
    return plays[request.param]


def every(play):
    """All rows of the play that belong to an episode."""
    return zip(*np.nonzero(play.running()), strict=True)


def finals(play, values):
    """[episodes, ...]: `values` where each episode ends."""
    return values[np.arange(len(values)), np.argmax(play.timesteps.last, axis=1)]


def legal(play: Play) -> tuple[Any, Any]:
    """[episodes, steps]: whether the action taken was legal, and the episode still running."""
    mask, actions = play.timesteps.action_mask[:, :-1], play.actions
    if actions.ndim == 3:
        heads = mask.reshape(*actions.shape, -1)
        obeyed = np.take_along_axis(heads, actions[..., None], axis=-1)[..., 0].all(axis=-1)
    else:
        obeyed = np.take_along_axis(mask, actions[..., None], axis=-1)[..., 0]
    return obeyed, ~play.timesteps.last[:, :-1]


def test_states_rewards_ends_and_masks_are_the_librarys(play):
    jumanji_play.check_equal(play)
    jumanji_play.check_absorbing(play)
    jumanji_play.check_spaces(play)
    jumanji_play.check_true_end_at_limit(play)


def test_only_a_limit_that_is_asked_for_cuts(play):
    if play.name == "JobShop-v0":
        jumanji_play.check_limit(play)
        return
    assert np.all(play.timesteps.last[:, play.env.spec.episode_limit])
    assert not play.ends()[1].any()
    if play.name not in ("BinPack-v2", "Knapsack-v1"):  # where an episode of this length would be rare
        assert np.argmax(play.timesteps.last, axis=1).max() == play.env.spec.episode_limit


def test_illegal_actions_do_what_is_said(play):
    obeyed, before = legal(play)
    rows = before & ~obeyed
    assert rows.any() and (before & obeyed).any()
    rewards, died = play.timesteps.reward[:, 1:], play.ends()[0][:, 1:]
    np.testing.assert_allclose(rewards[rows], ILLEGAL.get(play.name, 0.0), rtol=1e-6)
    if play.name == "FlatPack-v0":
        grid = play.states.library.grid
        assert not died[rows].all()
        np.testing.assert_array_equal(grid[:, 1:][rows], grid[:, :-1][rows])
    else:
        assert died[rows].all()
    success = play.timesteps.metrics.get("success")
    assert success is None or not success[:, 1:][rows].any()


def test_defaults_are_the_librarys_and_raw_spaces_hold_what_it_shows(play):
    theirs = type(CASES[play.name].library())()
    ours = jumanji.make(play.name).library
    assert vars(theirs.generator) == vars(ours.generator)
    assert type(getattr(theirs, "reward_fn", None)) is type(getattr(ours, "reward_fn", None))
    spaces = jumanji.make(play.name, observation="raw", **CASES[play.name].kwargs).spec.observation_space
    for space, leaf in zip(jax.tree.leaves(spaces), jax.tree.leaves(play.library_timesteps.observation), strict=True):
        low, high = space.bounds()
        assert (leaf.shape[2:], leaf.dtype) == (space.shape, space.dtype)
        assert np.all(leaf[play.running()] >= low) and np.all(leaf[play.running()] <= high)


def test_bin_pack_shows_spaces_and_items_and_measures_the_volume(plays):
    play = plays["BinPack-v2"]
    shown, extras = play.library_timesteps.observation, play.library_timesteps.extras
    spaces = play.timesteps.observation[..., :35].reshape(*play.timesteps.last.shape, 5, 7)
    items = play.timesteps.observation[..., 35:].reshape(*play.timesteps.last.shape, 4, 5)
    running, metrics = play.running(), play.timesteps.metrics
    for column, name in enumerate(("x1", "x2", "y1", "y2", "z1", "z2")):
        expected = np.where(shown.ems_mask, getattr(shown.ems, name), 0)
        np.testing.assert_allclose(spaces[..., column][running], expected[running], rtol=1e-6)
    np.testing.assert_array_equal(spaces[..., 6][running], shown.ems_mask[running])
    for column, name in enumerate(("x_len", "y_len", "z_len")):
        expected = np.where(shown.items_mask, getattr(shown.items, name), 0)
        np.testing.assert_allclose(items[..., column][running], expected[running], rtol=1e-6)
    np.testing.assert_array_equal(items[..., 3][running], shown.items_mask[running])
    np.testing.assert_array_equal(items[..., 4][running], shown.items_placed[running])
    np.testing.assert_allclose(metrics["volume_utilization"][running], extras["volume_utilization"][running], rtol=1e-6)
    np.testing.assert_allclose(metrics["packed"][running], extras["ratio_packed_items"][running], rtol=1e-6)
    np.testing.assert_allclose(play.timesteps.reward.sum(axis=1), metrics["volume_utilization"][:, -1], atol=1e-6)
    np.testing.assert_array_equal(metrics["success"], metrics["packed"] == 1)
    np.testing.assert_allclose(metrics["volume_utilization"][metrics["success"] == 1], 1, rtol=1e-6)


def test_flat_pack_shows_cells_blocks_and_moves(plays):
    play, (rows, cols, blocks) = plays["FlatPack-v0"], (5, 7, 6)
    puzzle, view = play.states.library, play.timesteps.observation
    for where in every(play):
        cells = view[where][: rows * cols].reshape(rows, cols)
        jigsaw = view[where][rows * cols : -1].reshape(blocks, 10)
        np.testing.assert_array_equal(cells, puzzle.grid[where] > 0)
        np.testing.assert_array_equal(jigsaw[:, :9].reshape(blocks, 3, 3), puzzle.blocks[where] > 0)
        np.testing.assert_array_equal(jigsaw[:, 9], puzzle.placed_blocks[where])
        np.testing.assert_allclose(view[where][-1], 1 - where[1] / blocks, atol=1e-6)
    metrics = play.timesteps.metrics
    np.testing.assert_allclose(play.timesteps.reward.sum(axis=1), metrics["placed"][:, -1], rtol=1e-6)
    np.testing.assert_allclose(metrics["coverage"], (puzzle.grid > 0).mean(axis=(2, 3)), rtol=1e-6)


def visits(trajectory, count, node):
    """The place of the last visit of a node among the stops, from 1; 0 for never."""
    return max((stop + 1 for stop in range(min(count, len(trajectory))) if trajectory[stop] == node), default=0)


def test_tsp_shows_the_tour(plays):
    play, cities = plays["TSP-v1"], 5
    tour, length = play.states.library, play.timesteps.metrics["tour_length"]
    for where in every(play):
        stops = [int(city) for city in tour.trajectory[where] if city >= 0]
        table = play.timesteps.observation[where].reshape(cities, 6)
        np.testing.assert_array_equal(table[:, :2], tour.coordinates[where])
        np.testing.assert_array_equal(table[:, 2], np.isin(np.arange(cities), stops))
        np.testing.assert_array_equal(table[:, 3], np.isin(np.arange(cities), stops[-1:]))
        np.testing.assert_array_equal(table[:, 4], np.isin(np.arange(cities), stops[:1]))
        order = [visits(stops, len(stops), city) / cities for city in range(cities)]
        np.testing.assert_allclose(table[:, 5], order, rtol=1e-6)
        path = tour.coordinates[where][stops + stops[:1] if len(stops) == cities else stops]
        expected = np.linalg.norm(np.diff(path, axis=0), axis=-1).sum()
        np.testing.assert_allclose(length[where], expected, rtol=1e-5)
    done = play.timesteps.metrics["success"][:, -1] == 1
    np.testing.assert_allclose(play.timesteps.reward.sum(axis=1)[done], -length[:, -1][done], rtol=1e-5)
    np.testing.assert_array_equal(done, tour.visited_mask[:, -1].all(axis=-1))


def test_cvrp_shows_the_tour_demands_and_capacity(plays):
    play, nodes, full = plays["CVRP-v1"], 5, 6
    tour, timesteps, obeyed = play.states.library, play.timesteps, legal(play)[0]
    refills = 0
    for where in every(play):
        stops = [0, *play.actions[where[0]][: where[1]]]
        stops = stops if obeyed[where[0], : where[1]].all() else stops[:-1]
        refills += 0 in stops[1:-1]
        table, left = timesteps.observation[where][:-1].reshape(nodes, 6), timesteps.observation[where][-1]
        np.testing.assert_array_equal(table[:, :2], tour.coordinates[where])
        np.testing.assert_allclose(table[:, 2], tour.demands[where] / full, rtol=1e-6)
        np.testing.assert_array_equal(table[:, 3], tour.visited_mask[where])
        np.testing.assert_array_equal(table[:, 4], np.arange(nodes) == stops[-1])
        order = [visits(stops[:8], len(stops), node) / 8 for node in range(nodes)]
        np.testing.assert_allclose(table[:, 5], order, rtol=1e-6)
        np.testing.assert_allclose(left, tour.capacity[where] / full, rtol=1e-6)
        expected = np.linalg.norm(np.diff(tour.coordinates[where][stops], axis=0), axis=-1).sum()
        np.testing.assert_allclose(timesteps.metrics["tour_length"][where], expected, rtol=1e-5, atol=1e-6)
    assert refills and tour.demands.max() == 4, "demands stay below max_demand"
    done = timesteps.metrics["success"][:, -1] == 1
    length = timesteps.metrics["tour_length"][:, -1]
    assert done.any() and not done.all()
    np.testing.assert_allclose(timesteps.reward.sum(axis=1)[done], -length[done], rtol=1e-5)


def test_knapsack_shows_items_and_budget(plays):
    play = plays["Knapsack-v1"]
    items, timesteps, running = play.states.library, play.timesteps, play.running()
    table = timesteps.observation[..., :-1].reshape(*timesteps.last.shape, 6, 3)
    for column, name in enumerate(("weights", "values", "packed_items")):
        np.testing.assert_array_equal(table[..., column][running], getattr(items, name)[running])
    used = (items.weights * items.packed_items).sum(axis=-1) / 1.5
    np.testing.assert_allclose(timesteps.observation[..., -1][running], 1 - used[running], atol=1e-6)
    np.testing.assert_allclose(timesteps.metrics["budget_used"][running], used[running], atol=1e-6)
    value = (items.values * items.packed_items).sum(axis=-1)
    np.testing.assert_allclose(timesteps.metrics["value"][running], value[running], rtol=1e-6)
    fine = (legal(play)[0] | ~legal(play)[1]).all(axis=1)
    np.testing.assert_allclose(timesteps.reward.sum(axis=1), np.where(fine, value[:, -1], 0), rtol=1e-6)


def test_graph_coloring_shows_the_graph_and_counts_colours(plays):
    play, nodes = plays["GraphColoring-v1"], 5
    graph, timesteps = play.states.library, play.timesteps
    for where in every(play):
        table, colours = timesteps.observation[where].reshape(nodes, 2 * nodes + 1), graph.colors[where]
        np.testing.assert_array_equal(table[:, :nodes], graph.adj_matrix[where])
        np.testing.assert_array_equal(table[:, nodes:-1], colours[:, None] == np.arange(nodes))
        np.testing.assert_array_equal(table[:, -1], np.arange(nodes) == where[1] % nodes)
        assert timesteps.metrics["colours"][where] == len(set(colours[colours >= 0]))
    fine, success = finals(play, timesteps.reward) > -nodes, finals(play, timesteps.metrics["success"])
    np.testing.assert_array_equal(finals(play, timesteps.reward)[fine], -finals(play, timesteps.metrics["colours"])[fine])
    np.testing.assert_array_equal(success[fine], 1)
    assert not timesteps.metrics["success"][:, 0].any()


def test_job_shop_shows_operations_and_machines(plays):
    play, (jobs, machines, ops, longest) = plays["JobShop-v0"], (2, 3, 2, 2)
    shop, timesteps = play.states.library, play.timesteps
    for where in every(play):
        view = timesteps.observation[where]
        operations = view[: jobs * ops * (machines + 2)].reshape(jobs, ops, machines + 2)
        states = view[jobs * ops * (machines + 2) :].reshape(machines, jobs + 2)
        needed, exists = shop.ops_machine_ids[where], shop.ops_machine_ids[where] >= 0
        np.testing.assert_array_equal(operations[..., :machines], needed[..., None] == np.arange(machines))
        np.testing.assert_array_equal(operations[..., machines], np.where(exists, shop.ops_durations[where], 0) / longest)
        np.testing.assert_array_equal(operations[..., -1], shop.ops_mask[where])
        np.testing.assert_array_equal(states[:, :-1], shop.machines_job_ids[where][:, None] == np.arange(jobs + 1))
        np.testing.assert_array_equal(states[:, -1], shop.machines_remaining_times[where] / longest)
        waiting = shop.ops_mask[where].sum() / exists.sum()
        np.testing.assert_allclose(timesteps.metrics["started"][where], 1 - waiting, atol=1e-6)
        assert timesteps.metrics["makespan"][where] == where[1]


def test_job_shop_success_is_a_finished_legal_schedule(plays):
    play = plays["JobShop-v0"]
    metrics, shop = play.timesteps.metrics, play.states.library
    well = play.ends()[0] & (play.timesteps.reward == -1)
    np.testing.assert_array_equal(finals(play, metrics["success"]), finals(play, well))
    looks_done = ~shop.ops_mask.any(axis=(2, 3)) & (shop.machines_remaining_times == 0).all(axis=2)
    assert well.any() and (finals(play, looks_done) & ~finals(play, well)).any(), "the sample must hold an illegal finish"


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("BinPack-v2", {"obs_num_ems": 50}, "BinPack: obs_num_ems must be at most max_num_ems, 40, got 50"),
        ("BinPack-v2", {"split_num_same_items": 21}, "split_num_same_items must be at most max_num_items, 20, got 21"),
        ("BinPack-v2", {"max_num_items": 0}, "max_num_items must be a whole number, at least 1, got 0"),
        ("BinPack-v2", {"reward": "spare"}, "unknown reward of BinPack 'spare': did you mean sparse"),
        ("FlatPack-v0", {"num_row_blocks": 2.0}, "FlatPack: num_row_blocks must be a whole number, at least 1, got 2.0"),
        ("FlatPack-v0", {"reward": "dense"}, "unknown reward of FlatPack 'dense': .*cell_dense"),
        ("CVRP-v1", {"max_capacity": 9}, "CVRP: max_capacity must be a whole number, at least 10, got 9"),
        ("CVRP-v1", {"max_demand": 1}, "max_demand must be a whole number, at least 2"),
        ("CVRP-v1", {"time_limit": 9}, "unknown argument of jumanji/CVRP-v1 'time_limit'"),
        ("TSP-v1", {"num_cities": 1}, "TSP: num_cities must be a whole number, at least 2, got 1"),
        ("TSP-v1", {"reward": None}, "unknown reward of TSP None: known: dense, sparse"),
        ("Knapsack-v1", {"num_items": True}, "Knapsack: num_items must be a whole number, at least 1, got True"),
        ("Knapsack-v1", {"total_budget": 0}, "Knapsack: total_budget must be a number above 0, got 0"),
        ("GraphColoring-v1", {"num_nodes": "20"}, "GraphColoring: num_nodes must be a whole number, at least 1, got '20'"),
        ("GraphColoring-v1", {"edge_probability": 1}, "edge_probability must lie between 0 and 1, got 1"),
        ("JobShop-v0", {"num_machines": 0}, "JobShop: num_machines must be a whole number, at least 1, got 0"),
        ("JobShop-v0", {"time_limit": 0}, "JobShop: time_limit must be a whole number of steps, at least 1, got 0"),
    ],
)
def test_bad_input_is_one_clear_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        jumanji.make(name, **kwargs)


def test_longest_job_shop_schedule_is_the_limit_by_default():
    assert jumanji.make("JobShop-v0", num_jobs=3, max_num_ops=2, max_op_duration=4).spec.episode_limit == 3 * 2 * 4

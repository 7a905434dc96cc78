"""jumanji's multi-agent tasks of swarms and routing against jumanji itself, and what each agent sees of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jumanji.environments import MMST, Cleaner, MultiCVRP, RobotWarehouse, SearchAndRescue
from jumanji.environments.routing.cleaner.generator import RandomGenerator as Mazes
from jumanji.environments.routing.mmst.generator import SplitRandomGenerator
from jumanji.environments.routing.multi_cvrp.generator import UniformRandomGenerator
from jumanji.environments.routing.robot_warehouse.generator import RandomGenerator as Warehouses
from jumanji.environments.swarms.search_and_rescue.generator import RandomGenerator as Swarms
from jumanji.environments.swarms.search_and_rescue.observations import AgentAndTargetObservationFn
from jumanji.environments.swarms.search_and_rescue.reward import IndividualRewardFn

from envs_jax.adapters import jumanji

from . import jumanji_play
from .jumanji_play import LONG, QUICKLY, Case, play_case

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # jumanji's SearchAndRescue relies on rank promotion


class RewardOfTwelveSteps(IndividualRewardFn):
    """What jumanji pays in an episode of twelve steps, whose end the library beside ours must not see."""

    def __call__(self, found_targets, step, time_limit):
        return super().__call__(found_targets, step, 12)


CASES = {
    "Cleaner-v0": Case(
        {"grid_size": 3, "num_agents": 2, "time_limit": 12},
        lambda: Cleaner(Mazes(3, 3, 2), time_limit=LONG),
        steps=16,
    ),
    "MMST-v0": Case(
        {"num_nodes": 6, "num_edges": 7, "max_degree": 3, "num_agents": 2, "num_nodes_per_agent": 2, "time_limit": 6},
        lambda: MMST(SplitRandomGenerator(6, 7, 3, 2, 2, 7), time_limit=LONG),
        steps=10,
    ),
    "MultiCVRP-v0": Case(
        {"num_customers": 6, "time_limit": 6},
        lambda: MultiCVRP(UniformRandomGenerator(6, 2)),
        steps=14,
    ),
    "RobotWarehouse-v0": Case(
        {"column_height": 1, "shelf_rows": 1, "num_agents": 3, "request_queue_size": 2, "time_limit": 20},
        lambda: RobotWarehouse(Warehouses(1, 3, 1, 3, 1, 2), time_limit=LONG),
    ),
    "SearchAndRescue-v0": Case(
        {"num_targets": 3, "target_contact_range": 0.4, "num_vision": 8, "time_limit": 12},
        lambda: SearchAndRescue(
            target_contact_range=0.4,
            time_limit=LONG,
            generator=Swarms(num_searchers=2, num_targets=3),
            reward_fn=RewardOfTwelveSteps(),
            observation=AgentAndTargetObservationFn(8, 0.4, 0.1, 0.4, 0.4, 1.0),
        ),
        steps=16,
    ),
}


class Plays(dict):
    """Each case by name, played when it is first wanted: a process that runs a few of these tests compiles only their cases."""

    def __missing__(self, name):
        self[name] = play_case(name, CASES[name])
        return self[name]


@pytest.fixture(scope="module")
def plays():
    return Plays()


@pytest.fixture(params=CASES)
def play(request, plays):
    return plays[request.param]


def every(play):
    """All rows of the play that belong to an episode."""
    return zip(*np.nonzero(play.running()), strict=True)


def worlds(play):
    """[episodes, steps + 1, W], after checking that they lie in their space."""
    look = jax.vmap(jax.vmap(lambda state: play.env.world(state, ())))
    found = np.asarray(jax.jit(look, compiler_options=QUICKLY)(play.states))
    low, high = play.env.spec.world_space.bounds()
    assert found.dtype == np.float32 and np.all((found >= low) & (found <= np.float32(high)))
    return found


def test_states_rewards_ends_and_masks_are_the_librarys(play):
    if play.name == "MMST-v0":  # jumanji's mask lets an agent move that has just finished
        library, going = play.library_timesteps, ~play.library_states.finished_agents
        assert library.observation.action_mask[play.running()][~going[play.running()]].any()
        observation = library.observation._replace(action_mask=library.observation.action_mask & going[..., None])
        play = dataclasses.replace(play, library_timesteps=library.replace(observation=observation))
    real = play.name in ("MultiCVRP-v0", "SearchAndRescue-v0")  # XLA may round real numbers in another order
    jumanji_play.check_equal(play, tolerance=1e-5 if real else 0.0)


def test_limits_ends_and_spaces(play):
    jumanji_play.check_limit(play)
    jumanji_play.check_true_end_at_limit(play)
    jumanji_play.check_absorbing(play)
    jumanji_play.check_spaces(play)


def test_reward_and_life_are_as_declared(play):
    timesteps, running = play.timesteps, play.running()
    assert play.env.spec.reward == ("individual" if play.name == "SearchAndRescue-v0" else "team")
    if play.name != "MMST-v0":
        assert np.all(timesteps.alive)
    future = ~play.ends()[0][running]
    np.testing.assert_array_equal(timesteps.discount[running], np.repeat(future[:, None], timesteps.alive.shape[-1], axis=1))


def test_cleaner_shows_each_agent_where_it_is_and_who(plays):
    play = plays["Cleaner-v0"]
    grid, places = play.library_timesteps.observation.grid, play.library_timesteps.observation.agents_locations
    together = 0
    for row in every(play):
        views = play.timesteps.observation[row]
        for me in range(2):
            for channel in range(3):
                np.testing.assert_array_equal(views[me, ..., channel], grid[row] == channel)
            for channel, who in ((3, me), (4, 1 - me)):
                expected = np.zeros((3, 3))
                expected[tuple(places[row][who])] = 1
                np.testing.assert_array_equal(views[me, ..., channel], expected)
            assert np.all(views[me, ..., 5] == me)
        together += np.array_equal(*places[row])
    assert together, "the sample must hold agents on one tile"


def test_cleaner_masks_metrics_and_world(plays):
    play = plays["Cleaner-v0"]
    library, timesteps, running = play.states.library, play.timesteps, play.running()
    for row in every(play):
        for me in range(2):
            for action, move in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):
                place = library.agents_locations[row][me] + move
                legal = min(place) >= 0 and max(place) < 3 and library.grid[row][tuple(place)] != 2
                assert timesteps.action_mask[row][me, action] == legal
    dirty = play.library_timesteps.extras["ratio_dirty_tiles"]
    np.testing.assert_allclose(timesteps.metrics["cleaned"][running], 1 - dirty[running], rtol=1e-6)
    np.testing.assert_array_equal(timesteps.metrics["success"][running], (dirty == 0)[running])
    flags = np.stack([library.grid == 0, library.grid == 2], axis=2).reshape(*running.shape, -1)
    places = library.agents_locations.reshape(*running.shape, -1) / 2
    np.testing.assert_allclose(worlds(play), np.concatenate([flags, places], axis=-1))


def test_mmst_shows_each_agent_its_nodes_first(plays):
    play = plays["MMST-v0"]
    library, seen = play.states.library, play.timesteps.observation
    theirs = play.library_timesteps.observation
    for row in every(play):
        np.testing.assert_array_equal(seen[row][:, :, 6:], np.broadcast_to(library.adj_matrix[row], (2, 6, 6)))
        np.testing.assert_array_equal(seen[row][1][:, [3, 4, 5, 0, 1, 2]], seen[row][0][:, :6])
        for me in range(2):
            assert np.flatnonzero(seen[row][me][:, 2]) == [library.positions[row][me]]
        own, visited, other, other_visited = seen[row][0][:, [0, 1, 3, 4]].T > 0
        types = np.select([other_visited, visited, other, own], [2, 0, 3, 1], -1)
        np.testing.assert_array_equal(types, theirs.node_types[row])


def test_mmst_masks_life_and_metrics(plays):
    play = plays["MMST-v0"]
    library, timesteps, running = play.states.library, play.timesteps, play.running()
    for row in every(play):
        for me in range(2):
            place, finished = library.positions[row][me], library.finished_agents[row][me]
            for node in range(6):
                taken = library.node_types[row][node] == -1 and library.connected_nodes_index[row][1 - me, node] >= 0
                legal = library.adj_matrix[row][place, node] and not taken and not finished
                assert timesteps.action_mask[row][me, node] == legal
    np.testing.assert_array_equal(timesteps.alive[running], ~library.finished_agents[running])
    one_left = running & library.finished_agents.any(-1) & ~timesteps.last
    assert one_left.any(), "the sample must hold an agent that has finished before the other"
    assert np.all(timesteps.discount[one_left] == 1)
    ratio = play.library_timesteps.extras["ratio_connections"]
    np.testing.assert_allclose(timesteps.metrics["ratio_connections"][running], ratio[running])
    np.testing.assert_array_equal(timesteps.metrics["success"], library.finished_agents.all(-1))
    assert set(np.unique(worlds(play))) == {0, 1}


def test_multi_cvrp_shows_each_vehicle_itself_first(plays):
    play = plays["MultiCVRP-v0"]
    theirs, seen = play.library_timesteps.observation, play.timesteps.observation
    side, capacity, end = 10, 20, 30
    for row in every(play):
        vehicles = np.column_stack(
            [
                theirs.vehicles.coordinates[row] / side,
                theirs.vehicles.local_times[row] / end,
                theirs.vehicles.capacities[row] / capacity,
            ]
        )
        nodes = np.column_stack(
            [
                theirs.nodes.coordinates[row] / side,
                theirs.nodes.demands[row] / capacity,
                theirs.windows.start[row] / end,
                theirs.windows.end[row] / end,
                theirs.coeffs.early[row],
                theirs.coeffs.late[row],
            ]
        )
        for me in range(2):
            expected = np.concatenate([vehicles[me], vehicles[1 - me], nodes.ravel(), [row[1] / 12]])
            np.testing.assert_allclose(seen[row][me], expected, atol=1e-5)
    np.testing.assert_array_equal(worlds(play), seen[:, :, 0])


def test_multi_cvrp_masks_and_metrics(plays):
    play = plays["MultiCVRP-v0"]
    library, timesteps, running = play.states.library, play.timesteps, play.running()
    demands, free = library.nodes.demands[:, :, None], library.vehicles.capacities[..., None]
    legal = (demands > 0) & (demands <= free)
    legal[..., 0] = True
    np.testing.assert_array_equal(timesteps.action_mask, legal)
    np.testing.assert_allclose(timesteps.metrics["served"], (library.nodes.demands[..., 1:] == 0).mean(-1))
    np.testing.assert_allclose(timesteps.metrics["distance"], library.vehicles.distances.sum(-1), rtol=1e-6)
    np.testing.assert_array_equal(timesteps.metrics["success"][running], play.ends()[0][running])


def test_multi_cvrp_truly_ends_by_its_own_count_of_steps(plays):
    """The last reward stands for all that is still to be driven, so there is no future to add to it."""
    env = jumanji.make("MultiCVRP-v0", num_customers=6)
    assert env.spec.episode_limit == 12
    state = jax.tree.map(lambda leaf: leaf[0, 0], plays["MultiCVRP-v0"].states)
    late = state.replace(steps=jnp.int32(11), library=state.library.replace(step_count=jnp.int16(12)))
    step = jax.jit(env.transition, compiler_options=QUICKLY)
    after, timestep = step(jax.random.PRNGKey(0), late, jnp.zeros(2, jnp.int32), ())
    assert timestep.terminated and not timestep.truncated and not timestep.discount.any()
    trips = np.linalg.norm(state.library.nodes.coordinates - state.library.nodes.coordinates[0], axis=-1)
    assert np.all(timestep.reward <= -2 * trips[state.library.nodes.demands > 0].sum() + 1e-3)
    assert timestep.metrics["success"] == 0 and after.steps == 12


def test_robot_warehouse_sees_what_jumanji_does(plays):
    play = plays["RobotWarehouse-v0"]
    running, timesteps, library = play.running(), play.timesteps, play.states.library
    np.testing.assert_array_equal(timesteps.observation[running], play.library_timesteps.observation.agents_view[running])
    np.testing.assert_array_equal(timesteps.metrics["collision"][running], play.ends()[0][running])
    places = np.stack(library.agents.position, axis=-1) / np.array([3, 9])
    seen = worlds(play)
    np.testing.assert_allclose(seen[..., :6], places.reshape(*running.shape, -1), rtol=1e-6)
    np.testing.assert_array_equal(seen[..., 6:9], library.agents.is_carrying)
    np.testing.assert_array_equal(seen[..., -4:], library.shelves.is_requested)


def test_robot_warehouse_pays_the_team_for_a_requested_shelf(plays):
    """Robot 0 carries a shelf onto a goal: all are paid if it was requested, and another shelf is."""
    play = plays["RobotWarehouse-v0"]
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), play.states)
    rows, columns = jnp.array([2, 0, 0], jnp.int32), jnp.array([4, 0, 9], jnp.int32)

    def deliver(key, shelf):
        agents, grid = state.library.agents, jnp.zeros_like(state.library.grid)
        agents = agents._replace(
            position=agents.position._replace(x=rows, y=columns),
            direction=jnp.full(3, 2, agents.direction.dtype),  # down
            is_carrying=agents.is_carrying.at[0].set(1),
        )
        grid = grid.at[0, 2, 4].set(shelf + 1).at[1, rows, columns].set(jnp.arange(1, 4))
        carrying = state.replace(library=state.library.replace(grid=grid, agents=agents))
        after, timestep = play.env.transition(key, carrying, jnp.array([1, 0, 0], jnp.int32), ())
        return after.library.request_queue, timestep

    keys = jax.random.split(jax.random.PRNGKey(1), 4)
    queues, timesteps = jax.jit(jax.vmap(deliver), compiler_options=QUICKLY)(keys, jnp.arange(4))
    before = set(np.asarray(state.library.request_queue).tolist())
    requested = np.isin(np.arange(4), list(before))
    assert requested.sum() == 2 and not timesteps.last.any()
    np.testing.assert_array_equal(timesteps.reward, np.repeat(requested[:, None], 3, axis=1))
    np.testing.assert_array_equal(timesteps.metrics["deliveries"], requested)
    for shelf, queue in enumerate(np.asarray(queues).tolist()):
        kept = before - {shelf}
        assert shelf not in queue and kept < set(queue) or set(queue) == kept == before


def test_search_and_rescue_sees_and_pays_what_jumanji_does(plays):
    play = plays["SearchAndRescue-v0"]
    running, timesteps, library = play.running(), play.timesteps, play.library_timesteps.observation
    views = library.searcher_views.reshape(*running.shape, 2, 24)
    np.testing.assert_allclose(timesteps.observation[..., :24][running], views[running], atol=1e-6)
    steps = play.states.steps
    for feature, expected in ((24, 1 - timesteps.metrics["found"]), (25, steps / 12)):
        np.testing.assert_allclose(timesteps.observation[..., feature], np.repeat(expected[..., None], 2, axis=-1), atol=1e-6)
    found = play.states.library.targets.found.sum(-1)
    paid, news = timesteps.reward[:, 1:].sum(-1), np.diff(found)
    np.testing.assert_allclose(paid, news * (1 - steps[:, :-1] / 12), atol=1e-5)
    assert np.any(timesteps.reward[:, 1:, 0] != timesteps.reward[:, 1:, 1])
    np.testing.assert_allclose(timesteps.metrics["found"], found / 3, atol=1e-6)
    np.testing.assert_array_equal(timesteps.metrics["success"][running], play.ends()[0][running])


def test_search_and_rescue_world_is_the_full_state(plays):
    play = plays["SearchAndRescue-v0"]
    searchers, targets, seen = play.states.library.searchers, play.states.library.targets, worlds(play)
    parts = [
        searchers.pos,
        np.cos(searchers.heading),
        np.sin(searchers.heading),
        searchers.speed / 0.02,
        targets.pos,
        targets.vel / 0.002,
        targets.found,
        play.states.steps / 12,
    ]
    np.testing.assert_allclose(seen, np.concatenate([p.reshape(*seen.shape[:2], -1) for p in parts], axis=-1), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "theirs", "attributes"),
    [
        ("Cleaner-v0", Cleaner, "num_rows num_cols num_agents penalty_per_timestep time_limit"),
        ("MMST-v0", MMST, "num_nodes num_agents num_nodes_per_agent time_limit _generator._num_edges _generator._max_degree"),
        ("MultiCVRP-v0", MultiCVRP, "_num_customers _num_vehicles"),
        ("RobotWarehouse-v0", RobotWarehouse, "grid_size num_agents sensor_range request_queue_size time_limit"),
        (
            "SearchAndRescue-v0",
            SearchAndRescue,
            "target_contact_range searcher_params time_limit _target_dynamics.acc_std _target_dynamics.vel_max "
            "generator.num_targets generator.num_searchers generator.env_size _observation_fn.num_vision "
            "_observation_fn.searcher_vision_range _observation_fn.target_vision_range _observation_fn.view_angle "
            "_observation_fn.agent_radius _reward_fn.split_rewards _reward_fn.scale_rewards",
        ),
    ],
)
def test_defaults_are_the_librarys(name, theirs, attributes):
    def look(owner, path):
        for part in path.split("."):
            owner = getattr(owner, part)
        return owner

    ours, library = jumanji.make(name), theirs()
    for path in attributes.split():
        expected = look(library, path) + 1 if path == "time_limit" else look(library, path)
        assert look(ours.library, path) == expected, path


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("Cleaner-v0", {"grid_size": 1}, "grid_size must be a whole number, at least 2, got 1"),
        ("Cleaner-v0", {"num_agents": 0}, "num_agents must be a whole number, at least 1, got 0"),
        ("MMST-v0", {"num_nodes_per_agent": 10}, r"at most 0.8 num_nodes, got 3 \* 10 and num_nodes 36"),
        ("MMST-v0", {"num_agents": 1}, "num_agents must be a whole number, at least 2, got 1"),
        ("MMST-v0", {"num_edges": 34}, "num_edges must be num_nodes - 1 ... 101 .* got 34"),
        ("MMST-v0", {"max_degree": 2}, "num_edges must be num_nodes - 1 ... 52 for max_degree 2 .* got 72"),
        ("MultiCVRP-v0", {"num_customers": 7}, "num_customers must be one of 6, 20, 50, 100, 150, got 7"),
        ("MultiCVRP-v0", {"num_agents": 4}, "num_agents must be 2 or 3 for num_customers 20, got 4"),
        ("RobotWarehouse-v0", {"shelf_columns": 2}, "shelf_columns must be odd, got 2"),
        ("RobotWarehouse-v0", {"sensor_range": 0}, "sensor_range must be a whole number, at least 1, got 0"),
        ("RobotWarehouse-v0", {"request_queue_size": 80}, "80 shelves are too few .* request_queue_size 80"),
        ("SearchAndRescue-v0", {"target_vision_range": 2.0}, "at most env_size 1.0, got 0.02, 0.4, 2.0"),
        ("SearchAndRescue-v0", {"searcher_max_speed": 0.001}, "got 0.005 and 0.001"),
        ("SearchAndRescue-v0", {"num_searchers": 3}, "unknown argument of jumanji/SearchAndRescue-v0 'num_searchers'"),
    ],
)
def test_bad_input_is_one_clear_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        jumanji.make(name, **kwargs)

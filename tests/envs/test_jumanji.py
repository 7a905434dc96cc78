"""jumanji's adapters against jumanji itself, over whole episodes of random play, nine actions in ten legal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jumanji.environments import Connector, LevelBasedForaging, Snake
from jumanji.environments.routing.connector.generator import RandomWalkGenerator
from jumanji.environments.routing.lbf.generator import RandomGenerator

import envs_jax
from envs_jax.adapters import jumanji

from . import jumanji_play
from .jumanji_play import EPISODES, LONG, QUICKLY, STEPS, Case, play_case

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # jumanji's LevelBasedForaging relies on rank promotion

CASES = {
    "LevelBasedForaging-v0": Case(
        {"grid_size": 6, "fov": 2, "num_food": 1, "force_coop": False, "time_limit": 14},
        lambda: LevelBasedForaging(RandomGenerator(6, 2, 1, 2, 2, False), time_limit=LONG),
    ),
    "Connector-v3": Case(
        {"grid_size": 5, "num_agents": 3, "time_limit": 14},
        lambda: Connector(RandomWalkGenerator(5, 3), time_limit=LONG),
    ),
    "Snake-v1": Case(
        {"num_rows": 3, "num_cols": 3, "time_limit": 25},
        lambda: Snake(3, 3, time_limit=LONG),
    ),
}


@pytest.fixture(scope="module")
def plays():
    return {name: play_case(name, case) for name, case in CASES.items()}


@pytest.fixture(params=CASES)
def play(request, plays):
    return plays[request.param]


def test_states_rewards_ends_and_masks_are_the_librarys(play):
    jumanji_play.check_equal(play)


def test_a_limit_is_exact_and_no_death(play):
    jumanji_play.check_limit(play)


def test_a_true_end_on_the_last_step_is_not_cut(play):
    jumanji_play.check_true_end_at_limit(play)


def test_the_end_absorbs(play):
    jumanji_play.check_absorbing(play)


def test_the_registry_knows_it(play):
    assert f"jumanji/{play.name}" in envs_jax.ids() and play.env.reset_mode == "pool"
    assert envs_jax.resolve(f"jumanji/{play.name}".rpartition("-v")[0]) == f"jumanji/{play.name}"


def test_spaces_contain_what_is_emitted(play):
    jumanji_play.check_spaces(play)


def test_reset_and_step_agree_in_shape_and_strong_dtype(play):
    env, key = play.env, jax.random.PRNGKey(0)
    start = jax.eval_shape(env.reset, key, ())
    action = jax.eval_shape(env.spec.sample_actions, key, start[1])
    later = jax.eval_shape(env.transition, key, start[0], action, ())
    assert jax.tree.structure(start) == jax.tree.structure(later)
    for before, after in zip(jax.tree.leaves(start), jax.tree.leaves(later), strict=True):
        assert (before.shape, before.dtype, before.weak_type) == (after.shape, after.dtype, False)


def test_typed_keys_are_accepted():
    env = jumanji.make("Snake-v1", num_rows=3, num_cols=3)
    state, _ = jax.eval_shape(env.reset, jax.random.key(0), ())
    later, _ = jax.eval_shape(env.step, jax.random.key(0), state, jnp.int32(0), ())
    assert jax.tree.map(lambda leaf: leaf.dtype, state) == jax.tree.map(lambda leaf: leaf.dtype, later)


def test_level_based_foraging_sees_and_measures_what_jumanji_does(plays):
    play = plays["LevelBasedForaging-v0"]
    running, timesteps, library = play.running(), play.timesteps, play.library_timesteps
    np.testing.assert_array_equal(timesteps.observation[running], library.observation.agents_view[running])
    np.testing.assert_allclose(timesteps.metrics["eaten"][running], library.extras["percent_eaten"][running] / 100)
    np.testing.assert_array_equal(timesteps.metrics["success"], play.ends()[0])
    np.testing.assert_allclose(timesteps.reward.sum((1, 2)), timesteps.metrics["eaten"][:, -1], atol=1e-6)
    assert np.all(timesteps.alive)


def test_level_based_foraging_masks_are_its_rules(plays):
    play = plays["LevelBasedForaging-v0"]
    agents, food = play.states.library.agents, play.states.library.food_items
    moves = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]])
    for where in np.ndindex(EPISODES, STEPS + 1):
        left = {tuple(place) for place in food.position[where][~food.eaten[where]]}
        for me in range(2):
            place, other = agents.position[where][me], tuple(agents.position[where][1 - me])
            targets = [tuple(place + move) for move in moves]
            legal = [min(t) >= 0 and max(t) < 6 and t not in left and t != other for t in targets]
            legal.append(any(target in left for target in targets))
            np.testing.assert_array_equal(play.timesteps.action_mask[where][me], legal)


def test_level_based_foraging_world_is_the_full_state(plays):
    play = plays["LevelBasedForaging-v0"]
    space = play.env.spec.world_space
    worlds = np.asarray(jax.vmap(jax.vmap(lambda state: play.env.world(state, ())))(play.states))
    assert np.all(jax.vmap(space.contains)(worlds.reshape(-1, *space.shape)))
    np.testing.assert_allclose(worlds[:, 0, :4] * 5, play.states.library.agents.position[:, 0].reshape(EPISODES, 4), atol=1e-5)
    np.testing.assert_array_equal(worlds[..., -1], play.states.library.food_items.eaten[..., 0])


def test_level_based_foraging_defaults_and_the_published_task():
    theirs, ours = LevelBasedForaging(), jumanji.make("LevelBasedForaging-v0")
    for name in ("grid_size", "fov", "num_agents", "num_food", "normalize_reward", "penalty"):
        assert getattr(ours.library, name) == getattr(theirs, name)
    assert (ours.spec.episode_limit, ours.library.time_limit) == (theirs.time_limit, theirs.time_limit + 1)
    assert ours.library._generator.force_coop and ours.library._generator.max_agent_level == 2
    published = jumanji.make("LevelBasedForaging-v0", fov=2)
    assert published.library.fov == 2 and published.spec.observation_space.shape == (12,)


def test_connector_gives_every_agent_its_own_view(plays):
    play = plays["Connector-v3"]
    running, grids = play.running(), play.library_timesteps.observation.grid
    path, head, target = 1, 2, 3
    for where in np.argwhere(running):
        grid, view = grids[tuple(where)], play.timesteps.observation[tuple(where)]
        for me in range(3):
            for channel, code in enumerate((head, target, path)):
                np.testing.assert_array_equal(view[me, ..., channel], grid == 3 * me + code)
                others = np.isin(grid, [3 * other + code for other in range(3) if other != me])
                np.testing.assert_array_equal(view[me, ..., 3 + channel], others)


def test_connector_masks_are_its_rules(plays):
    play = plays["Connector-v3"]
    grids, agents = play.states.library.grid, play.states.library.agents
    for where in np.ndindex(EPISODES, STEPS + 1):
        for me in range(3):
            row, column = agents.position[where][me]
            arrived = np.array_equal(agents.position[where][me], agents.target[where][me])
            legal = [True]
            for r, c in ((row - 1, column), (row, column + 1), (row + 1, column), (row, column - 1)):
                legal.append(0 <= r < 5 and 0 <= c < 5 and not arrived and grids[where][r, c] in (0, 3 * me + 3))
            np.testing.assert_array_equal(play.timesteps.action_mask[where][me], legal)


def test_connector_pays_the_walled_in_and_not_the_connected(plays):
    play = plays["Connector-v3"]
    timesteps, connected = play.timesteps, np.asarray(play.states.library.agents.connected)
    going_on = play.running() & ~timesteps.last
    stuck = ~timesteps.action_mask[..., 1:].any(-1) & ~connected & going_on[..., None]
    assert (connected & going_on[..., None]).any() and stuck.any(), "the sample must hold both"
    np.testing.assert_array_equal(timesteps.alive, ~connected)
    np.testing.assert_array_equal(timesteps.discount[going_on], ~connected[going_on])
    np.testing.assert_allclose(timesteps.reward[:, 1:][stuck[:, :-1]], -0.03)
    assert np.all(timesteps.reward[:, 1:][connected[:, :-1]] == 0)
    for name, truth in (("ratio_connections", connected.mean(-1)), ("success", connected.all(-1))):
        np.testing.assert_allclose(timesteps.metrics[name], truth)
    running, ratio = play.running(), play.library_timesteps.extras["ratio_connections"]
    np.testing.assert_allclose(timesteps.metrics["ratio_connections"][running], ratio[running])


def test_connector_world_is_the_full_state(plays):
    play = plays["Connector-v3"]
    space, library = play.env.spec.world_space, play.states.library
    worlds = np.asarray(jax.vmap(jax.vmap(lambda state: play.env.world(state, ())))(play.states))
    assert np.all(jax.vmap(space.contains)(worlds.reshape(-1, *space.shape)))
    built = (library.grid > 0) & (library.grid % 3 != 0)
    expected = [built, library.agents.position / 4, library.agents.target / 4, library.agents.connected]
    np.testing.assert_allclose(worlds, np.concatenate([part.reshape(EPISODES, STEPS + 1, -1) for part in expected], axis=-1))


def test_snake_sees_and_scores_what_jumanji_does(plays):
    play = plays["Snake-v1"]
    running, timesteps = play.running(), play.timesteps
    np.testing.assert_array_equal(timesteps.observation[running], play.library_timesteps.observation.grid[running])
    np.testing.assert_array_equal(timesteps.metrics["score"], np.cumsum(timesteps.reward, axis=1))
    assert play.env.spec.world_space is None and play.env.spec.num_agents is None


def test_snake_by_brute_force(plays):
    """An action ends the episode exactly if the mask forbids it; the fruit that follows one comes from the step's key."""
    play = plays["Snake-v1"]
    transition = jax.jit(jax.vmap(play.env.transition, (0, 0, 0, None)), compiler_options=QUICKLY)
    count = 4 * EPISODES * (STEPS + 1)
    keys = jax.random.split(jax.random.PRNGKey(1), count)
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]).repeat(4, axis=0), play.states)
    after, timesteps = transition(keys, states, jnp.arange(count, dtype=jnp.int32) % 4, ())
    full = np.asarray(after.library.body).all((1, 2))
    looked = ~full & ~play.timesteps.last.ravel().repeat(4)
    legal = play.timesteps.action_mask.ravel()
    assert (~play.timesteps.action_mask.any(-1)).any(), "the sample must hold a snake that is shut in"
    np.testing.assert_array_equal(np.asarray(after.ended)[looked], ~legal[looked])
    feeding = np.argmax(np.asarray(timesteps.reward) * looked)
    state = jax.tree.map(lambda leaf: leaf[feeding][None].repeat(count, axis=0), states)
    fed, _ = transition(keys, state, jnp.full(count, feeding % 4, jnp.int32), ())
    places = np.stack([fed.library.fruit_position.row, fed.library.fruit_position.col], axis=-1)
    free = 9 - int(np.asarray(fed.library.body)[0].sum())
    assert len(np.unique(places, axis=0)) == free > 1


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("Conector-v3", {}, "did you mean Connector-v3"),
        ("Snake-v1", {"num_row": 3}, "unknown argument of jumanji/Snake-v1 'num_row': did you mean num_rows"),
        ("Snake-v1", {"time_limit": 0}, "time_limit must be a whole number of steps, at least 1, got 0"),
        ("Snake-v1", {"num_rows": 0}, "at least two cells, got 0 and 12"),
        ("LevelBasedForaging-v0", {"time_limit": 2.5}, "got 2.5"),
        ("LevelBasedForaging-v0", {"num_food": 9}, "'num_food': 9.*Ensure enough non-edge positions"),
        ("LevelBasedForaging-v0", {"fov": 9}, "'fov': 9.*Field of view"),
        ("Connector-v3", {"grid_size": 3, "num_agents": 5}, r"num_agents must be 1 ... grid_size\^2 / 2, got 5"),
    ],
)
def test_bad_input_is_one_clear_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        jumanji.make(name, **kwargs)

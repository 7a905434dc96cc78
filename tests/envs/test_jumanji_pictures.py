"""Pictures of jumanji's environments of several agents: every cell of a state is seen in its square."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jumanji.environments.routing.connector.constants import EMPTY, TARGET

import envs_jax
from envs_jax.adapters.jumanji.cleaner import CLEAN, DIRTY, WALL
from envs_jax.adapters.jumanji.level_based_foraging import FOOD, LOADING
from envs_jax.pictures import GROUND, SHADES, TILE, palette

from .contract import QUICK

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # jumanji's LevelBasedForaging relies on rank promotion
KEY = jax.random.PRNGKey(0)


def squares(env, state):
    """The squares of the picture, [h, w, 24, 24, 3]."""
    picture = np.asarray(jax.jit(env.render, compiler_options=QUICK)(state))
    assert picture.dtype == np.uint8
    side = len(picture) // TILE
    return picture.reshape(side, TILE, side, TILE, 3).swapaxes(1, 2)


def test_foraging_shows_levels_loading_and_what_is_eaten():
    env = envs_jax.make("jumanji/LevelBasedForaging-v0", grid_size=6)
    state = env.initial(KEY, env.default_params)
    agents, food = state.library.agents, state.library.food_items
    agents = agents.replace(
        position=jnp.asarray([[1, 1], [4, 2]]), level=jnp.asarray([1, 2]), loading=jnp.asarray([False, True])
    )
    food = food.replace(position=jnp.asarray([[2, 2], [3, 4]]), level=jnp.asarray([4, 4]), eaten=jnp.asarray([False, True]))
    seen = squares(env, state.replace(library=state.library.replace(agents=agents, food_items=food)))
    assert seen.shape[:2] == (6, 6)

    def area(row, column, colour):
        return (seen[row, column] == np.asarray(colour)).all(-1).sum()

    one, two = palette(2)
    assert 0 < area(1, 1, one) < area(4, 2, two) < area(2, 2, FOOD), "levels 1, 2 and 4"
    assert area(4, 2, LOADING) > 0 == area(1, 1, LOADING)
    assert area(3, 4, SHADES[1]) == TILE**2, "eaten"


def test_a_connector_shows_heads_targets_and_paths_by_colour():
    env = envs_jax.make("jumanji/Connector-v3", grid_size=5, num_agents=2)
    state = env.initial(KEY, env.default_params)
    grid = np.zeros((5, 5), np.int32)
    grid[0, :3], grid[4, 4], grid[2, 2], grid[2, 4] = (1, 1, 2), 3, 5, 6
    seen = squares(env, state.replace(library=state.library.replace(grid=jnp.asarray(grid))))
    first, second = palette(2)
    middle = {place: tuple(seen[place][12, 12]) for place in np.ndindex(5, 5)}
    assert [middle[0, 0], middle[0, 1], middle[0, 2]] == 3 * [first] and middle[2, 2] == second
    areas = [(seen[place] == np.asarray(first)).all(-1).sum() for place in ((0, 0), (0, 1), (0, 2))]
    assert areas[0] == areas[1] < areas[2], "the head is larger"
    assert middle[4, 4] == middle[2, 4] == GROUND and tuple(seen[4, 4][12, 20]) == first, "a ring"
    assert tuple(seen[2, 4][12, 20]) == second and EMPTY == 0 and TARGET == 3
    free = [place for place in np.ndindex(5, 5) if grid[place] == EMPTY]
    assert all((seen[place] == np.asarray(SHADES[sum(place) % 2])).all() for place in free)


def test_a_cleaner_shows_tiles_and_agents():
    env = envs_jax.make("jumanji/Cleaner-v0", grid_size=4, num_agents=2)
    state = env.initial(KEY, env.default_params)
    grid = np.full((4, 4), WALL)
    grid[0], grid[1, 0] = CLEAN, DIRTY
    places = jnp.asarray([[0, 0], [0, 0]])
    seen = squares(env, state.replace(library=state.library.replace(grid=jnp.asarray(grid), agents_locations=places)))
    corner = {kind: tuple(seen[place][0, 0]) for kind, place in ((CLEAN, (0, 0)), (DIRTY, (1, 0)), (WALL, (3, 3)))}
    assert corner[WALL] == GROUND and len(set(corner.values())) == 3
    inner, outer = palette(2)[::-1]
    assert tuple(seen[0, 0][12, 12]) == inner and tuple(seen[0, 0][12, 20]) == outer, "both stand on one tile"

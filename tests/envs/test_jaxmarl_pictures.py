"""Pictures of jaxmarl's environments: what is where in a state is there in the picture."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax
from envs_jax.adapters.jaxmarl import battle
from envs_jax.adapters.jaxmarl.catalogue import ENVIRONMENTS
from envs_jax.adapters.jaxmarl.kitchen import CELLS, COOKS, GOAL, HOT, POT, SOUP, TILE, draw, kitchen
from envs_jax.core import Env
from envs_jax.pictures import GROUND

from .contract import QUICK, relaxed
from .test_jaxmarl import kitchen_script

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # the library relies on rank promotion


@pytest.fixture(scope="module")
def kitchens():
    """What of both versions is drawn while one cook makes and serves a soup, [T + 1, ...] each."""

    def play(version: int) -> Any:
        env = envs_jax.make(f"jaxmarl/overcooked_{'v2_' if version == 2 else ''}cramped_room")

        def step(state, action):
            after, _ = env.transition(jax.random.PRNGKey(1), state, action, env.default_params)
            return after, kitchen(version, after.library)

        def program():
            state = env.initial(jax.random.PRNGKey(0), env.default_params)
            _, later = jax.lax.scan(step, state, jnp.asarray(kitchen_script(version), jnp.int32))
            return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), kitchen(version, state.library), later)

        return jax.device_get(jax.jit(program, compiler_options=QUICK)())

    with relaxed():
        return {version: play(version) for version in (1, 2)}


def test_both_versions_of_overcooked_are_read_alike(kitchens):
    """The same soup in the same kitchen; version 2 counts the cooks from the other side, and turns all to the north first."""
    one, two = kitchens[1], kitchens[2]
    for name in ("cells", "things", "heat"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.place, two.place[:, ::-1])
    np.testing.assert_array_equal(one.held, two.held[:, ::-1])
    moved = np.flatnonzero((one.place[1:, 0] != one.place[:-1, 0]).any(-1))[0] + 1
    np.testing.assert_array_equal(one.facing[moved:, 0], two.facing[moved:, 1])


def test_a_soup_is_seen_from_the_onions_to_the_plate(kitchens):
    one = kitchens[1]
    pot = one.things[one.cells == POT]
    changes = [int(thing) for thing, before in zip(pot[1:], pot[:-1], strict=True) if thing != before]
    assert changes == [4, 8, 12, 14, 0], "three onions, cooked, taken"
    assert one.heat.sum() == 19 and not one.heat[one.things == 14].any()
    held = one.held[:, 0]
    changes = [int(thing) for thing, before in zip(held[1:], held[:-1], strict=True) if thing != before]
    assert changes == 3 * [4, 0] + [1, 15, 0], "onions, a plate, a soup on it, which is served"


def test_a_kitchen_is_drawn_cell_by_cell(kitchens):
    one = kitchens[1]
    hot = int(np.flatnonzero(one.heat.any((1, 2)))[0])
    served = int(np.flatnonzero(one.held[:, 0] == 15)[0])
    pictures = np.asarray(jax.jit(jax.vmap(draw))(jax.tree.map(lambda x: x[np.array([0, hot, served])], one)))
    height, width = one.cells.shape[1:]
    assert pictures.dtype == np.uint8 and pictures.shape == (3, TILE * height, TILE * width, 3)
    tiles = pictures.reshape(3, height, TILE, width, TILE, 3).swapaxes(2, 3)
    floors = np.asarray(CELLS)[one.cells[0]]
    np.testing.assert_array_equal(tiles[0, :, :, 0, 0], floors)  # nothing reaches a corner
    np.testing.assert_array_equal(tiles[0][one.cells[0] == GOAL], np.broadcast_to(CELLS[GOAL], (1, TILE, TILE, 3)))

    def shown(moment, row, column):
        return {tuple(pixel) for pixel in tiles[moment, row, column].reshape(-1, 3)}

    assert COOKS[0] in shown(0, *one.place[0, 0]) and COOKS[1] in shown(0, *one.place[0, 1])
    assert HOT in shown(1, *np.argwhere(one.heat[hot])[0]) and SOUP in shown(2, *one.place[served, 0])
    ahead = ((4, 12), (19, 12), (12, 19), (12, 4))  # up, down, right, left
    for (row, column), facing in zip(one.place[0], one.facing[0], strict=True):
        assert [tuple(tiles[0, row, column][pixel]) == (250, 250, 250) for pixel in ahead] == [i == facing for i in range(4)]


def test_every_kind_is_drawn_from_its_states():
    """One environment of each class; pictures of two states differ, and all have the declared form."""
    for name in ("MPE_simple_world_comm_v3", "MPE_simple_facmac_3a_v1", "overcooked_v2_test_time_wide"):
        env = envs_jax.make(f"jaxmarl/{name}")
        begin = jax.vmap(lambda key, env=env: env.render(env.initial(key, env.default_params)))
        pictures = np.asarray(jax.jit(begin, compiler_options=QUICK)(jax.random.split(jax.random.PRNGKey(0), 2)))
        assert pictures.dtype == np.uint8 and pictures.ndim == 4 and pictures.shape[-1] == 3
        assert len(np.unique(pictures[0].reshape(-1, 3), axis=0)) >= 4
        assert name.startswith("overcooked") or (pictures[0] != pictures[1]).any()


def test_particles_are_where_they_are():
    env = envs_jax.make("jaxmarl/MPE_simple_tag_v3")
    state = env.initial(jax.random.PRNGKey(0), env.default_params)
    places = jnp.stack([jnp.linspace(-1, 1, 6), jnp.linspace(0.8, -0.8, 6)], axis=-1)
    picture = np.asarray(env.render(state.replace(library=state.library.replace(p_pos=places))))
    pixels = [picture[int(80 - 80 * y / 1.2), int(80 + 80 * x / 1.2)] for x, y in np.asarray(places)]
    np.testing.assert_array_equal(pixels, np.asarray(env.library.colour))


def test_a_battle_shows_who_lives_and_who_shoots_whom():
    env = envs_jax.make("jaxmarl/smax_3m")
    state = env.initial(jax.random.PRNGKey(0), env.default_params)
    units = state.library.state
    places = jnp.asarray([[10, 10], [10, 16], [10, 22], [22, 10], [22, 16], [22, 22]], jnp.float32)
    units = units.replace(
        unit_positions=places,
        unit_alive=jnp.asarray([True, True, False, True, True, True]),
        unit_health=jnp.asarray([45.0, 9.0, 0.0, 45.0, 45.0, 45.0]),
        prev_attack_actions=jnp.asarray([5, 0, 6, 0, 0, 6]),  # two at the first of their list, two at the second
    )
    picture = np.asarray(env.render(state.replace(library=state.library.replace(state=units)))).astype(int)

    def at(x, y):
        return tuple(picture[int(160 - 20 * (y - 16)), int(160 + 20 * (x - 16))])

    assert at(10, 10) == battle.ALLY and {at(*place) for place in ((22, 10), (22, 16), (22, 22))} == {battle.ENEMY}
    assert at(10, 22) == at(9, 9) == GROUND, "the dead are not drawn"
    np.testing.assert_allclose(at(10, 16), np.asarray(battle.ALLY) * (0.35 + 0.65 * 0.2), atol=1)
    assert at(13, 10) == at(19, 20.5) == battle.SHOT
    assert at(16, 16) == GROUND, "the second enemy and the dead ally shoot at nobody"


def test_each_environment_of_the_library_draws():
    assert all(build.render is not Env.render for build, _ in ENVIRONMENTS.values())

"""Rules of jaxmarl's environments that chance seldom reaches, each in one step from a state that is made for it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs_jax

from .contract import QUICK

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")  # the library relies on rank promotion
UP, DOWN, RIGHT, LEFT = range(4)
INTERACT = 5  # of Overcooked, version 2
PLATE, COOKED, ONION, TOMATO = 1, 2, 4, 16  # kinds 0 and 1, one of each
SOUP = PLATE | COOKED
POT = (4, 2)  # x and y in grounded_coord_simple; the button is at (3, 2), and soups are served at (7, 2)


@functools.cache
def program(arguments):
    """(key, cooks' x, y, facing and held, what is in the pot) -> TimeStep and pot after both interacted. Wanted: 3 onions."""
    env = envs_jax.make("jaxmarl/overcooked_v2_grounded_coord_simple", reward="individual", **dict(arguments))

    def step(key, x, y, facing, held, pot):
        state = env.initial(key, env.default_params)
        own = state.library
        place = own.agents.pos.replace(x=x.reshape(own.agents.pos.x.shape), y=y.reshape(own.agents.pos.y.shape))
        turned = {"dir": facing.reshape(own.agents.dir.shape), "inventory": held.reshape(own.agents.inventory.shape)}
        cooks, grid = own.agents.replace(pos=place, **turned), own.grid.at[POT[1], POT[0], 1].set(pot)
        own = own.replace(agents=cooks, grid=grid, recipe=jnp.full_like(own.recipe, 3 * ONION))
        action = jnp.full(2, INTERACT, jnp.int32)
        after, timestep = env.transition(key, state.replace(library=own), action, env.default_params)
        return timestep, after.library.grid[POT[1], POT[0]]

    return jax.jit(step, compiler_options=QUICK)


def played(cooks, pot=0, **arguments):
    columns = (jnp.asarray(column) for column in zip(*cooks, strict=True))
    return jax.device_get(program(tuple(arguments.items()))(jax.random.PRNGKey(0), *columns, pot))


def facing_wall():
    return (1, 1, UP, 0)


def at_button():
    return (2, 2, RIGHT, 0)


def at_goal(food):
    return (6, 2, RIGHT, SOUP | food)


def at_pot(held):
    return (5, 2, LEFT, held)


@pytest.mark.parametrize(
    ("cooks", "negative", "paid", "deliveries"),
    [
        ((facing_wall(), at_goal(3 * ONION)), True, 20, 1),
        ((facing_wall(), at_goal(3 * TOMATO)), True, -20, 0),
        ((facing_wall(), at_goal(3 * TOMATO)), False, 0, 0),
        ((facing_wall(), at_goal(2 * ONION | TOMATO)), True, -20, 0),
        ((at_button(), facing_wall()), False, -5, 0),
        ((at_button(), at_goal(3 * ONION)), False, 15, 1),
    ],
)
def test_right_and_wrong_soups_and_the_button(cooks, negative, paid, deliveries):
    """A soup counts as delivered though another cook is charged in the same step."""
    timestep, _ = played(cooks, negative_rewards=negative)
    np.testing.assert_array_equal(timestep.reward, [paid, paid])
    assert timestep.metrics["deliveries"] == deliveries and timestep.metrics["shaped_reward"] == 0


@pytest.mark.parametrize(
    ("held", "pot", "switch", "shaped", "after"),
    [
        (ONION, 2 * ONION, False, 3, (3 * ONION, 19)),  # starts to cook by itself, and cooks already
        (ONION, 2 * ONION, True, 3, (3 * ONION, 0)),
        (TOMATO, 2 * ONION, False, 0, (2 * ONION | TOMATO, 19)),
        (0, 3 * ONION, True, 5, (3 * ONION, 19)),
        (0, 3 * TOMATO, True, 0, (3 * TOMATO, 19)),
        (0, 2 * ONION, False, 0, (2 * ONION, 0)),
        (PLATE, COOKED | 3 * ONION, False, 5, (0, 0)),
        (PLATE, COOKED | 3 * TOMATO, False, 0, (0, 0)),
    ],
)
def test_what_shapes_is_what_the_recipe_wants(held, pot, switch, shaped, after):
    """3 for an ingredient of the recipe, 5 for switching its pot on, 5 for its soup on a plate; nothing for others."""
    timestep, cell = played((facing_wall(), at_pot(held)), pot, start_cooking_interaction=switch)
    assert timestep.metrics["shaped_reward"] == shaped and (timestep.reward == 0).all()
    assert tuple(cell[1:]) == after


def test_a_dead_unit_neither_moves_nor_shoots_nor_is_in_the_way():
    """A living one walks over it as if it were not there."""
    env = envs_jax.make("jaxmarl/smax_3m")
    far, path = (2.0, 30.0), (10.0, 10.4)

    def after(place, alive):
        state = env.initial(jax.random.PRNGKey(0), env.default_params)
        own = state.library.state
        places = jnp.asarray([[10.0, 10.0], [14.0, 20.0], [0.0, 0.0], [22.0, 10.0], [22.0, 16.0], [22.0, 22.0]])
        dead = jnp.ones(6, bool).at[2].set(alive)
        own = own.replace(unit_positions=places.at[2].set(place), unit_alive=dead, unit_health=own.unit_health * dead)
        state = state.replace(library=state.library.replace(state=own))
        north, shoot = 0, 5
        action = jnp.asarray([north, 4, shoot], jnp.int32)
        after, timestep = env.transition(jax.random.PRNGKey(1), state, action, env.default_params)
        return after.library.state, timestep

    program = jax.jit(jax.vmap(after), compiler_options=QUICK)
    units, timestep = jax.device_get(program(jnp.asarray([far, path, path]), jnp.asarray([False, False, True])))
    positions, health = units.unit_positions, units.unit_health
    assert positions[0, 0, 1] > 10.4, "it walked north"
    np.testing.assert_allclose(positions[0, [0, 1, 3, 4, 5]], positions[1, [0, 1, 3, 4, 5]], atol=1e-5)
    assert np.abs(positions[2, 0] - positions[1, 0]).max() > 0.1, "a living one is in the way"
    np.testing.assert_allclose(positions[:2, 2], [far, path])
    np.testing.assert_array_equal(health[0], health[1])
    assert not timestep.alive[:2, 2].any() and (health[:2, 2] == 0).all() and (health[:2, 3:] == health[0, 3]).all()


def test_continuous_actions_of_smax_are_finite_at_their_ends_and_fixed_by_the_key():
    env = envs_jax.make("jaxmarl/smax_3m", action_type="continuous")
    ends = jnp.stack([jnp.zeros((3, 4)), jnp.ones((3, 4)), jnp.full((3, 4), 0.5), jnp.eye(4)[:3]])

    def after(action, key):
        state = env.initial(jax.random.PRNGKey(0), env.default_params)
        return env.transition(key, state, action, env.default_params)

    program = jax.jit(jax.vmap(after, (0, None)), compiler_options=QUICK)
    one, again = (jax.device_get(program(ends, jax.random.PRNGKey(1))) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, one, again)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(one) if np.issubdtype(x.dtype, np.floating))

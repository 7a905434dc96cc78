"""Pictures of Overcooked's kitchens, the same for both versions of the library."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from envs_jax.pictures import TILE, Colour, palette, pieces, spots, tiles

FLOOR, COUNTER, PILE, POT, GOAL, SIGN = range(6)
CELLS: tuple[Colour, ...] = ((52, 48, 44), (139, 107, 74), (104, 76, 50), (88, 92, 104), (66, 122, 84), (70, 90, 140))
PLATE, SOUP, HOT = (236, 236, 240), (226, 132, 48), (196, 64, 40)
# As many kinds as the library has at most.
INGREDIENTS: tuple[Colour, ...] = ((240, 212, 96), (120, 200, 96), (200, 110, 190), (110, 190, 220))
COOKS = palette(4)  # the library has one or two
EYE: Colour = (250, 250, 250)
# What lies somewhere or is held is a number: bit 0 a plate, bit 1 that it is cooked, then two bits for how many of each kind.
_PLATE, _COOKED, _ONION, _THREE = 1, 2, 4, 12
# Version 1 numbers objects so; 3, 5 and 9 lie or are held.
_CELL_OF_1 = (FLOOR, FLOOR, COUNTER, COUNTER, PILE, COUNTER, PILE, GOAL, POT, COUNTER, FLOOR)
_THING_OF_1 = (0, 0, 0, _ONION, _THREE, _PLATE, _PLATE, 0, 0, _PLATE | _COOKED | _THREE, 0)
_EMPTY_POT, _FULL_POT = 23, 20  # each onion counts one down, and so does each step of cooking, until 0
# Version 2 numbers what is fixed so; from 10 on come the piles of ingredients.
_CELL_OF_2 = (FLOOR, COUNTER, FLOOR, FLOOR, GOAL, POT, SIGN, SIGN, COUNTER, PILE, PILE)
_POT_OF_2, _BUTTON_OF_2, _PLATES_OF_2, _INGREDIENTS_OF_2 = 5, 7, 9, 10


class Kitchen(NamedTuple):
    """What is drawn of a kitchen of h by w cells with A cooks."""

    cells: jax.Array  # int [h, w], indices into CELLS
    things: jax.Array  # int [h, w]: what lies there, or is in the pot
    heat: jax.Array  # bool [h, w]: a pot that cooks
    place: jax.Array  # int [A, 2]: row and column
    facing: jax.Array  # int [A]: up, down, right, left
    held: jax.Array  # int [A]: what each cook carries


def kitchen(version: int, state: Any) -> Kitchen:
    """The kitchen in a state of the library."""
    return _of_version_1(state) if version == 1 else _of_version_2(state)


def draw(kitchen: Kitchen) -> jax.Array:
    """An RGB picture, uint8 [24 h, 24 w, 3]: counters brown, piles darker, pots grey (red while they cook), where soups are
    served green, signs of the recipe blue; food in colours, more of it larger, cooked it is orange; cooks look to where their
    light spot is, and carry what lies on them."""
    cells, cooks, place = kitchen.cells, len(kitchen.held), tuple(kitchen.place.T)
    picture = tiles(cells, CELLS, TILE)
    picture = spots(picture, jnp.where(cells == POT, 0.44, 0.0), _one(jnp.where(kitchen.heat, 1, 0), ((40, 42, 50), HOT)))
    picture = _things(picture, kitchen.things)
    ahead = jnp.asarray(((0.0, -1.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 0.0)))[kitchen.facing]
    picture = pieces(picture, TILE, kitchen.place, 0.42, COOKS[:cooks])
    picture = pieces(picture, TILE, kitchen.place, 0.12, [EYE] * cooks, 0.3 * ahead)
    behind = jnp.zeros((*cells.shape, 2)).at[place].set(-0.1 * ahead)
    return _things(picture, jnp.zeros_like(kitchen.things).at[place].set(kitchen.held), 0.8, behind)


def _things(picture: jax.Array, things: jax.Array, scale: float = 1.0, shift: Any = (0.0, 0.0)) -> jax.Array:
    kinds = jnp.stack([(things >> 2 * (kind + 1)) & 3 for kind in range(len(INGREDIENTS))], axis=-1)
    amount = jnp.sum(kinds, axis=-1)
    mixed = kinds.astype(jnp.float32) @ jnp.asarray(INGREDIENTS, jnp.float32) / jnp.maximum(amount, 1)[..., None]
    cooked = (things & _COOKED) > 0
    food = jnp.where(cooked[..., None], jnp.asarray(SOUP, jnp.uint8), mixed.astype(jnp.uint8))
    plates = jnp.where((things & _PLATE) > 0, 0.36 * scale, 0.0)
    picture = spots(picture, plates, jnp.broadcast_to(jnp.asarray(PLATE, jnp.uint8), food.shape), shift)
    return spots(picture, jnp.where(amount > 0, 0.1 + 0.06 * amount, 0.0) * scale, food, shift)


def _one(numbers: jax.Array, colours: tuple[Colour, ...]) -> jax.Array:
    return jnp.asarray(colours, jnp.uint8)[numbers]


def _of_version_1(state: Any) -> Kitchen:
    height, width = state.wall_map.shape
    edge = (state.maze_map.shape[0] - height) // 2
    objects, _, status = jnp.moveaxis(state.maze_map[edge : edge + height, edge : edge + width], -1, 0).astype(jnp.int32)
    cells = jnp.asarray(_CELL_OF_1)[objects]
    onions = jnp.clip(_EMPTY_POT - status, 0, 3) * _ONION + jnp.where(status == 0, _COOKED, 0)
    things = jnp.where(cells == POT, onions, jnp.asarray(_THING_OF_1)[objects])
    heat = (cells == POT) & (status > 0) & (status < _FULL_POT)
    held = jnp.asarray(_THING_OF_1)[state.agent_inv.astype(jnp.int32)]
    return Kitchen(cells, things, heat, state.agent_pos[:, ::-1].astype(jnp.int32), state.agent_dir_idx.astype(jnp.int32), held)


def _of_version_2(state: Any) -> Kitchen:
    fixed, things, timer = jnp.moveaxis(state.grid, -1, 0)
    cells = jnp.asarray(_CELL_OF_2)[jnp.minimum(fixed, _INGREDIENTS_OF_2)]
    pile = _THREE << 2 * jnp.maximum(fixed - _INGREDIENTS_OF_2, 0)
    things = jnp.where(fixed >= _INGREDIENTS_OF_2, pile, jnp.where(fixed == _PLATES_OF_2, _PLATE, things))
    shown = (cells == SIGN) & ((fixed != _BUTTON_OF_2) | (timer > 0))  # a button tells for some steps after it is pressed
    things = jnp.where(shown, state.recipe, things)
    heat = (fixed == _POT_OF_2) & (timer > 0)
    cooks = state.agents
    place = jnp.stack([cooks.pos.y.reshape(-1), cooks.pos.x.reshape(-1)], axis=-1)
    return Kitchen(cells, things, heat, place, cooks.dir.reshape(-1), cooks.inventory.reshape(-1))

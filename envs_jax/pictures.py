"""Pictures of states for people: small RGB arrays, drawn with array operations, so that they may be jitted and vmapped."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

import jax
import jax.numpy as jnp

Colour = tuple[int, int, int]
GROUND: Colour = (24, 24, 32)
SHADES: tuple[Colour, ...] = ((44, 46, 58), (54, 56, 70))
TILE = 24  # pixels of a square
_PIXELS = 160


def palette(count: int) -> list[Colour]:
    """`count` colours that can be told apart, around the colour circle."""
    around = [colorsys.hsv_to_rgb(number / count, 0.75, 0.8) for number in range(count)]
    return [(round(255 * red), round(255 * green), round(255 * blue)) for red, green, blue in around]


def tiles(cells: jax.Array, palette: tuple[Colour, ...], size: int = 12) -> jax.Array:
    """Cells [h, w] of indices into `palette` as squares of `size` pixels: uint8 [h · size, w · size, 3]."""
    picture = jnp.asarray(palette, jnp.uint8)[cells]
    return jnp.repeat(jnp.repeat(picture, size, axis=0), size, axis=1)


def board(height: int, width: int, size: int = TILE) -> jax.Array:
    """An empty board of `height` by `width` squares in two shades: uint8 [height · size, width · size, 3]."""
    return tiles((jnp.arange(height)[:, None] + jnp.arange(width)[None]) % 2, SHADES, size)


def blank(height: int, width: int, colour: Colour = GROUND) -> jax.Array:
    """A picture of one colour: uint8 [height, width, 3]."""
    return jnp.broadcast_to(jnp.asarray(colour, jnp.uint8), (height, width, 3))


def disc(picture: jax.Array, centre: jax.Array, radius: jax.Array | float, colour: Colour | jax.Array) -> jax.Array:
    """The picture [h, w, 3] with a filled disc on it; `centre` (x to the right, y upwards) and `radius` in a plane whose
    shorter side reaches from −1 to 1."""
    x, y = _plane(picture)
    inside = (x[None, :] - centre[0]) ** 2 + (y[:, None] - centre[1]) ** 2 <= jnp.float32(radius) ** 2
    return jnp.where(inside[..., None], jnp.asarray(colour, jnp.uint8), picture)


def segment(
    picture: jax.Array, start: jax.Array, end: jax.Array, width: jax.Array | float, colour: Colour | jax.Array
) -> jax.Array:
    """The picture with a line from `start` to `end` in the plane of `disc`, `width` wide at its start, pointed at its end."""
    x, y = _plane(picture)
    x, y, way = x[None, :] - start[0], y[:, None] - start[1], end - start
    along = jnp.clip((x * way[0] + y * way[1]) / jnp.maximum(jnp.sum(way * way), 1e-12), 0.0, 1.0)
    inside = (x - along * way[0]) ** 2 + (y - along * way[1]) ** 2 < (width * (1.0 - along)) ** 2
    return jnp.where(inside[..., None], jnp.asarray(colour, jnp.uint8), picture)


def _plane(picture: jax.Array) -> tuple[jax.Array, jax.Array]:
    """x of every column and y of every row, upwards; the shorter side reaches from −1 to 1."""
    height, width = picture.shape[:2]
    half = min(height, width) / 2
    x = (jnp.arange(width, dtype=jnp.float32) + 0.5 - width / 2) / half
    y = (height / 2 - 0.5 - jnp.arange(height, dtype=jnp.float32)) / half
    return x, y


def plane(centres: jax.Array, radius: Sequence[float], colours: Sequence[Colour | jax.Array]) -> jax.Array:
    """Discs at `centres` [n, 2] of a plane, x to the right and y upwards, the larger ones below: RGB uint8 [160, 160, 3].

    Shown is the square from −1.2 to 1.2, or more where something is further out.
    """
    view = jnp.maximum(jnp.max(jnp.abs(centres)) + 0.2, 1.2)
    canvas = blank(_PIXELS, _PIXELS)
    for number in sorted(range(len(radius)), key=lambda number: -radius[number]):
        canvas = disc(canvas, centres[number] / view, radius[number] / view, colours[number])
    return canvas


def spots(
    picture: jax.Array, radius: jax.Array, colours: jax.Array, shift: jax.Array | tuple[float, float] = (0.0, 0.0)
) -> jax.Array:
    """The picture of tiles with a disc on each: `radius` [h, w] in tiles (0: none), uint8 `colours` [h, w, 3], and `shift`,
    [h, w, 2] or for all (rightwards, downwards), in tiles from the middle."""
    size = picture.shape[0] // radius.shape[0]
    inner = (jnp.arange(size, dtype=jnp.float32) + 0.5) / size - 0.5
    right, down = jnp.moveaxis(jnp.broadcast_to(jnp.asarray(shift, jnp.float32), (*radius.shape, 2)), -1, 0)
    x = inner[None, None, None, :] - right[:, None, :, None]
    y = inner[None, :, None, None] - down[:, None, :, None]
    inside = x * x + y * y < (radius * radius)[:, None, :, None]  # [h, size, w, size]
    painted = jnp.where(inside[..., None], colours[:, None, :, None], picture.reshape(*inside.shape, 3))
    return painted.reshape(picture.shape)


def pieces(
    picture: jax.Array,
    size: int,
    place: jax.Array,
    radius: jax.Array | float,
    colours: Sequence[Colour] | jax.Array,
    shift: jax.Array | tuple[float, float] = (0.0, 0.0),
) -> jax.Array:
    """The picture of tiles of `size` pixels with k discs on it: `place` [k, 2] row and column, `radius` [k] or one for all in
    tiles (0: none), `colours` [k, 3], `shift` [k, 2] or for all as in `spots`. Where two share a tile, one of them is seen."""
    shape, (rows, columns) = (picture.shape[0] // size, picture.shape[1] // size), place.T
    shown = jnp.broadcast_to(jnp.asarray(radius, jnp.float32), rows.shape)
    radii = jnp.zeros(shape, jnp.float32).at[rows, columns].set(shown)
    paint = jnp.zeros((*shape, 3), jnp.uint8).at[rows, columns].set(jnp.asarray(colours, jnp.uint8))
    moved = jnp.broadcast_to(jnp.asarray(shift, jnp.float32), place.shape)
    return spots(picture, radii, paint, jnp.zeros((*shape, 2), jnp.float32).at[rows, columns].set(moved))

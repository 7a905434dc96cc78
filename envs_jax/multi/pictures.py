"""Pictures of states for people: small RGB arrays, drawn with array operations, so that they may be jitted and vmapped."""

from __future__ import annotations

import jax
import jax.numpy as jnp

Colour = tuple[int, int, int]
GROUND: Colour = (24, 24, 32)


def tiles(cells: jax.Array, palette: tuple[Colour, ...], size: int = 12) -> jax.Array:
    """Cells [h, w] of indices into `palette` as squares of `size` pixels: uint8 [h · size, w · size, 3]."""
    picture = jnp.asarray(palette, jnp.uint8)[cells]
    return jnp.repeat(jnp.repeat(picture, size, axis=0), size, axis=1)


def blank(height: int, width: int, colour: Colour = GROUND) -> jax.Array:
    """A picture of one colour: uint8 [height, width, 3]."""
    return jnp.broadcast_to(jnp.asarray(colour, jnp.uint8), (height, width, 3))


def disc(picture: jax.Array, centre: jax.Array, radius: jax.Array | float, colour: Colour | jax.Array) -> jax.Array:
    """The picture [h, w, 3] with a filled disc on it; `centre` (x to the right, y upwards) and `radius` in a plane whose
    shorter side reaches from −1 to 1."""
    height, width = picture.shape[:2]
    half = min(height, width) / 2
    x = (jnp.arange(width, dtype=jnp.float32) + 0.5 - width / 2) / half
    y = (height / 2 - 0.5 - jnp.arange(height, dtype=jnp.float32)) / half
    inside = (x[None, :] - centre[0]) ** 2 + (y[:, None] - centre[1]) ** 2 <= jnp.float32(radius) ** 2
    return jnp.where(inside[..., None], jnp.asarray(colour, jnp.uint8), picture)

"""Pictures of SMAX's battles."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from envs_jax.pictures import Colour, blank, disc, segment

PIXELS = 320
ALLY, ENEMY, SHOT = (90, 160, 255), (255, 92, 84), (250, 236, 160)
MARGIN = 2.0  # of the map around the units
WEAKEST = 0.35  # of a unit's colour is left when its health is


def draw(library: Any, units: Any) -> jax.Array:
    """The map as far from its middle as units are, RGB uint8 [320, 320, 3]: the living in their team's colour, darker the
    less health is left, at their own size; lines are attacks, pointed at who suffers them."""
    middle = jnp.asarray([library.map_width, library.map_height], jnp.float32) / 2
    scale = jnp.max(jnp.abs(units.unit_positions - middle[None])) + MARGIN
    place = (units.unit_positions - middle[None]) / scale
    radius = library.unit_type_radiuses[units.unit_types] / scale
    health = jnp.clip(units.unit_health / library.unit_type_health[units.unit_types], 0.0, 1.0)
    picture, targets = blank(PIXELS, PIXELS), _targets(library, units)
    for unit in range(len(units.unit_alive)):
        attacks = units.unit_alive[unit] & (targets[unit] != unit)
        picture = segment(picture, place[unit], place[targets[unit]], jnp.where(attacks, 0.012, 0.0), SHOT)
    for unit in range(len(units.unit_alive)):
        team: Colour = ALLY if unit < library.num_allies else ENEMY
        colour = jnp.asarray(team, jnp.float32) * (WEAKEST + (1 - WEAKEST) * health[unit])
        picture = disc(picture, place[unit], jnp.where(units.unit_alive[unit], radius[unit], 0.0), colour)
    return picture


def _targets(library: Any, units: Any) -> jax.Array:
    """Whom each unit attacked in the last step, int [units]; itself if nobody. Enemies number their targets backwards."""
    own, allies = jnp.arange(len(units.unit_alive)), library.num_allies
    number = units.prev_attack_actions - library.num_movement_actions
    target = jnp.where(own < allies, number + allies, allies - 1 - number)
    return jnp.where(number < 0, own, target)

"""BinPack: pack boxes into a container, each into the corner of one of its empty spaces."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jumanji.environments import BinPack as Library
from jumanji.environments.packing.bin_pack.generator import RandomGenerator
from jumanji.environments.packing.bin_pack.reward import DenseReward, SparseReward
from jumanji.environments.packing.bin_pack.types import item_volume

from envs_jax.adapters.common import check_whole, choose
from envs_jax.adapters.jumanji.base import JumanjiEnv, State
from envs_jax.core import EnvSpec
from envs_jax.spaces import Box, Discrete

REWARDS = {"dense": DenseReward, "sparse": SparseReward}


class _WholeSpaces(Library):
    """The library, which cuts spaces in floats and writes them into whole numbers: jax warns of it and will refuse."""

    def _add_ems(self, intersection_ems: Any, *arguments: Any) -> Any:
        return super()._add_ems(intersection_ems.astype(jnp.int32), *arguments)


class BinPack(JumanjiEnv):
    """`BinPack-v2`, single-agent. Actions: space x max_num_items + item puts the item into that space's lower corner.

    Spaces are the obs_num_ems largest of the empty maximal spaces, largest first: boxes that hold no item and lie in no other
    such box. The items of an instance were cut out of the container, so all of them fit. Legal is an item, not yet packed,
    that fits into the space as it lies. The observation is [7 obs_num_ems + 5 max_num_items] in 0 ... 1: for each space x1,
    x2, y1, y2, z1, z2 as shares of the container, and 1; for each item its lengths along x, y and z, 1, and whether it is
    packed; all 0 where there is none. It truly ends when nothing more fits, after at most max_num_items steps, which is the
    time limit, or at an illegal action, which packs nothing. Metrics: `volume_utilization`, the share of the container that
    is filled, `packed`, the share of the items, and `success`, whether it was all of them.

    Args:
        max_num_items: how many items there are at most; there are at least max_num_items - split_num_same_items + 1.
        max_num_ems: how many empty maximal spaces are kept; more are lost.
        obs_num_ems: how many of them can be seen and chosen, at most max_num_ems.
        split_num_same_items: into how many equal items a box may be cut at once, at most max_num_items.
        reward: `dense` pays the share of the container that an item fills; `sparse` the share filled at the end.

    Raises ValueError when these do not fit together.
    """

    def __init__(
        self,
        max_num_items: int = 20,
        max_num_ems: int = 40,
        obs_num_ems: int = 40,
        split_num_same_items: int = 2,
        reward: str = "dense",
    ):
        check_whole("BinPack", 1, max_num_items=max_num_items, max_num_ems=max_num_ems, obs_num_ems=obs_num_ems)
        check_whole("BinPack", 1, split_num_same_items=split_num_same_items)
        for name, value, bound, most in (
            ("obs_num_ems", obs_num_ems, "max_num_ems", max_num_ems),
            ("split_num_same_items", split_num_same_items, "max_num_items", max_num_items),
        ):
            if value > most:
                raise ValueError(f"BinPack: {name} must be at most {bound}, {most}, got {value}")
        reward_fn = choose("BinPack", "reward", reward, REWARDS)()
        spec = EnvSpec(
            observation_space=Box(0.0, 1.0, (7 * obs_num_ems + 5 * max_num_items,)),
            action_space=Discrete(obs_num_ems * max_num_items),
            metrics={"volume_utilization": "last", "packed": "last", "success": "last"},
            episode_limit=max_num_items,
        )
        generator = RandomGenerator(max_num_items, max_num_ems, split_num_same_items=split_num_same_items)
        super().__init__(_WholeSpaces(generator, obs_num_ems, reward_fn), spec)

    def emitted(self, observation: Any) -> tuple[Any, jax.Array]:
        return observation.ems, observation.ems_mask

    def view(self, state: State) -> jax.Array:
        packing, (ems, seen) = state.library, state.emitted
        sides = (packing.container.x2, packing.container.y2, packing.container.z2)
        lengths = (length / side for length, side in zip(packing.items, sides, strict=True))
        spaces = jnp.column_stack((ems.x1, ems.x2, ems.y1, ems.y2, ems.z1, ems.z2, seen))
        items = jnp.column_stack((*lengths, packing.items_mask, packing.items_placed))
        parts = (spaces * seen[:, None], items * packing.items_mask[:, None])
        return jnp.concatenate([part.ravel() for part in parts])

    def action_mask(self, state: State) -> jax.Array:
        return state.library.action_mask.ravel()

    def library_action(self, action: jax.Array) -> jax.Array:
        return jnp.stack(jnp.divmod(action, self.library.generator.max_num_items))

    def metrics(self, state: State) -> dict[str, jax.Array]:
        packing = state.library
        volume = jnp.sum(jnp.where(packing.items_placed, item_volume(packing.items), 0.0))
        return {
            "volume_utilization": volume / packing.container.volume(),
            "packed": jnp.sum(packing.items_placed) / jnp.sum(packing.items_mask, dtype=jnp.float32),
            "success": jnp.all(packing.items_placed | ~packing.items_mask).astype(jnp.float32),
        }

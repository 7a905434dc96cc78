"""Every environment by name: "suite/Name" leads to a factory, and nothing heavy is imported before `make` calls it.

A suite is a module with `make(name, **kwargs) -> Env`. Names are the library's own; where they carry a version, the name
without it is an alias of the newest. To ship another suite, add it to `_SUITES`; for an environment of one's own, call
`register`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from envs_jax.names import unknown

if TYPE_CHECKING:
    from envs_jax.core import Env

_SUITES: dict[str, tuple[str, tuple[str, ...]]] = {
    "gymnax": (
        "envs_jax.adapters.gymnax",
        (
            "CartPole-v1",
            "Acrobot-v1",
            "MountainCar-v0",
            "MountainCarContinuous-v0",
            "Pendulum-v1",
            "Asterix-MinAtar",
            "Breakout-MinAtar",
            "Freeway-MinAtar",
            "Seaquest-MinAtar",
            "SpaceInvaders-MinAtar",
            "Catch-bsuite",
            "DeepSea-bsuite",
            "MemoryChain-bsuite",
            "UmbrellaChain-bsuite",
            "DiscountingChain-bsuite",
            "MNISTBandit-bsuite",
            "SimpleBandit-bsuite",
            "FourRooms-misc",
            "MetaMaze-misc",
            "PointRobot-misc",
            "BernoulliBandit-misc",
            "GaussianBandit-misc",
            "Reacher-misc",
            "Swimmer-misc",
            "Pong-misc",
            "FrozenLake-misc",
        ),
    ),
    "jumanji": (
        "envs_jax.adapters.jumanji",
        (
            "LevelBasedForaging-v0",
            "Connector-v3",
            "Snake-v1",
            "Game2048-v1",
            "Maze-v0",
            "Minesweeper-v0",
            "PacMan-v1",
            "RubiksCube-v0",
            "RubiksCube-partly-scrambled-v0",
            "SlidingTilePuzzle-v0",
            "Sokoban-v0",
            "Sudoku-v0",
            "Sudoku-very-easy-v0",
            "Tetris-v0",
            "Cleaner-v0",
            "MMST-v0",
            "MultiCVRP-v0",
            "RobotWarehouse-v0",
            "SearchAndRescue-v0",
            "BinPack-v2",
            "CVRP-v1",
            "FlatPack-v0",
            "GraphColoring-v1",
            "JobShop-v0",
            "Knapsack-v1",
            "TSP-v1",
        ),
    ),
    "brax": (
        "envs_jax.adapters.brax",
        (
            "ant",
            "fast",
            "halfcheetah",
            "hopper",
            "humanoid",
            "humanoidstandup",
            "inverted_double_pendulum",
            "inverted_pendulum",
            "pusher",
            "reacher",
            "swimmer",
            "walker2d",
        ),
    ),
    "jaxmarl": (
        "envs_jax.adapters.jaxmarl",
        (
            "smax_3m",
            "smax_2s3z",
            "smax_25m",
            "smax_3s5z",
            "smax_8m",
            "smax_5m_vs_6m",
            "smax_10m_vs_11m",
            "smax_27m_vs_30m",
            "smax_3s5z_vs_3s6z",
            "smax_3s_vs_5z",
            "smax_6h_vs_8z",
            "smax_smacv2_5_units",
            "smax_smacv2_10_units",
            "smax_smacv2_20_units",
            "MPE_simple_v3",
            "MPE_simple_adversary_v3",
            "MPE_simple_crypto_v3",
            "MPE_simple_facmac_v1",
            "MPE_simple_facmac_3a_v1",
            "MPE_simple_facmac_6a_v1",
            "MPE_simple_facmac_9a_v1",
            "MPE_simple_push_v3",
            "MPE_simple_reference_v3",
            "MPE_simple_speaker_listener_v4",
            "MPE_simple_spread_v3",
            "MPE_simple_tag_v3",
            "MPE_simple_world_comm_v3",
            "overcooked_cramped_room",
            "overcooked_asymm_advantages",
            "overcooked_coord_ring",
            "overcooked_forced_coord",
            "overcooked_counter_circuit",
            "overcooked_v2_cramped_room",
            "overcooked_v2_asymm_advantages",
            "overcooked_v2_coord_ring",
            "overcooked_v2_forced_coord",
            "overcooked_v2_counter_circuit",
            "overcooked_v2_cramped_room_v2",
            "overcooked_v2_asymm_advantages_recipes_center",
            "overcooked_v2_asymm_advantages_recipes_right",
            "overcooked_v2_asymm_advantages_recipes_left",
            "overcooked_v2_two_rooms",
            "overcooked_v2_two_rooms_both",
            "overcooked_v2_long_room",
            "overcooked_v2_fun_coordination",
            "overcooked_v2_more_fun_coordination",
            "overcooked_v2_fun_symmetries",
            "overcooked_v2_fun_symmetries_plates",
            "overcooked_v2_fun_symmetries1",
            "overcooked_v2_grounded_coord_simple",
            "overcooked_v2_grounded_coord_ring",
            "overcooked_v2_test_time_simple",
            "overcooked_v2_test_time_wide",
            "overcooked_v2_demo_cook_simple",
            "overcooked_v2_demo_cook_wide",
        ),
    ),
    "multi": (
        "envs_jax.multi",
        (
            "matrix",
            "reference",
            "rendezvous",
            "speaker_listener",
            "spread",
            "switch",
            "tag",
            "two_step",
        ),
    ),
    "probe": (
        "envs_jax.probes",
        (
            "constant",
            "observation",
            "discounted",
            "policy",
            "policy_observation",
            "truncation",
            "memory",
            "continuous",
            "masked",
            "multi_discrete",
            "image",
            "team",
            "individual",
            "two_groups",
            "respawn",
        ),
    ),
}
_registered: dict[str, Callable[..., Env] | str] = {}


def ids() -> list[str]:
    """Every id that `make` accepts, aliases apart: suite by suite, then those of `register`. Imports no library."""
    shipped = [f"{suite}/{name}" for suite, (_, names) in _SUITES.items() for name in names]
    return shipped + list(_registered)


def resolve(id: str) -> str:
    """The full id that an id or an alias without a version stands for.

    Raises ValueError with the nearest ids when there is none.
    """
    if not isinstance(id, str):
        remedy = f"; write {id.__name__}()" if isinstance(id, type) else ""
        raise ValueError(f"an environment is an id, such as gymnax/CartPole-v1, or an object of it, got {id!r}{remedy}")
    known = ids()
    if id in known:
        return id
    versions = [(int(found[1]), name) for name in known if (found := re.fullmatch(re.escape(id) + r"-v(\d+)", name))]
    if versions:
        return max(versions)[1]
    raise unknown("environment", id, known, remedy="(`agentgym envs` lists all; `envs_jax.register` adds your own)")


def suite(id: str) -> str:
    """The part of the id before the slash."""
    return resolve(id).partition("/")[0]


def register(id: str, factory: Callable[..., Env] | str) -> None:
    """Makes `make(id, **kwargs)` call `factory(**kwargs)`.

    `factory` is a callable, or "module:function" to import it only when it is wanted. Raises ValueError when the id has no
    suite, the id is taken, or the factory is neither.
    """
    if not re.fullmatch(r"[^/\s]+/[^/\s]+", id):
        raise ValueError(f"environment id {id!r} must read `suite/name`, for example `mine/{id.strip('/') or 'maze'}`")
    if id in ids():
        raise ValueError(f"environment id {id!r} is taken; choose another name")
    if not callable(factory) and not (isinstance(factory, str) and re.fullmatch(r"[\w.]+:[\w.]+", factory)):
        raise ValueError(f"factory of {id!r} must be callable or a string `module:function`, got {factory!r}")
    _registered[id] = factory


def make(id: str, **kwargs: Any) -> Env:
    """Builds the environment `id` with these constructor arguments.

    Raises ValueError for an unknown id, with the nearest, and ImportError when the suite's library is not installed.
    """
    id = resolve(id)
    if id in _registered:
        return _load(_registered[id])(**kwargs)
    name = id.partition("/")[2]
    return _adapter(id).make(name, **kwargs)


def _adapter(id: str) -> Any:
    module, _ = _SUITES[id.partition("/")[0]]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f"environment {id!r} needs the package `{error.name}`, which is not installed") from error


def _load(factory: Callable[..., Env] | str) -> Callable[..., Env]:
    if not isinstance(factory, str):
        return factory
    module, _, name = factory.partition(":")
    return getattr(importlib.import_module(module), name)

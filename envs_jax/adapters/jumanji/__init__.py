"""jumanji's environments: https://github.com/instadeepai/jumanji, Bonnet et al. 2024, arXiv:2306.09884.

One class per environment says what its agents see, which actions are legal and what is measured; `base.JumanjiEnv` does
the rest. To add an environment, write such a class and name it in `_CLASSES`.

Each takes `observation`: `default` is one array, as below, with 0 and 1 for categories; `raw` is the library's own tree,
of which each of several agents sees everything, with its own number beside it. The number of steps so far stands in `raw`
alone, unless rewards depend on it: a time limit cuts an episode and is no part of the task. Sizes are those of the default
arguments. Actions are `Discrete` but where it says so; where several of the library's indices are one number, the last
counts fastest. "mask": some actions are illegal, of a flattened one by a joint mask. "no" under limit: the library has
none; there the number is an argument of ours.

| id | observation | action | agents | limit |
|---|---|---|---|---|
| BinPack-v2 | [380], spaces, items | 800: space, item (mask) | 1 | no: 20, never reached |
| CVRP-v1 | [127], nodes, capacity | 21: node (mask) | 1 | no: 40, never reached |
| Cleaner-v0 | [10, 10, 6], tiles, own place and others', number | 4 (mask) | 3, a view each | 100 |
| Connector-v3 | [10, 10, 6], own and other paths | 5 (mask) | 10, a view each | 50 |
| FlatPack-v0 | [372], cells, blocks, moves left | 8100: block, turns, row, column (mask) | 1 | no: 25, never reached |
| Game2048-v1 | [4, 4, 18], exponents | 4 (mask) | 1 | no: 4000 |
| GraphColoring-v1 | [820], edges, colours, whose turn | 20: colour (mask) | 1 | no: 20, never reached |
| JobShop-v0 | [2140], operations, machines | 10 of 21: a job for each machine (mask) | 1 | no: 960, never reached |
| Knapsack-v1 | [151], items, budget | 50: item (mask) | 1 | no: 50, never reached |
| LevelBasedForaging-v0 | [12], places and levels | 6 (mask) | 2, a view each | 100 |
| MMST-v0 | [36, 45], own nodes and others', edges | 36: node (mask) | 3, a view each | 70 |
| Maze-v0 | [10, 10, 3], walls, agent, target | 4 (mask) | 1 | 100 |
| Minesweeper-v0 | [10, 10, 10], unexplored, counts | 100: row, column (mask) | 1 | no: 90, never reached |
| MultiCVRP-v0 | [156], own vehicle and others, nodes, time | 21: node (mask) | 2, a view each | no: 40, a true end |
| PacMan-v1 | [31, 28, 10], maze, food, player, ghosts | 5 (mask) | 1 | 1000 |
| RobotWarehouse-v0 | [66], self, agents and shelves around | 5 (mask) | 4, a view each | 500 |
| RubiksCube-v0 | [324], sticker colours | 18: face, depth, amount | 1 | 200 |
| RubiksCube-partly-scrambled-v0 | [324], sticker colours | 18: face, depth, amount | 1 | 20 |
| SearchAndRescue-v0 | [386], rays, targets left, time | Box [2] | 2, a view each | 400 |
| SlidingTilePuzzle-v0 | [5, 5, 25], tiles | 4 (mask) | 1 | 500 |
| Snake-v1 | [12, 12, 5], body, head, tail, fruit, order | 4 (mask) | 1 | 4000 |
| Sokoban-v0 | [10, 10, 4], walls, targets, agent, boxes | 4 | 1 | 120 |
| Sudoku-v0 | [9, 9, 10], empty, digits | 729: row, column, digit (mask) | 1 | no: 81, never reached |
| Sudoku-very-easy-v0 | [9, 9, 10], empty, digits | 729: row, column, digit (mask) | 1 | no: 81, never reached |
| TSP-v1 | [120], cities | 20: city (mask) | 1 | no: 20, never reached |
| Tetris-v0 | [10, 10, 8], filled, tetromino | 40: turns, column (mask) | 1 | 400 |
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from envs_jax.adapters.common import check_arguments
from envs_jax.core import Env
from envs_jax.names import unknown

_CLASSES = {
    "LevelBasedForaging-v0": "level_based_foraging:LevelBasedForaging",
    "Connector-v3": "connector:Connector",
    "Snake-v1": "snake:Snake",
    "Game2048-v1": "game_2048:Game2048",
    "Maze-v0": "maze:Maze",
    "Minesweeper-v0": "minesweeper:Minesweeper",
    "PacMan-v1": "pac_man:PacMan",
    "RubiksCube-v0": "rubiks_cube:RubiksCube",
    "RubiksCube-partly-scrambled-v0": "rubiks_cube:RubiksCube",
    "SlidingTilePuzzle-v0": "sliding_tile_puzzle:SlidingTilePuzzle",
    "Sokoban-v0": "sokoban:Sokoban",
    "Sudoku-v0": "sudoku:Sudoku",
    "Sudoku-very-easy-v0": "sudoku:Sudoku",
    "Tetris-v0": "tetris:Tetris",
    "Cleaner-v0": "cleaner:Cleaner",
    "MMST-v0": "mmst:MMST",
    "MultiCVRP-v0": "multi_cvrp:MultiCVRP",
    "RobotWarehouse-v0": "robot_warehouse:RobotWarehouse",
    "SearchAndRescue-v0": "search_and_rescue:SearchAndRescue",
    "BinPack-v2": "bin_pack:BinPack",
    "CVRP-v1": "cvrp:CVRP",
    "FlatPack-v0": "flat_pack:FlatPack",
    "GraphColoring-v1": "graph_coloring:GraphColoring",
    "JobShop-v0": "job_shop:JobShop",
    "Knapsack-v1": "knapsack:Knapsack",
    "TSP-v1": "tsp:TSP",
}

# What an id changes in the defaults of its class.
_VARIANTS = {
    "RubiksCube-partly-scrambled-v0": {"num_scrambles": 7, "time_limit": 20},
    "Sudoku-very-easy-v0": {"puzzles": "very-easy"},
}
_OBSERVATIONS = ("default", "raw")


def make(name: str, observation: str = "default", **kwargs: Any) -> Env:
    """Builds the environment with jumanji's id `name`; `kwargs` are the arguments of its class.

    `observation` is `default`, one array, or `raw`, the library's tree. Raises ValueError for an unknown name or argument,
    with the nearest, and for values that the environment cannot have.
    """
    if name not in _CLASSES:
        raise unknown("jumanji environment", name, _CLASSES)
    if observation not in _OBSERVATIONS:
        raise unknown(f"observation of jumanji/{name}", observation, _OBSERVATIONS)
    module, _, attribute = _CLASSES[name].partition(":")
    environment = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    check_arguments(f"jumanji/{name}", (*inspect.signature(environment).parameters, "observation"), kwargs)
    env = environment(**{**_VARIANTS.get(name, {}), **kwargs})
    return env.raw() if observation == "raw" else env

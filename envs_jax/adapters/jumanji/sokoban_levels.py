"""Sokoban levels made by playing backwards: from the solved board, boxes are pulled off their targets at random.

Whatever is reached so can be solved by the same moves, reversed: a solution comes with each level. All levels are made at
once, in numpy, from a fixed seed, and nothing is downloaded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jumanji.environments.routing.sokoban.constants import AGENT, BOX, GRID_SIZE, N_BOXES, TARGET, WALL

_MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])  # up, right, down, left
_WALLS = 0.1  # share of the inner cells
_PULLS = 0.9  # how often a box that may be pulled is, else the agent takes a step at random
_BATCH = 512
STAY = -1


class Levels(NamedTuple):
    """Boards of one size, and how each is solved."""

    fixed: np.ndarray  # uint8 [n, 10, 10]: walls and targets
    variable: np.ndarray  # uint8 [n, 10, 10]: the agent and the boxes
    solutions: np.ndarray  # int32 [n, steps]: actions that solve it, STAY where there is none


def generate(num_levels: int, steps: int = 100, seed: int = 0) -> Levels:
    """`num_levels` levels, the same for the same arguments, each solvable within `steps` actions; no box starts in place."""
    random = np.random.default_rng(seed)
    batches: list[Levels] = []
    while sum(len(batch.fixed) for batch in batches) < num_levels:
        batches.append(_batch(random, steps))
    return Levels(*(np.concatenate(parts)[:num_levels] for parts in zip(*batches, strict=True)))


def _batch(random: np.random.Generator, steps: int) -> Levels:
    """Those of a batch of random rooms of which every box was pulled away from all targets."""
    walls, targets, boxes, agent = _rooms(random)
    solutions = np.full((_BATCH, steps), STAY, np.int32)
    for step in range(steps):
        move, agent = _pull(random, walls, boxes, agent)
        solutions[:, steps - 1 - step] = np.where(move == STAY, STAY, (move + 2) % len(_MOVES))
    variable = np.where(boxes, BOX, 0).astype(np.uint8)
    variable[np.arange(_BATCH), agent[:, 0], agent[:, 1]] = AGENT
    fixed = np.where(walls, WALL, np.where(targets, TARGET, 0)).astype(np.uint8)
    kept = ~(boxes & targets).any((1, 2))
    return Levels(fixed[kept], variable[kept], solutions[kept])


def _rooms(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Solved boards: walls, targets and boxes, bool [batch, 10, 10], and the agent's row and column, [batch, 2]."""
    walls = np.ones((_BATCH, GRID_SIZE, GRID_SIZE), bool)
    inner = GRID_SIZE - 2
    walls[:, 1:-1, 1:-1] = random.random((_BATCH, inner, inner)) < _WALLS
    ranks = (random.random(walls.shape) + walls).reshape(_BATCH, -1).argsort(axis=1)  # free cells first
    targets = np.zeros((_BATCH, GRID_SIZE**2), bool)
    np.put_along_axis(targets, ranks[:, :N_BOXES], True, axis=1)
    targets = targets.reshape(walls.shape)
    agent = np.stack(np.divmod(ranks[:, N_BOXES], GRID_SIZE), axis=1)
    return walls, targets, targets.copy(), agent


def _pull(
    random: np.random.Generator, walls: np.ndarray, boxes: np.ndarray, agent: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One backward move of each board, which changes `boxes`: the move [batch], STAY where shut in, and where the agent is."""
    rows = np.arange(_BATCH)
    ahead, behind = agent[:, None] + _MOVES, agent[:, None] - _MOVES  # [batch, 4, 2]
    free = ~(walls | boxes)[rows[:, None], ahead[..., 0], ahead[..., 1]]
    pulling = free & boxes[rows[:, None], behind[..., 0], behind[..., 1]] & (random.random((_BATCH, 1)) < _PULLS)
    move = np.argmax(random.random((_BATCH, len(_MOVES))) + free + pulling, axis=1)
    moving, pulled = free[rows, move], pulling[rows, move]
    where = rows[pulled], behind[rows, move][pulled]
    boxes[where[0], where[1][:, 0], where[1][:, 1]] = False
    boxes[where[0], agent[pulled][:, 0], agent[pulled][:, 1]] = True
    return np.where(moving, move, STAY), np.where(moving[:, None], ahead[rows, move], agent)

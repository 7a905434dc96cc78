"""jumanji's games against jumanji itself, and their masks, views and metrics against rules written anew in numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jumanji import environments as library
from jumanji.environments.logic.minesweeper.generator import UniformSamplingGenerator
from jumanji.environments.logic.rubiks_cube.generator import ScramblingGenerator
from jumanji.environments.logic.sliding_tile_puzzle.generator import RandomWalkGenerator
from jumanji.environments.logic.sudoku.generator import DatabaseGenerator
from jumanji.environments.packing.tetris.constants import TETROMINOES_LIST
from jumanji.environments.routing.maze.generator import RandomGenerator

from envs_jax.adapters import jumanji
from envs_jax.adapters.jumanji.sokoban import StoredLevels

from . import jumanji_play
from .jumanji_play import LONG, Case, play_case
from .test_jumanji_sokoban import nearly_solved

pytestmark = pytest.mark.usefixtures("relaxed_rank_promotion")

MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])  # up, right, down, left


def sudoku_boards():
    return jumanji.make("Sudoku-very-easy-v0").library._generator._boards


def split(*sizes):
    """The library's indices of a flat action, the last fastest."""

    def indices(action):
        found = []
        for size in reversed(sizes):
            action, index = action // size, action % size
            found.append(index)
        return jnp.stack(found[::-1])

    return indices


CASES = {
    "Game2048-v1": Case({"board_size": 2, "time_limit": 6}, lambda: library.Game2048(2), steps=12),
    "Maze-v0": Case(
        {"num_rows": 5, "num_cols": 6, "time_limit": 14}, lambda: library.Maze(RandomGenerator(5, 6), time_limit=LONG)
    ),
    "Minesweeper-v0": Case(
        {"num_rows": 3, "num_cols": 4, "num_mines": 2, "time_limit": 7},
        lambda: library.Minesweeper(UniformSamplingGenerator(3, 4, 2)),
        split(3, 4),
    ),
    "PacMan-v1": Case({"time_limit": 26}, lambda: library.PacMan(time_limit=LONG), episodes=8, steps=30),
    "RubiksCube-v0": Case(
        {"cube_size": 2, "num_scrambles": 1, "time_limit": 9},
        lambda: library.RubiksCube(ScramblingGenerator(2, 1), time_limit=LONG),
        split(6, 1, 3),
        steps=12,
    ),
    "SlidingTilePuzzle-v0": Case(
        {"grid_size": 2, "num_random_moves": 4, "time_limit": 9},
        lambda: library.SlidingTilePuzzle(RandomWalkGenerator(2, 4), time_limit=LONG),
        steps=12,
    ),
    "Sokoban-v0": Case({"time_limit": 25}, lambda: library.Sokoban(StoredLevels(nearly_solved()), time_limit=LONG)),
    "Sudoku-very-easy-v0": Case(
        {"time_limit": 9}, lambda: library.Sudoku(DatabaseGenerator(sudoku_boards())), split(9, 9, 9), steps=15
    ),
    "Tetris-v0": Case(
        {"num_rows": 6, "num_cols": 5, "time_limit": 5}, lambda: library.Tetris(6, 5, time_limit=LONG), split(4, 5), steps=12
    ),
}


@pytest.fixture(scope="module")
def plays(tmp_path_factory):
    path = tmp_path_factory.mktemp("levels") / "nearly.npy"
    np.save(path, nearly_solved())
    extra = {"Sokoban-v0": {"levels": str(path)}}
    found = {}

    def play(name):
        if name not in found:
            case = CASES[name]
            found[name] = play_case(name, Case(**{**vars(case), "kwargs": {**case.kwargs, **extra.get(name, {})}}))
        return found[name]

    return play


@pytest.mark.parametrize("name", CASES)
def test_the_play_is_the_librarys(name, plays):
    play = plays(name)
    jumanji_play.check_equal(play)
    jumanji_play.check_limit(play)
    jumanji_play.check_true_end_at_limit(play)
    jumanji_play.check_absorbing(play)


def running_rows(play):
    """For each row up to the end: the state, the observation, the mask and the metrics, as numpy."""
    parts = (play.states.library, play.timesteps.observation, play.timesteps.action_mask, play.timesteps.metrics)
    for where in np.argwhere(play.running()):
        yield jax.tree.map(lambda leaf, index=tuple(where): leaf[index], parts)


def slid(line):
    """A row of exponents pushed to the left."""
    tiles, out = [tile for tile in line if tile], []
    while tiles:
        tile = tiles.pop(0)
        merges = int(bool(tiles) and tiles[0] == tile)
        out.append(tile + merges)
        del tiles[:merges]
    return out + [0] * (len(line) - len(out))


def test_2048(plays):
    play = plays("Game2048-v1")
    for state, view, mask, metrics in running_rows(play):
        board = state.board
        np.testing.assert_array_equal(view, board[..., None] == np.arange(6))
        turned = (board.T, board[:, ::-1], board.T[:, ::-1], board)  # up, right, down, left
        np.testing.assert_array_equal(mask, [any(list(row) != slid(row) for row in side) for side in turned])
        assert metrics["highest_tile"] == 2 ** board.max()
    running = play.running()
    np.testing.assert_array_equal(play.timesteps.metrics["score"][running], np.cumsum(play.timesteps.reward, 1)[running])
    idle = ~np.take_along_axis(play.timesteps.action_mask[:, :-1], play.actions[..., None], 2)[..., 0] & running[:, 1:]
    boards = play.states.library.board
    assert idle.any() and (boards[:, 1:] == boards[:, :-1])[idle].all(), "an illegal action must leave the board as it is"


def test_maze(plays):
    for state, view, mask, metrics in running_rows(plays("Maze-v0")):
        agent, target = np.array(state.agent_position), np.array(state.target_position)
        np.testing.assert_array_equal(view[..., 0], state.walls)
        for plane, place in ((1, agent), (2, target)):
            assert np.argwhere(view[..., plane]).tolist() == [place.tolist()]
        free = ~np.pad(state.walls, 1, constant_values=True)
        np.testing.assert_array_equal(mask, [free[tuple(agent + move + 1)] for move in MOVES])
        assert metrics["success"] == np.array_equal(agent, target)


def test_minesweeper(plays):
    play = plays("Minesweeper-v0")
    for state, view, mask, metrics in running_rows(play):
        mines = np.isin(np.arange(12), state.flat_mine_locations).reshape(3, 4)
        around = np.pad(mines, 1)
        counts = sum(around[r : r + 3, c : c + 4] for r in range(3) for c in range(3)) - mines
        opened = view[..., 0] == 0
        np.testing.assert_array_equal(mask, ~opened.ravel())
        np.testing.assert_array_equal(view[..., 1:], (counts[..., None] == np.arange(9)) & opened[..., None])
        np.testing.assert_allclose(metrics["explored"], (opened & ~mines).sum() / 10)
        assert metrics["success"] == (opened & ~mines).sum() // 10


def test_pac_man(plays):
    play = plays("PacMan-v1")
    moves = np.array([[-1, 0], [0, -1], [1, 0], [0, 1]])  # up, left, down, right
    for state, view, mask, metrics in running_rows(play):
        player = np.array(state.player_locations)
        assert np.argwhere(view[..., 3]).tolist() == [player.tolist()]
        np.testing.assert_array_equal(view[..., 0], state.grid)
        np.testing.assert_array_equal(mask, [*(state.grid[tuple((player + m) % state.grid.shape)] for m in moves), False])
        for plane, places in ((1, state.pellet_locations), (2, state.power_up_locations)):
            assert set(map(tuple, np.argwhere(view[..., plane]))) == {(row, column) for column, row in places} - {(0, 0)}
        for ghost, (column, row) in enumerate(state.ghost_locations):
            assert np.argwhere(view[..., 4 + ghost]).tolist() == [[row, column]]
        np.testing.assert_allclose(view[..., 8], max(state.frightened_state_time, 0) / 30)
        np.testing.assert_allclose(view[..., 9], metrics["score"] / (10 * len(state.pellet_locations) + 1000), rtol=1e-5)
        np.testing.assert_allclose(metrics["eaten"], 1 - view[..., 1].sum() / len(state.pellet_locations), atol=1e-6)
    running, timesteps = play.running(), play.timesteps
    np.testing.assert_array_equal(timesteps.metrics["score"][running], np.cumsum(timesteps.reward, 1)[running])
    places, legal = np.stack(play.states.library.player_locations, axis=-1), timesteps.action_mask[:, :-1]
    moved = np.take_along_axis(legal, play.actions[..., None], 2) * np.vstack([moves, [[0, 0]]])[play.actions]
    np.testing.assert_array_equal(places[:, 1:][running[:, 1:]], ((places[:, :-1] + moved) % (31, 28))[running[:, 1:]])
    ghosts = play.states.library.ghost_locations
    assert (ghosts[:1, :20] != ghosts[1:, :20]).any(), "the ghosts of two episodes must not always go the same way"


def test_pac_man_shows_how_long_the_ghosts_stay_scared(plays):
    play = plays("PacMan-v1")
    state = jax.tree.map(lambda leaf: leaf[0, 0], play.states)
    for left, shown in ((30, 1.0), (12, 0.4), (0, 0.0), (-700, 0.0)):
        scared = state.replace(library=state.library.replace(frightened_state_time=jnp.int32(left)))
        np.testing.assert_allclose(play.env.view(scared)[..., 8], shown)
    eaten = state.library.power_up_locations * np.array([[1], [0], [0], [1]])
    assert play.env.view(state.replace(library=state.library.replace(power_up_locations=eaten)))[..., 2].sum() == 2


def test_rubiks_cube(plays):
    play = plays("RubiksCube-v0")
    cubes = play.states.library.cube
    np.testing.assert_array_equal(play.timesteps.observation.reshape(*cubes.shape, 6).argmax(-1), cubes)
    assert (play.timesteps.observation.sum(-1) == 24).all() and play.timesteps.action_mask == ()
    solved = (cubes == cubes[..., :1, :1]).all((2, 3, 4))
    np.testing.assert_array_equal(play.timesteps.metrics["success"][:, 1:], solved[:, 1:])
    easy = jumanji.make("RubiksCube-partly-scrambled-v0")
    assert easy.spec.episode_limit == 20 and easy.library.generator.num_scrambles_on_reset == 7
    assert jumanji.make("RubiksCube-partly-scrambled-v0", time_limit=5).spec.episode_limit == 5


def test_sliding_tile_puzzle(plays):
    play = plays("SlidingTilePuzzle-v0")
    for state, view, mask, metrics in running_rows(play):
        np.testing.assert_array_equal(view.argmax(-1), state.puzzle)
        empty = np.argwhere(state.puzzle == 0)[0] + MOVES
        np.testing.assert_array_equal(mask, ((empty >= 0) & (empty < 2)).all(-1))
        assert metrics["correct"] == np.mean(state.puzzle == [[1, 2], [3, 0]])
    np.testing.assert_array_equal(play.timesteps.metrics["success"], play.ends()[0])
    gained = np.diff(play.timesteps.metrics["correct"], axis=1) * 4
    np.testing.assert_array_equal(play.timesteps.reward[:, 1:], gained)


def test_sokoban(plays):
    play = plays("Sokoban-v0")
    for state, view, _, metrics in running_rows(play):
        fixed, variable = state.fixed_grid, state.variable_grid
        np.testing.assert_array_equal(view, np.stack([fixed == 1, fixed == 2, variable == 3, variable == 4], axis=-1))
        assert metrics["in_place"] == (view[..., 1] * view[..., 3]).sum() / 4
    np.testing.assert_array_equal(play.timesteps.metrics["success"], play.ends()[0])


def test_sudoku(plays):
    play = plays("Sudoku-very-easy-v0")
    box, digits = np.arange(9) // 3, np.arange(9)
    for state, view, mask, metrics in running_rows(play):
        board = state.board
        np.testing.assert_array_equal(view.argmax(-1) - 1, board)
        boxes = board.reshape(3, 3, 3, 3).swapaxes(1, 2).reshape(9, 9)
        solved = all((np.sort(part, axis=1) == digits).all() for part in (board, board.T, boxes))
        assert metrics["filled"] == pytest.approx(np.mean(board >= 0)) and metrics["success"] == solved
        for row, column in np.ndindex(9, 9):
            seen = {*board[row], *board[:, column], *board[np.ix_(box == box[row], box == box[column])].ravel()}
            legal = [board[row, column] < 0 and digit not in seen for digit in range(9)]
            np.testing.assert_array_equal(mask.reshape(9, 9, 9)[row, column], legal)
    assert {len(jumanji.make(f"Sudoku{kind}-v0").library._generator._boards) for kind in ("", "-very-easy")} == {10000, 1000}


def rests(board, piece, column):
    """The row in which a piece that falls into a column comes to rest, negative where it sticks out; None beside the board."""
    cells = np.argwhere(piece)
    if (cells[:, 1] + column >= board.shape[1]).any():
        return None
    row = -4
    while all(r + row + 1 < len(board) and (r + row + 1 < 0 or not board[r + row + 1, c + column]) for r, c in cells):
        row += 1
    return row


def test_tetris(plays):
    play = plays("Tetris-v0")
    for state, view, mask, metrics in running_rows(play):
        board = state.grid_padded[:6, :5] > 0
        np.testing.assert_array_equal(view[..., 0], board)
        np.testing.assert_array_equal(view[..., 1:], np.broadcast_to(np.arange(7) == state.tetromino_index, (6, 5, 7)))
        for turns, column in np.ndindex(4, 5):
            row = rests(board, np.array(TETROMINOES_LIST[state.tetromino_index][turns]), column)
            assert mask[turns * 5 + column] == (row is not None and row >= 0)
        assert metrics["score"] == state.score
    running = play.running()
    np.testing.assert_array_equal(play.timesteps.metrics["score"][running], np.cumsum(play.timesteps.reward, 1)[running])
    assert play.timesteps.reward.max() >= 40, "the sample must hold a cleared line"


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("Game2048-v1", {"board_size": 1}, "board_size must be a whole number, at least 2, got 1"),
        ("Maze-v0", {"num_rows": 1}, "num_rows must be a whole number, at least 2, got 1"),
        ("Minesweeper-v0", {"num_mines": 100}, "num_mines must leave a cell free, got 100 on 10 x 10 cells"),
        ("RubiksCube-v0", {"cube_size": 1}, "cube_size must be a whole number, at least 2, got 1"),
        ("SlidingTilePuzzle-v0", {"grid_size": 2.5}, "grid_size must be a whole number, at least 2, got 2.5"),
        ("Sudoku-v0", {"puzzles": "very_easy"}, "unknown puzzles of Sudoku 'very_easy': did you mean very-easy"),
        ("Tetris-v0", {"num_cols": 3}, "num_cols must be a whole number, at least 4, got 3"),
        ("Sokoban-v0", {"levels": "nowhere.npy"}, "path of a .npy file, got 'nowhere.npy'"),
        ("Sokoban-v0", {"num_levels": 0}, "num_levels must be a whole number, at least 1, got 0"),
        ("Maze-v0", {"observation": "rwa"}, "unknown observation of jumanji/Maze-v0 'rwa': did you mean raw"),
    ],
)
def test_bad_input_is_one_clear_error(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        jumanji.make(name, **kwargs)

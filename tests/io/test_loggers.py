import json
import math
import sys
from types import SimpleNamespace

import numpy as np

from agentgym_jax.io.loggers import JsonLines, TensorBoard, WeightsAndBiases, call_means, finite, read_records

NAN = math.nan


def curves(**values):
    return {name: np.asarray(value, np.float32) for name, value in values.items()}


def test_records_are_means_over_the_iterations_of_a_call():
    values = call_means(curves(loss=[1, 2, 6], episode_return=[NAN, 4, 8], episodes=[0, 1, 2], diverged=[0, 0, 0]))
    assert values == {"loss": 3.0, "episode_return": 6.0, "episodes": 3.0, "diverged": 0.0}


def test_there_is_no_episode_return_where_no_episode_ended():
    values = call_means(curves(episode_return=[NAN, NAN], episode_length=[NAN, NAN], episodes=[0, 0], diverged=[0, 0]))
    assert values == {"episodes": 0.0, "diverged": 0.0}


def test_a_member_that_diverged_says_so():
    values = call_means(curves(loss=[1, NAN], diverged=[0, 1]))
    assert math.isnan(values["loss"])
    assert finite(values) == {"loss": None, "diverged": 0.5}


def test_json_lines_are_exact_and_survive_a_cut(tmp_path):
    logger = JsonLines(tmp_path / "metrics.jsonl", tmp_path / "evaluations.jsonl")
    returns = np.float32([0.1, 1 / 3])
    logger.metrics(0, {"seed": 7}, 640, {"loss": 0.5, "bad": NAN})
    logger.evaluation(0, {"seed": 7}, 640, {"greedy": {"return": returns}})
    logger.flush()
    (record,) = read_records(tmp_path / "evaluations.jsonl")
    assert np.array_equal(np.float32(record["greedy"]["return"]), returns)
    logger.metrics(0, {"seed": 7}, 1280, {"loss": 0.25})
    logger.close()
    path = tmp_path / "metrics.jsonl"
    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == {"step": 640, "member": 0, "seed": 7, "loss": 0.5, "bad": None}
    path.write_text(lines[0] + "\n" + lines[1][:9])
    assert len(read_records(path)) == 1


def test_tensorboard_has_a_folder_a_member_and_steps_as_x(tmp_path, monkeypatch):
    written = []

    class Writer(SimpleNamespace):
        def add_scalar(self, name, value, step):
            written.append((self.logdir, name, value, step))

    monkeypatch.setattr("tensorboardX.SummaryWriter", Writer)
    logger = TensorBoard(tmp_path, [{"seed": 0}, {"seed": 3, "algorithm.gamma": 0.9}])
    logger.metrics(1, {"seed": 3}, 640, {"loss": 0.5})
    logger.evaluation(0, {"seed": 0}, 640, {"greedy": {"return": np.float32([1, 2])}})
    assert written == [
        (str(tmp_path / "seed-3_gamma-0.9"), "train/loss", 0.5, 640),
        (str(tmp_path / "seed-0"), "evaluation/greedy/return", 1.5, 640),
    ]


def test_weights_and_biases_gets_one_run_with_a_prefix_a_member(monkeypatch):
    logged, finished = [], []
    run = SimpleNamespace(log=lambda values, step: logged.append((step, values)), finish=lambda: finished.append(True))
    started = []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **settings: started.append(settings) or run))
    logger = WeightsAndBiases("project", "name", {"seeds": [3]})
    logger.metrics(0, {"seed": 3}, 640, {"loss": 0.5})
    logger.evaluation(0, {"seed": 3}, 640, {"greedy": {"return": np.float32([1, 2])}})
    logger.flush()
    logger.close()
    assert started == [{"project": "project", "name": "name", "config": {"seeds": [3]}}]
    assert logged == [(640, {"seed-3/train/loss": 0.5}), (640, {"seed-3/evaluation/greedy/return": 1.5})]
    assert finished


def test_tensorboard_files_are_written(tmp_path):
    logger = TensorBoard(tmp_path, [{"seed": 0}])
    logger.metrics(0, {"seed": 0}, 640, {"loss": 0.5})
    logger.flush()
    logger.close()
    (events,) = (tmp_path / "seed-0").iterdir()
    assert events.stat().st_size > 0


def test_infinity_is_no_number_of_json():
    assert finite({"a": [1.0, math.inf], "b": np.float32([NAN, 2]), "c": "x"}) == {"a": [1.0, None], "b": [None, 2.0], "c": "x"}

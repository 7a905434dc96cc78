import io
import json
import math
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from agentgym_jax.checks import ConfigError
from agentgym_jax.io.loggers import (
    Console,
    JsonLines,
    TensorBoard,
    WeightsAndBiases,
    call_means,
    finite,
    make_loggers,
    read_records,
)
from agentgym_jax.io.loggers.tensorboard import read_events
from agentgym_jax.io.running.run_directory import create
from tests.io.support import tiny

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


def scalars(folder):
    """{name: [(step, value)]} of all event files of a member, in the order in which TensorBoard reads them."""
    found = {}
    for path in sorted(folder.glob("*tfevents*")):
        for record in read_events(path):
            event = Event.FromString(record[12:-4])
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_tensorboard_has_a_folder_a_member_and_steps_as_x(tmp_path):
    logger = TensorBoard(tmp_path, [{"seed": 0}, {"seed": 3, "algorithm.gamma": 0.9}])
    logger.metrics(1, {}, 640, {"loss": 0.5})
    logger.evaluation(0, {}, 640, {"greedy": {"return": np.float32([1, 2])}})
    logger.flush()
    logger.close()
    assert scalars(tmp_path / "seed-3_gamma-0.9") == {"train/loss": [(640, 0.5)]}
    assert scalars(tmp_path / "seed-0") == {"evaluation/greedy/return": [(640, 1.5)]}


def test_a_resumed_run_goes_on_in_tensorboard_with_the_next_step(tmp_path):
    members = [{"seed": 0}]
    logger = TensorBoard(tmp_path, members)
    for step in (160, 320, 480):
        logger.metrics(0, {}, step, {"loss": step / 10})
    logger.close()
    (events,) = (tmp_path / "seed-0").iterdir()
    events.write_bytes(events.read_bytes() + struct.pack("<Q", 1000) + b"torn")
    for _ in range(2):  # killed again before the next checkpoint, and resumed once more in the same second
        logger = TensorBoard(tmp_path, members, steps=320)
        logger.metrics(0, {}, 480, {"loss": 48.0})
        logger.metrics(0, {}, 640, {"loss": 64.0})
        logger.close()
    assert scalars(tmp_path / "seed-0") == {"train/loss": [(160, 16.0), (320, 32.0), (480, 48.0), (640, 64.0)]}
    assert len(list((tmp_path / "seed-0").iterdir())) == 2


def test_weights_and_biases_gets_one_run_with_a_prefix_a_member(monkeypatch, tmp_path):
    logged, finished = [], []
    run = SimpleNamespace(log=lambda values, step: logged.append((step, values)), finish=lambda: finished.append(True))
    started = []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **settings: started.append(settings) or run))
    for steps in (None, 640):
        logger = WeightsAndBiases("project", tmp_path, {"seeds": [3]}, steps)
        logger.metrics(0, {"seed": 3}, 640, {"loss": 0.5})
        logger.evaluation(0, {"seed": 3}, 640, {"greedy": {"return": np.float32([1, 2])}})
        logger.flush()
        logger.close()
    first, second = started
    assert first == second, "the same id, so the same curves"
    assert (first["project"], first["name"]) == ("project", tmp_path.name)
    assert logged[:2] == [(640, {"seed-3/train/loss": 0.5}), (640, {"seed-3/evaluation/greedy/return": 1.5})]
    assert len(finished) == 2


def wandb_records(data):
    """The records of an offline file of W&B: in LevelDB's log format, behind a header of 7 bytes."""
    start, record = 7, b""
    while start + 7 <= len(data):
        left = 32_768 - start % 32_768
        if left < 7:  # no record begins so late in a block
            start += left
            continue
        length, part = struct.unpack_from("<HB", data, start + 4)
        record, start = record + data[start + 7 : start + 7 + length], start + 7 + length
        if part in (1, 4):  # whole, or the last piece
            yield record
            record = b""


def wandb_history(path):
    """{name: [(step, number)]}."""
    from wandb.proto.wandb_internal_pb2 import Record

    found = {}
    for history in (Record.FromString(record).history for record in wandb_records(path.read_bytes())):
        for item in history.item:
            found.setdefault(item.key or item.nested_key[0], []).append((history.step.num, json.loads(item.value_json)))
    return found


def test_weights_and_biases_works_without_a_network(monkeypatch, tmp_path):
    import wandb

    for name, value in {"MODE": "offline", "SILENT": "true", "DISABLE_GIT": "true", "CONSOLE": "off"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    directory = create(tmp_path / "run")
    experiment = tiny("log.wandb=project", "seeds=[3]")
    loggers = make_loggers(experiment, directory, experiment.members)
    for step in (160, 320):
        for logger in loggers:
            logger.metrics(0, {"seed": 3}, step, {"loss": step / 10})
    for logger in loggers:
        logger.close()
    wandb.teardown()  # as at the end of the process: waits for what its service still writes
    run_id = (directory.path / "wandb" / "id.txt").read_text().strip()
    (written,) = directory.path.glob(f"wandb/offline-run-*-{run_id}/run-{run_id}.wandb")
    assert wandb_history(written)["seed-3/train/loss"] == [(160, 16.0), (320, 32.0)]


def test_the_console_says_one_line_a_call_and_one_an_evaluation():
    stream = io.StringIO()
    logger = Console([{"seed": 0}, {"seed": 1}], stream)
    logger.metrics(0, {"seed": 0}, 1640, {"episode_return": 2.0, "value_loss": 1.0, "diverged": 0.0})
    assert not stream.getvalue()
    logger.metrics(1, {"seed": 1}, 1640, {"episode_return": 4.0, "value_loss": NAN, "diverged": 0.5})
    for index in range(2):
        episodes = {"return": np.float32([index, index]), "length": np.float32([9, 9])}
        logger.evaluation(index, {}, 1640, {"greedy": episodes, "sampled": episodes})
    for index in range(2):
        logger.metrics(index, {}, 3280, {"episodes": 0.0, "diverged": 0.0})
    logger.flush()
    logger.close()
    assert [" ".join(line.split()) for line in stream.getvalue().splitlines()] == [
        "1,640 steps · train · episode_return 3 (2 … 4) · value_loss 1 · 1 of 2 diverged",
        "1,640 steps · evaluation · greedy/return 0.5 (0 … 1) · sampled/return 0.5 (0 … 1)",
        "3,280 steps · train · no episode ended",
    ]
    assert max(map(len, stream.getvalue().splitlines())) < 120


def test_the_console_prints_to_where_standard_output_is_now(capsys):
    logger = Console([{"seed": 0}])
    logger.metrics(0, {}, 16, {"episode_return": 2.0})
    assert "episode_return 2" in capsys.readouterr().out


def test_loggers_are_chosen_by_the_configuration(tmp_path):
    assert tiny().log.active == ("json",)
    experiment = tiny("log.loggers=[console]", "log.tensorboard=true")
    assert experiment.log.active == ("json", "tensorboard", "console")
    loggers = make_loggers(experiment, create(tmp_path / "run"), experiment.members)
    assert [type(logger) for logger in loggers] == [JsonLines, TensorBoard, Console]
    for logger in loggers:
        logger.close()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("log.loggers=[consol]", "log.loggers: 'consol' is not one of json, .* did you mean 'console'"),
        ("log.loggers=[wandb]", "log.wandb: .* needs a project"),
        ("log.loggers=console", "log.loggers"),
    ],
)
def test_loggers_that_cannot_be_are_named(override, message):
    with pytest.raises(ConfigError, match=message):
        tiny(override)


def test_infinity_is_no_number_of_json():
    assert finite({"a": [1.0, math.inf], "b": np.float32([NAN, 2]), "c": "x"}) == {"a": [1.0, None], "b": [None, 2.0], "c": "x"}

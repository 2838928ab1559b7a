"""Metrics of a run in real trackers: event files, a file store and an offline run are read back."""

import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conftest import Run, error_of
from isochron.console import InputError
from isochron.track.cursor import load_cursor
from isochron.track.metrics import Position, read_metrics
from isochron.track.trackers import mlflow_name


def line(step: int, **data: Any) -> str:
    return json.dumps({"step": step, "data": data}) + "\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "run"
    path.mkdir()
    return path


def append(folder: pathlib.Path, text: str) -> None:
    with open(folder / "metrics.jsonl", "a") as stream:
        stream.write(text)


def events(folder: pathlib.Path, tag: str) -> list[tuple[int, float]]:
    """What TensorBoard itself would show."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


# Reading


def test_lines_are_read_once_and_a_partial_one_waits(folder: pathlib.Path):
    path = str(folder / "metrics.jsonl")
    append(folder, line(1, loss=2.0) + line(2, loss=1.5) + '{"step": 3, "da')
    first = read_metrics(path, Position())
    assert first.steps == [(1, {"loss": 2.0}), (2, {"loss": 1.5})]
    assert read_metrics(path, first.position).steps == []
    append(folder, 'ta": {"loss": 1.0}}\n')
    second = read_metrics(path, first.position)
    assert (second.steps, second.started_anew) == ([(3, {"loss": 1.0})], False)


def test_of_two_lines_with_the_same_step_the_later_holds(folder: pathlib.Path):
    append(folder, line(1, a=1) + line(2, a=2, b=1) + line(3, a=3) + line(2, a=20) + line(3, a=30))
    reading = read_metrics(str(folder / "metrics.jsonl"), Position())
    assert reading.steps == [(1, {"a": 1}), (2, {"a": 20}), (3, {"a": 30})]


def test_numbers_that_are_not_finite_stay_what_they_are(folder: pathlib.Path):
    append(
        folder,
        '{"step": 1, "data": {"a": NaN, "b": -Infinity, "c": null, "d": true, "e": 1'
        + "0" * 400
        + "}}\n",
    )
    ((_, numbers),) = read_metrics(str(folder / "metrics.jsonl"), Position()).steps
    assert math.isnan(numbers["a"])
    assert math.isnan(numbers["c"])
    assert (numbers["b"], numbers["d"], numbers["e"]) == (-math.inf, 1.0, math.inf)


@pytest.mark.parametrize(
    "bad",
    [
        "nonsense",
        "[]",
        '{"step": 1}',
        '{"step": -1, "data": {}}',
        '{"step": 1.5, "data": {}}',
        '{"step": true, "data": {}}',
        '{"step": 1, "data": 3}',
        "[" * 100000,
    ],
)
def test_a_line_that_says_nothing_is_told_and_skipped(folder: pathlib.Path, bad: str):
    append(folder, line(1, a=1) + bad + "\n\n" + line(2, a=2))
    reading = read_metrics(str(folder / "metrics.jsonl"), Position())
    assert [step for step, _ in reading.steps] == [1, 2]
    assert len(reading.problems) == 1
    assert reading.problems[0].startswith("a line is skipped: ")


def test_values_that_are_no_numbers_are_told_by_name(folder: pathlib.Path):
    append(folder, line(4, a=1, b="x", c=[1]))
    reading = read_metrics(str(folder / "metrics.jsonl"), Position())
    assert reading.steps == [(4, {"a": 1})]
    assert reading.problems == ["step 4: b, c are no numbers and are left out"]


@pytest.mark.parametrize("later", [line(1, a=9), "".join(line(step, a=9) for step in range(50))])
def test_a_file_that_was_written_anew_is_read_from_its_start(folder: pathlib.Path, later: str):
    append(folder, "".join(line(step, a=1) for step in range(20)))
    path = str(folder / "metrics.jsonl")
    first = read_metrics(path, Position())
    (folder / "metrics.jsonl").write_text(later)
    second = read_metrics(path, first.position)
    assert second.started_anew
    assert second.steps[0][1] == {"a": 9}


def test_a_cursor_comes_back_as_it_was_saved(folder: pathlib.Path):
    cursor = load_cursor(str(folder), "mlflow")
    assert (cursor.position, cursor.last_step, cursor.tracker_run) == (Position(), -1, "")
    cursor.position, cursor.last_step, cursor.tracker_run = Position(7, 8), 9, "id"
    cursor.names["a"] = "b"
    cursor.save()
    assert load_cursor(str(folder), "mlflow") == cursor
    assert load_cursor(str(folder), "wandb").last_step == -1
    (folder / "track_mlflow.json").write_text('{"offset": 3')
    with pytest.raises(InputError, match="track_mlflow.json is damaged"):
        load_cursor(str(folder), "mlflow")


# TensorBoard


def test_tensorboard_shows_every_step_once(folder: pathlib.Path, run: Run):
    append(
        folder,
        line(1, **{"train/loss": 2.5, "train/total_tokens(B)": 0.5})
        + line(2, **{"train/loss": None, "val/loss": 3}),
    )
    result = run("track", folder, "--to", "tensorboard")
    assert (result.stdout, result.stderr) == ("2 steps sent to tensorboard\n", "")
    result = run("track", folder, "--to", "tensorboard")
    assert result.stdout == "0 steps sent to tensorboard\n"
    append(folder, line(3, **{"train/loss": 1.5}))
    assert run("track", folder, "--to", "tensorboard").stdout == "1 steps sent to tensorboard\n"
    (first, second, third) = events(folder, "train/loss")
    assert (first, third) == ((1, 2.5), (3, 1.5))
    assert second[0] == 2
    assert math.isnan(second[1])
    assert events(folder, "train/total_tokens(B)") == [(1, 0.5)]
    assert events(folder, "val/loss") == [(2, 3.0)]


def test_tensorboard_forgets_steps_that_a_resumed_run_writes_again(folder: pathlib.Path, run: Run):
    append(folder, "".join(line(step, a=step) for step in range(1, 8)))
    run("track", folder, "--to", "tensorboard")
    append(folder, "".join(line(step, a=10 * step) for step in range(5, 7)))
    assert run("track", folder, "--to", "tensorboard").stdout == "2 steps sent to tensorboard\n"
    assert events(folder, "a") == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 50), (6, 60)]


def test_following_ends_with_the_report(folder: pathlib.Path):
    (folder / "report.html").write_text("of an earlier part")
    time.sleep(0.02)
    append(folder, line(1, a=1) + '{"step": 2,')
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "isochron.track",
            folder,
            "--to",
            "tensorboard",
            "--follow",
            "--interval",
            "0.05",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        cursor = folder / "track_tensorboard.json"
        wait_until(lambda: cursor.exists() and json.loads(cursor.read_text())["last_step"] == 1)
        append(folder, ' "data": {"a": 2}}\n')
        wait_until(lambda: json.loads(cursor.read_text())["last_step"] == 2)
        assert process.poll() is None
        append(folder, line(3, a=3))
        time.sleep(0.02)
        (folder / "report.html").write_text("done")
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, output) == (0, "3 steps sent to tensorboard\n")
    assert events(folder, "a") == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_following_can_be_interrupted_and_goes_on_later(
    folder: pathlib.Path, run: Run, number: int
):
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "isochron.track",
            folder,
            "--to",
            "tensorboard",
            "--follow",
            "--interval",
            "0.05",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        append(folder, line(1, a=1))
        cursor = folder / "track_tensorboard.json"
        wait_until(lambda: cursor.exists() and json.loads(cursor.read_text())["last_step"] == 1)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, output) == (0, "1 steps sent to tensorboard\n")
    assert errors == "isochron: [track] interrupted; the next call goes on from here\n"
    append(folder, line(2, a=2))
    run("track", folder, "--to", "tensorboard")
    assert events(folder, "a") == [(1, 1), (2, 2)]


# MLflow


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("train/loss", "train/loss"),
        ("train/total_tokens(B)", "train/total_tokens_B_"),
        ("a@8", "a_8"),
        ("/root", "root"),
        ("a//b", "a/b"),
        ("../up", "up"),
        ("..", "_"),
        ("", "_"),
        ("gr\u00f6\u00dfe", "gr__e"),
        ("x" * 300, "x" * 250),
    ],
)
def test_names_become_what_mlflow_takes(name: str, plain: str):
    from mlflow.utils.validation import _validate_metric_name

    assert mlflow_name(name) == plain
    _validate_metric_name(mlflow_name(name))


def test_mlflow_holds_every_step_once(folder: pathlib.Path, run: Run, monkeypatch: Any):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    append(folder, line(1, **{"a(b)": 1, "a[b]": 2}) + line(2, **{"a(b)": 3, "c": None}))
    result = run("track", folder, "--to", "mlflow", "--project", "p", "--name", "n")
    assert result.stdout == "2 steps sent to mlflow\n", result.stderr
    append(folder, line(2, **{"a(b)": 30}) + line(3, **{"a[b]": 4}))
    result = run("track", folder, "--to", "mlflow", "--project", "p")
    assert result.stdout == "1 steps sent to mlflow\n"
    assert error_of(result) == (
        "isochron: [track] steps 2 to 2 were sent before the run wrote them "
        "again; the tracker keeps the earlier numbers"
    )

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=(folder / "mlruns").as_uri())
    (experiment,) = (e for e in client.search_experiments() if e.name == "p")
    (sent,) = client.search_runs([experiment.experiment_id])
    assert (sent.info.run_name, sent.info.status) == ("n", "FINISHED")
    other = json.loads((folder / "track_mlflow.json").read_text())["names"]["a[b]"]
    assert other.startswith("a_b__")
    assert len(other) == len("a_b__") + 8

    def history(name: str) -> list[tuple[int, float]]:
        return [(m.step, m.value) for m in client.get_metric_history(sent.info.run_id, name)]

    assert history("a_b_") == [(1, 1), (2, 3)]
    assert history(other) == [(1, 2), (3, 4)]
    assert [(step, math.isnan(value)) for step, value in history("c")] == [(2, True)]


# Weights & Biases


def wandb_records(content: bytes) -> Iterator[bytes]:
    """The records of an offline file: a LevelDB log behind 7 bytes of its own."""
    at, record = 7, b""
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # the end of a block is too small for a header
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # full, or last
            yield record
            record = b""


def wandb_history(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of all offline files of a run, in the order of writing."""
    from wandb.proto import wandb_internal_pb2

    rows = []
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for content in wandb_records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(content)
            if record.WhichOneof("record_type") == "history":
                rows.append(
                    {
                        item.key or "/".join(item.nested_key): json.loads(item.value_json)
                        for item in record.history.item
                    }
                    | {"step": record.history.step.num}
                )
    return rows


def test_wandb_holds_every_step_once(folder: pathlib.Path, run: Run):
    environment = {**os.environ, "WANDB_MODE": "offline"}
    append(folder, line(1, **{"train/loss": 2.5}) + line(5, **{"train/loss": None}))
    result = run("track", folder, "--to", "wandb", "--project", "p", env=environment)
    assert result.stdout == "2 steps sent to wandb\n", result.stderr
    name = json.loads((folder / "track_wandb.json").read_text())["tracker_run"]
    time.sleep(1.1)  # the folders of wandb are named by the second
    append(folder, line(5, **{"train/loss": 9}) + line(6, **{"train/loss": 1.5}))
    result = run("track", folder, "--to", "wandb", "--project", "p", env=environment)
    assert result.stdout == "1 steps sent to wandb\n"
    assert json.loads((folder / "track_wandb.json").read_text())["tracker_run"] == name
    rows = wandb_history(folder)
    assert [row["step"] for row in rows] == [1, 5, 6]
    assert (rows[0]["train/loss"], rows[2]["train/loss"]) == (2.5, 1.5)
    assert math.isnan(float(rows[1]["train/loss"]))


# Errors


@pytest.mark.parametrize("tracker", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_package_is_one_line(folder: pathlib.Path, run: Run, tracker: str):
    append(folder, line(1, a=1))
    absent = folder / "absent"
    absent.mkdir()
    (absent / f"{tracker}.py").write_text(f"raise ModuleNotFoundError('No module named {tracker}')")
    path = f"{os.environ['PYTHONPATH']}:{absent}"
    result = run("track", folder, "--to", tracker, env={**os.environ, "PYTHONPATH": path})
    assert result.returncode == 3
    assert error_of(result) == (
        f"isochron: [track] {tracker} needs the package {tracker}: pip install {tracker}"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["nowhere", "--to", "tensorboard"], 3, "nowhere: no such folder"),
        (["run", "--to", "tensorboard"], 3, "run/metrics.jsonl: no such file"),
        (["run", "--to", "paper"], 2, "argument --to: invalid choice: 'paper'"),
        (["run"], 2, "the following arguments are required: --to"),
        (
            ["run", "--to", "wandb", "--follow", "--interval", "0"],
            2,
            "interval is 0.0, must be positive",
        ),
        (
            ["run", "--to", "wandb", "--follow", "--destination", "x"],
            2,
            "destination is for tensorboard",
        ),
    ],
)
def test_errors_are_one_line(
    folder: pathlib.Path, run: Run, arguments: list[str], status: int, error: str
):
    result = run("track", *arguments, cwd=folder.parent)
    assert error_of(result).startswith(f"isochron: [track] {error}")
    assert result.returncode == status

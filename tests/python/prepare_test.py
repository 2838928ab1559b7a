"""`python -m isochron.prepare` from files to shards, and what it says."""

import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from chat_templates import (
    CHATML,
    LAST_THOUGHT,
    save_word_model,
    say,
    word_tokenizer,
    words_of,
    write_jsonl,
)
from conftest import Run, error_of
from isochron.console import InputError
from isochron.prepare.command import prepare
from isochron.prepare.options import PrepareOptions
from isochron.prepare.shards import OutputFolder
from isochron.tiny.tokenizer import byte_tokenizer


@pytest.fixture
def model(tmp_path: pathlib.Path) -> str:
    return str(save_word_model(tmp_path / "model"))


def metadata_of(path: pathlib.Path) -> dict[str, Any]:
    with safe_open(path, "numpy") as shard:
        metadata = shard.metadata()
    assert list(metadata) == ["isochron"]  # several would stand in any order
    return json.loads(metadata["isochron"])


def test_shards_read_back(tmp_path: pathlib.Path, model: str, run: Run):
    file = write_jsonl(
        tmp_path / "a.jsonl",
        [
            {"messages": say("hi", "hello"), "task": "greet"},
            {"messages": say("bye"), "task": "part"},
            {"messages": say("hi", "bye", "hello", "ciao"), "task": "greet"},
        ],
    )
    out = tmp_path / "out"
    result = run("prepare", file, "--model", model, "-o", out, "--group-key", "task")
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        f"3 rows, 42 tokens (9 trained), longest 24, in 1 shard: {out}\n"
        "1 rows without a trained token\n"
    )
    assert sorted(os.listdir(out)) == ["index.json", "rows-00000.safetensors"]
    shard = load_file(out / "rows-00000.safetensors")
    assert {name: (str(value.dtype), value.shape) for name, value in shard.items()} == {
        "input_ids": ("int32", (42,)),
        "loss_mask": ("uint8", (42,)),
        "offsets": ("int64", (4,)),
        "group": ("int64", (3,)),
    }
    assert shard["offsets"].tolist() == [0, 12, 18, 42]
    assert shard["group"].tolist() == [0, 1, 0]
    assert words_of(shard["input_ids"][12:18]) == "<|im_start|> user / bye <|im_end|> /"
    trained = shard["input_ids"][18:42][shard["loss_mask"][18:42] == 1]
    assert words_of(trained) == "bye <|im_end|> / ciao <|im_end|> /"

    metadata = metadata_of(out / "rows-00000.safetensors")
    assert metadata["schema"] == "isochron.rows.v1"
    assert metadata["chat_template"] == CHATML
    assert metadata["tokenizer"]["model"] == model
    assert metadata["sources"] == [{"file": str(file), "rows": 3}]
    assert metadata["options"]["group_key"] == "task"
    assert metadata["groups"] == {"0": "greet", "1": "part"}

    index = json.loads((out / "index.json").read_text())
    assert index["schema"] == "isochron.data.v1"
    assert index["shards"] == [{"file": "rows-00000.safetensors", "rows": 3, "tokens": 42}]
    assert index["groups"] == ["greet", "part"]
    assert {
        name: index[name]
        for name in (
            "rows",
            "tokens",
            "trained_tokens",
            "longest_row",
            "rows_without_trained_tokens",
            "skipped",
        )
    } == {
        "rows": 3,
        "tokens": 42,
        "trained_tokens": 9,
        "longest_row": 24,
        "rows_without_trained_tokens": 1,
        "skipped": [],
    }


def test_a_shard_ends_before_it_would_hold_too_much(tmp_path: pathlib.Path, model: str):
    contents = ["hi", "hi hi hi hi hi hi hi hi hi hi", "hi", "hi", "hi", "hi"]  # 6, 15, 6, 6, ..
    file = write_jsonl(
        tmp_path / "a.jsonl",
        [{"messages": say(text), "n": i % 2} for i, text in enumerate(contents)],
    )
    index = prepare(
        PrepareOptions((str(file),), model, str(tmp_path / "out"), shard_tokens=12, group_key="n")
    )
    assert [(shard["rows"], shard["tokens"]) for shard in index["shards"]] == [
        (1, 6),
        (1, 15),
        (2, 12),
        (2, 12),
    ]  # what is longer than a shard stands alone
    rows = []
    for shard in index["shards"]:
        tensors = load_file(tmp_path / "out" / shard["file"])
        rows += np.split(tensors["input_ids"], tensors["offsets"][1:-1])
    assert [len(row) for row in rows] == [6, 15, 6, 6, 6, 6]
    assert metadata_of(tmp_path / "out" / "rows-00001.safetensors")["groups"] == {"1": "1"}


def test_parquet_and_jsonl_of_the_same_conversations_give_the_same_tokens(
    tmp_path: pathlib.Path, model: str
):
    rows = [{"messages": say("hi", "hello")}, {"messages": say("bye", "ciao", "hi", "bye")}]
    lines = write_jsonl(tmp_path / "a.jsonl", rows)
    table = tmp_path / "b.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), table)
    for name, file in (("x", lines), ("y", table)):
        prepare(PrepareOptions((str(file),), model, str(tmp_path / name)))
    x, y = (load_file(tmp_path / name / "rows-00000.safetensors") for name in "xy")
    assert {name: value.tolist() for name, value in x.items()} == {
        name: value.tolist() for name, value in y.items()
    }


def test_any_number_of_workers_writes_the_same_bytes(tmp_path: pathlib.Path, model: str):
    generator = random.Random(5)
    rows = [
        {"messages": say(*(" ".join(["hi"] * generator.randrange(1, 30)) for _ in range(4)))}
        for _ in range(200)
    ]
    rows[77] = {"messages": []}
    file = write_jsonl(tmp_path / "a.jsonl", rows)
    for workers in (1, 3):
        prepare(
            PrepareOptions(
                (str(file),),
                model,
                str(tmp_path / f"{workers}"),
                shard_tokens=5000,
                on_error="skip",
                num_workers=workers,
            )
        )
    names = sorted(os.listdir(tmp_path / "1"))
    assert len(names) > 3
    assert sorted(os.listdir(tmp_path / "3")) == names
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "3" / name).read_bytes(), name


def test_a_bad_row_is_named_also_by_workers_and_nothing_is_written(
    tmp_path: pathlib.Path, model: str, run: Run
):
    rows: list[Any] = [{"messages": say("hi", "hello")}] * 100
    file = write_jsonl(tmp_path / "a.jsonl", [*rows, {"messages": "hi"}, {"messages": 3}])
    for workers in (1, 2):
        result = run(
            "prepare", file, "--model", model, "-o", tmp_path / "out", "--num-workers", workers
        )
        assert result.returncode == 2
        assert error_of(result) == (
            f"isochron: [prepare] {file} row 100 (line 101): messages is a string, must be a list "
            "of {role, content}"
        )
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "model"]


def test_skipped_rows_are_counted_and_listed(tmp_path: pathlib.Path, model: str, run: Run):
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"messages": []}\n'
        + json.dumps({"messages": say("hi", "hello")})
        + "\nnonsense\n"
        + json.dumps({"messages": say("hi " * 50)})
        + "\n"
    )
    result = run(
        "prepare",
        file,
        "--model",
        model,
        "-o",
        tmp_path / "out",
        "--on-error",
        "skip",
        "--max-length",
        20,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[1:] == ["3 rows skipped, listed in index.json"]
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert index["rows"] == 1
    assert [(skipped["row"], skipped["reason"]) for skipped in index["skipped"]] == [
        (0, "messages is empty"),
        (2, "is not JSON: Expecting value at column 1"),
        (3, "has 55 tokens, max_length is 20; --truncation left or right cuts it"),
    ]
    assert {skipped["file"] for skipped in index["skipped"]} == {str(file)}


def test_a_mismatch_is_one_warning_for_all_rows(tmp_path: pathlib.Path, run: Run):
    model = save_word_model(tmp_path / "model", LAST_THOUGHT)
    file = write_jsonl(tmp_path / "a.jsonl", [{"messages": say("hi", "hello")}] * 5)
    result = run("prepare", file, "--model", model, "-o", tmp_path / "out")
    assert result.returncode == 2
    assert error_of(result).startswith(
        f"isochron: [prepare] {file} row 0 (line 1): token 9 (messages[1], assistant) differs"
    )
    result = run(
        "prepare", file, "--model", model, "-o", tmp_path / "out", "--ignore-input-ids-mismatch"
    )
    assert result.returncode == 0
    assert error_of(result).startswith(
        f"isochron: [prepare] warning: {file} row 0 (line 1): token 9"
    )
    assert "5 rows that differ from their whole conversation" in result.stdout
    assert json.loads((tmp_path / "out" / "index.json").read_text())["rows_with_mismatch"] == 5


def test_an_answer_without_the_generation_prompt_is_one_warning(tmp_path: pathlib.Path, run: Run):
    template = CHATML.replace("<|im_start|>assistant\\n", "<|im_start|>assistant\\n<think>\\n")
    model = save_word_model(tmp_path / "model", template)
    file = write_jsonl(tmp_path / "a.jsonl", [{"messages": say("hi", "hello", "hi", "bye")}] * 3)
    result = run("prepare", file, "--model", model, "-o", tmp_path / "out")
    assert result.returncode == 0
    assert error_of(result).endswith(
        "an assistant message does not start with the generation prompt, "
        "whose length is not trained; others are counted only"
    )
    assert "6 messages without the generation prompt" in result.stdout


def test_max_samples_are_the_first_rows_of_all_files(tmp_path: pathlib.Path, model: str):
    files = tuple(str(write_jsonl(tmp_path / name, [{"messages": say(name)}] * 3)) for name in "ab")
    for samples, rows in ((4, 4), (6, 6), (100, 6), (-1, 6)):
        index = prepare(
            PrepareOptions(files, model, str(tmp_path / "out"), max_samples=samples, overwrite=True)
        )
        assert index["rows"] == rows


def test_left_truncation_keeps_positions(tmp_path: pathlib.Path, model: str):
    file = write_jsonl(
        tmp_path / "a.jsonl", [{"messages": say("hi")}, {"messages": say("hi", "hello")}]
    )
    prepare(
        PrepareOptions((str(file),), model, str(tmp_path / "out"), max_length=8, truncation="left")
    )
    shard = load_file(tmp_path / "out" / "rows-00000.safetensors")
    assert shard["position_ids"].dtype == np.int32
    assert shard["position_ids"].tolist() == [*range(6), *range(4, 12)]
    prepare(
        PrepareOptions(
            (str(file),), model, str(tmp_path / "right"), max_length=8, truncation="right"
        )
    )
    assert "position_ids" not in load_file(tmp_path / "right" / "rows-00000.safetensors")


def test_empty_input_is_an_error(tmp_path: pathlib.Path, model: str, run: Run):
    empty = tmp_path / "a.jsonl"
    empty.write_text("\n\n")
    table = tmp_path / "b.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({"messages": pyarrow.array([], pyarrow.null())}), table
    )
    result = run("prepare", empty, table, "--model", model, "-o", tmp_path / "out")
    assert result.returncode == 2
    assert error_of(result) == f"isochron: [prepare] {empty}, {table}: no rows"


def test_an_input_of_which_nothing_is_left_is_an_error(tmp_path: pathlib.Path, model: str):
    file = write_jsonl(tmp_path / "a.jsonl", [{"messages": []}] * 3)
    with pytest.raises(
        InputError, match=r"all 3 rows were skipped, the first, .* row 0: messages is"
    ):
        prepare(PrepareOptions((str(file),), model, str(tmp_path / "out"), on_error="skip"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (
            ["missing.jsonl", "--model", "model", "-o", "out"],
            3,
            "missing.jsonl: no such file or directory",
        ),
        (
            ["a.jsonl", "--model", "nowhere", "-o", "out"],
            3,
            "nowhere: no such folder; model must be a",
        ),
        (["a.jsonl", "--model", "empty", "-o", "out"], 2, "empty has no usable tokenizer: "),
        (["a.jsonl", "--model", "plain", "-o", "out"], 2, "plain has no chat template: "),
        (["a.jsonl", "--model", "model"], 2, "the following arguments are required: -o/--output"),
        (
            ["a.jsonl", "--model", "model", "-o", "full"],
            2,
            "full is not empty; --overwrite replaces it",
        ),
        (
            ["a.jsonl", "--model", "model", "-o", "full", "--overwrite"],
            2,
            "full holds something else than prepared data: no index.json",
        ),
        (
            ["a.jsonl", "--model", "model", "-o", "a.jsonl"],
            2,
            "a.jsonl is a file, must be a folder",
        ),
        (
            ["a.jsonl", "--model", "model", "-o", "out", "--messages-key", "chat"],
            2,
            "a.jsonl row 0 (line 1): has no column 'chat', but 'messages'",
        ),
    ],
)
def test_errors_are_one_line(
    tmp_path: pathlib.Path, model: str, run: Run, arguments: list[str], status: int, error: str
):
    write_jsonl(tmp_path / "a.jsonl", [{"messages": say("hi")}])
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    word_tokenizer("").save_pretrained(tmp_path / "plain")
    before = sorted(os.listdir(tmp_path))
    result = run("prepare", *arguments, cwd=tmp_path)
    assert error_of(result).startswith(f"isochron: [prepare] {error}")
    assert (result.returncode, result.stdout) == (status, "")
    assert sorted(os.listdir(tmp_path)) == before


def test_overwriting_replaces_the_folder_as_a_whole(tmp_path: pathlib.Path, model: str):
    file = write_jsonl(tmp_path / "a.jsonl", [{"messages": say("hi")}] * 4)
    options = PrepareOptions(
        (str(file),), model, str(tmp_path / "out"), shard_tokens=6, overwrite=True
    )
    assert len(prepare(options)["shards"]) == 4
    prepare(PrepareOptions((str(file),), model, str(tmp_path / "out"), overwrite=True))
    assert sorted(os.listdir(tmp_path / "out")) == ["index.json", "rows-00000.safetensors"]
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "model", "out"]


def test_a_folder_that_appears_in_the_meantime_is_left_alone(tmp_path: pathlib.Path):
    with OutputFolder(str(tmp_path / "out"), overwrite=False) as folder:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "index.json").write_text("of another process")
        with pytest.raises(InputError, match="out is not empty; --overwrite replaces it"):
            folder.commit()
    assert (tmp_path / "out" / "index.json").read_text() == "of another process"
    assert os.listdir(tmp_path) == ["out"]


def test_a_disk_that_takes_no_more_is_one_line(tmp_path: pathlib.Path, model: str, run: Run):
    file = write_jsonl(tmp_path / "a.jsonl", [{"messages": say("hi " * 50, "hello")}] * 100)
    limit = 10000  # bytes of a file
    result = run(
        *("prepare", file, "--model", model, "-o", tmp_path / "out"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert result.returncode == 3
    assert error_of(result).endswith(
        "rows-00000.safetensors: Error while serializing: I/O error: File too large (os error 27)"
    )
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "model"]


def test_an_interrupted_command_leaves_nothing_behind(tmp_path: pathlib.Path, model: str):
    file = write_jsonl(tmp_path / "a.jsonl", [{"messages": say(*["hi " * 50] * 40)}] * 20000)
    command = [
        sys.executable,
        "-m",
        "isochron.prepare",
        file,
        "--model",
        model,
        "-o",
        tmp_path / "out",
        "--max-length",
        "9999",
    ]
    # A shell starts what runs in the background with interrupts ignored.
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob("out.tmp-*")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.splitlines()[-1]) == (130, "isochron: [prepare] interrupted")
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "model"]


def test_a_hundred_random_conversations_of_any_characters(tmp_path: pathlib.Path):
    byte_tokenizer().save_pretrained(tmp_path / "model")
    tokenizer = byte_tokenizer()
    generator = random.Random(11)
    alphabet = 'ab \n\t<|im_end|>{}"\\\u00e4\u4e2d\U0001f600\u0000'
    rows = []
    for _ in range(100):
        contents = [
            "".join(generator.choice(alphabet) for _ in range(generator.randrange(40)))
            for _ in range(generator.randrange(1, 7))
        ]
        rows.append({"messages": say(*contents)})
    file = write_jsonl(tmp_path / "a.jsonl", rows)
    prepare(PrepareOptions((str(file),), str(tmp_path / "model"), str(tmp_path / "out")))
    shard = load_file(tmp_path / "out" / "rows-00000.safetensors")
    for number, (row, ids) in enumerate(
        zip(rows, np.split(shard["input_ids"], shard["offsets"][1:-1]), strict=True)
    ):
        whole = tokenizer.apply_chat_template(row["messages"], tokenize=True, return_dict=True)
        assert ids.tolist() == whole["input_ids"], f"row {number}"

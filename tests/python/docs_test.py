"""What docs/data.md shows is what happens."""

import json
import os
import pathlib
import shlex
import subprocess
import sys

from safetensors.numpy import load_file

from isochron.prepare.options import PrepareOptions

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "data.md"


def opening_example() -> list[tuple[str, str]]:
    """Commands of the first indented block, each with what it prints."""
    lines = PAGE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("    $ "))
    calls: list[tuple[str, str]] = []
    for line in lines[start:]:
        if not line.startswith("    "):
            break
        if line.startswith("    $ "):
            calls.append((line[6:], ""))
        else:
            command, output = calls[-1]
            calls[-1] = (command, output + line[4:] + "\n")
    return calls


def test_the_opening_example_prints_what_the_page_says(tmp_path: pathlib.Path):
    calls = opening_example()
    assert len(calls) == 3
    for command, expected in calls:
        words = [sys.executable if word == "python" else word for word in shlex.split(command)]
        result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        assert result.stdout == expected, command
    shard = load_file(tmp_path / "tiny" / "train" / "rows-00000.safetensors")
    assert len(shard["offsets"]) == 257


def test_the_page_lists_every_option():
    text = PAGE.read_text()
    missing = [
        flag
        for name in PrepareOptions("", "", "").recorded()
        if (flag := "--" + name.replace("_", "-")) not in text
    ]
    assert missing == []


def test_the_page_lists_every_entry_of_the_index(tmp_path: pathlib.Path):
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"messages": [{"role": "user", "content": "hi"}], "g": 1}) + "\n"
    )
    from isochron.prepare.command import prepare
    from isochron.tiny.tokenizer import byte_tokenizer

    byte_tokenizer().save_pretrained(tmp_path / "model")
    index = prepare(
        PrepareOptions(
            (os.fspath(tmp_path / "a.jsonl"),),
            os.fspath(tmp_path / "model"),
            os.fspath(tmp_path / "out"),
            group_key="g",
        )
    )
    text = PAGE.read_text()
    assert [name for name in index if f"`{name}`" not in text] == []

"""Rows out of parquet and JSONL."""

import json
import pathlib
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from chat_templates import say, write_jsonl
from isochron.console import InputError
from isochron.prepare.source import SourceRow, count_rows, read_rows

COLUMNS = ["messages", "tools", "images"]


def rows_of(*files: pathlib.Path) -> list[SourceRow]:
    return list(read_rows([str(file) for file in files], COLUMNS, "messages"))


def write_parquet(path: pathlib.Path, columns: dict[str, Any], **options: Any) -> pathlib.Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def test_rows_come_in_order_with_their_places(tmp_path: pathlib.Path):
    lines = write_jsonl(tmp_path / "a.jsonl", [{"messages": say("hi")}, {"messages": say("bye")}])
    table = write_parquet(tmp_path / "b", {"messages": [say("ciao")] * 600}, row_group_size=100)
    rows = rows_of(lines, table)
    assert len(rows) == 602
    assert [row.columns["messages"][0]["content"] for row in rows[:3]] == ["hi", "bye", "ciao"]
    assert str(rows[1].place) == f"{lines} row 1 (line 2)"
    assert str(rows[-1].place) == f"{table} row 599"
    assert count_rows([str(lines), str(table)]) == {str(lines): 2, str(table): 600}


def test_blank_lines_are_no_rows_and_a_mark_or_crlf_no_content(tmp_path: pathlib.Path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"messages": [1]}\r\n\r\n  \n{"messages": [2]}')
    assert [(row.columns["messages"], row.place.row, row.place.line) for row in rows_of(file)] == [
        ([1], 0, 1),
        ([2], 1, 4),
    ]
    assert count_rows([str(file)]) == {str(file): 2}


def test_parquet_and_jsonl_of_the_same_rows_say_the_same(tmp_path: pathlib.Path):
    rows = [
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": None, "tool_calls": [{"name": "add"}]},
            ]
        },
        {"messages": say("bye"), "tools": [{"name": "add", "unit": "m"}, {"name": "mul"}]},
    ]
    lines = write_jsonl(tmp_path / "a.jsonl", rows)
    table = tmp_path / "b.parquet"
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(
            [{"messages": row["messages"], "tools": row.get("tools")} for row in rows]
        ),
        table,
    )
    from_table = [{k: v for k, v in row.columns.items() if v is not None} for row in rows_of(table)]
    assert from_table == [row.columns for row in rows_of(lines)] == rows


def test_other_columns_are_left_where_they_are(tmp_path: pathlib.Path):
    table = write_parquet(tmp_path / "a", {"messages": [say("hi")], "other": [1]})
    assert rows_of(table)[0].columns == {"messages": say("hi")}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "is not JSON: Expecting property name enclosed in double quotes at column 2"),
        (b'["a"]', "is a list, must be a JSON object, one per line"),
        (b'{"other": 1}', "has no column 'messages', but 'other'"),
        (b"{}", "has no column 'messages', but nothing"),
        (b'{"messages": [], "messages": []}', "has 'messages' twice in one object"),
        (b'{"messages": [{"role": "a", "role": "b"}]}', "has 'role' twice in one object"),
        (b'{"messages": "\xff"}', "is not UTF-8 at byte 14"),
        (b'{"messages":' + b"[" * 100000, "is nested too deep"),
    ],
)
def test_a_line_that_is_no_row_is_a_problem_of_that_row(
    tmp_path: pathlib.Path, line: bytes, problem: str
):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"messages": [1]}\n' + line + b'\n{"messages": [2]}\n')
    rows = rows_of(file)
    assert [row.problem for row in rows] == ["", problem, ""]
    assert rows[2].place.row == 2


def test_a_parquet_file_without_the_column_is_an_error_that_lists_what_it_has(
    tmp_path: pathlib.Path,
):
    table = write_parquet(tmp_path / "a", {"prompt": ["x"], "answer": ["y"]})
    with pytest.raises(InputError, match="a has no column 'messages', but 'prompt', 'answer'"):
        rows_of(table)


def test_duplicate_columns_are_an_error(tmp_path: pathlib.Path):
    column = pyarrow.array([say("hi")])
    table = pyarrow.Table.from_arrays([column, column], names=["messages", "messages"])
    pyarrow.parquet.write_table(table, tmp_path / "a")
    with pytest.raises(InputError, match="a has 2 columns 'messages', must have one"):
        rows_of(tmp_path / "a")


def test_a_damaged_parquet_file_is_an_error(tmp_path: pathlib.Path):
    table = write_parquet(tmp_path / "a", {"messages": [say(f"number {i}") for i in range(1000)]})
    content = table.read_bytes()
    table.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="a is a damaged parquet file"):
        rows_of(table)
    table.write_bytes(content[:4] + bytes(996) + content[1000:])  # the footer is whole
    with pytest.raises(InputError, match="a is damaged after row 0"):
        rows_of(table)


def test_a_file_given_twice_or_a_folder_is_an_error(tmp_path: pathlib.Path):
    file = str(write_jsonl(tmp_path / "a.jsonl", [{"messages": say("hi")}]))
    with pytest.raises(InputError, match="a.jsonl is given twice"):
        count_rows([file, file])
    with pytest.raises(InputError, match="is a folder, must be a parquet or JSONL file"):
        count_rows([str(tmp_path)])


def test_an_array_of_rows_is_told_to_be_one_row_per_line(tmp_path: pathlib.Path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"messages": say("hi")}]))
    assert rows_of(file)[0].problem == "is a list, must be a JSON object, one per line"

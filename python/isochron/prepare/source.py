"""Rows out of parquet and JSONL files, one after the other, with the place of each.

A file is told by its content: parquet starts with PAR1. Rows count from 0 over the file; blank
lines of JSONL are no rows.
"""

import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from isochron.console import InputError, WorldError, one_line

PARQUET_MAGIC = b"PAR1"
PARQUET_BATCH_ROWS = 256  # bounds what is held in memory


class RowError(InputError):
    """A row cannot be used; the message says why, without its place."""


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a row stands."""

    file: str
    row: int  # from 0
    line: int | None = None  # from 1; None in parquet

    def __str__(self) -> str:
        return f"{self.file} row {self.row}" + (f" (line {self.line})" if self.line else "")


@dataclasses.dataclass(frozen=True)
class SourceRow:
    """A row as it was read; `problem` says why it could not be."""

    place: Place
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)
    problem: str = ""


def count_rows(files: Sequence[str]) -> dict[str, int]:
    """Rows of each file. Raises WorldError if one cannot be read, InputError if it is neither."""
    counts = {}
    for file in files:
        if file in counts:
            raise InputError(f"{file} is given twice")
        if _is_parquet(file):
            counts[file] = _open_parquet(file).metadata.num_rows
        else:
            with open(file, "rb") as stream:
                counts[file] = sum(1 for line in stream if _content(line))
    return counts


def read_rows(files: Sequence[str], columns: Sequence[str], required: str) -> Iterator[SourceRow]:
    """Rows of all files in order, with those of `columns` that each has.

    `required` must be a column of every parquet file; a row of JSONL without it is a problem of
    that row.
    """
    for file in files:
        reader = _read_parquet if _is_parquet(file) else _read_jsonl
        yield from reader(file, columns, required)


def _is_parquet(file: str) -> bool:
    if os.path.isdir(file):
        raise InputError(f"{file} is a folder, must be a parquet or JSONL file")
    with open(file, "rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _open_parquet(file: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise WorldError(f"{file} is parquet, which needs the package pyarrow") from error
    try:
        return pyarrow.parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{file} is a damaged parquet file: {one_line(error)}") from error


def _read_parquet(file: str, columns: Sequence[str], required: str) -> Iterator[SourceRow]:
    import pyarrow

    parquet = _open_parquet(file)
    names = parquet.schema_arrow.names
    for name in columns:
        if names.count(name) > 1:
            raise InputError(f"{file} has {names.count(name)} columns {name!r}, must have one")
    if required not in names:
        raise InputError(f"{file} has no column {required!r}, but {_listed(names)}")
    present = [name for name in columns if name in names]
    row = 0
    try:
        for batch in parquet.iter_batches(batch_size=PARQUET_BATCH_ROWS, columns=present):
            for values in batch.select(present).to_pylist():
                yield SourceRow(Place(file, row), {k: _without_nulls(v) for k, v in values.items()})
                row += 1
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{file} is damaged after row {row}: {one_line(error)}") from error


def _without_nulls(value: Any) -> Any:
    """Drops null fields: a column of structs has every field that any of its rows has.

    The content of a message stays, because there null says something.
    """
    if isinstance(value, dict):
        return {
            name: _without_nulls(field)
            for name, field in value.items()
            if field is not None or (name == "content" and "role" in value)
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _content(line: bytes) -> bytes:
    return line.removeprefix(b"\xef\xbb\xbf").strip()


def _read_jsonl(file: str, columns: Sequence[str], required: str) -> Iterator[SourceRow]:
    row = 0
    with open(file, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            content = _content(line)
            if not content:
                continue
            place = Place(file, row, number)
            try:
                values = _parse_object(content, required)
                yield SourceRow(place, {name: values[name] for name in columns if name in values})
            except RowError as error:
                yield SourceRow(place, problem=str(error))
            row += 1


def _parse_object(content: bytes, required: str) -> dict[str, Any]:
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_object_of_unique_names)
    except UnicodeDecodeError as error:
        raise RowError(f"is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise RowError(f"is not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise RowError("is nested too deep") from error
    if not isinstance(value, dict):
        raise RowError(f"is {type_name(value)}, must be a JSON object, one per line")
    if required not in value:
        raise RowError(f"has no column {required!r}, but {_listed(value)}")
    return value


def _object_of_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RowError(f"has {twice!r} twice in one object")
    return value


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"


def type_name(value: Any) -> str:
    """What JSON calls the type of `value`, with an article."""
    names = {
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "a string",
        bytes: "bytes",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)

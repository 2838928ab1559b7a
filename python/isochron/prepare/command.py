"""The whole of `python -m isochron.prepare`: read, tokenise, write, count, report."""

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

from isochron import __version__
from isochron.console import InputError, Progress, say
from isochron.prepare.conversation import MediaError
from isochron.prepare.options import PrepareOptions, parse_options
from isochron.prepare.row import RowMaker
from isochron.prepare.shards import OutputFolder, ShardWriter
from isochron.prepare.source import RowError, count_rows, read_rows
from isochron.prepare.workers import make_rows

INDEX_SCHEMA = "isochron.data.v1"
ROWS_SCHEMA = "isochron.rows.v1"


def main(arguments: Sequence[str]) -> None:
    """Does what a command line asks for and says on standard output what came of it."""
    options = parse_options(arguments)
    print(summary(prepare(options), options.output))


def prepare(options: PrepareOptions) -> dict[str, Any]:
    """Writes the folder `options.output` and returns its index.

    Raises InputError (a bad row is named by file and row) or WorldError, and then writes nothing.
    Equal input gives equal bytes, for any number of workers.
    """
    columns = options.columns()
    rows_of_file = count_rows(options.files)
    num_rows = sum(rows_of_file.values())
    if options.max_samples > 0:
        num_rows = min(num_rows, options.max_samples)
    if num_rows == 0:
        raise InputError(f"{', '.join(options.files)}: no rows")
    with OutputFolder(options.output, options.overwrite) as folder:
        maker = RowMaker(options)
        description = {
            "version": __version__,
            **maker.description(),
            "sources": [{"file": file, "rows": rows} for file, rows in rows_of_file.items()],
            "options": options.recorded(),
        }
        writer = ShardWriter(
            folder.temporary,
            options.shard_tokens,
            options.group_key is not None,
            {"schema": ROWS_SCHEMA, **description},
        )
        counts = _write_rows(options, columns, num_rows, maker, writer)
        index = {"schema": INDEX_SCHEMA, **counts, "shards": writer.shards, **description}
        if options.group_key is not None:
            index["groups"] = list(writer.groups)
        writer.write_index(index)
        folder.commit()
    return index


def _write_rows(
    options: PrepareOptions,
    columns: Sequence[str],
    num_rows: int,
    maker: RowMaker,
    writer: ShardWriter,
) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "rows": 0,
        "tokens": 0,
        "trained_tokens": 0,
        "longest_row": 0,
        "rows_with_media": 0,
        "rows_without_trained_tokens": 0,
        "rows_with_mismatch": 0,
        "messages_without_generation_prompt": 0,
        "skipped": [],
    }
    sources = itertools.islice(read_rows(options.files, columns, options.messages_key), num_rows)
    made = make_rows(sources, maker, options)
    with Progress("rows", num_rows) as progress, contextlib.closing(made):
        for done, (source, row) in enumerate(made, start=1):
            progress.set_done(done)
            if isinstance(row, MediaError) or (
                isinstance(row, RowError) and options.on_error == "error"
            ):
                raise InputError(f"{source.place}: {row}")
            if isinstance(row, RowError):
                counts["skipped"].append(
                    {"file": source.place.file, "row": source.place.row, "reason": str(row)}
                )
                continue
            if row.mismatch and counts["rows_with_mismatch"] == 0:
                say(
                    "prepare",
                    f"warning: {source.place}: {row.mismatch}; other rows like it are counted only",
                )
            if row.num_without_prompt and counts["messages_without_generation_prompt"] == 0:
                say(
                    "prepare",
                    f"warning: {source.place}: an assistant message does not start with "
                    "the generation prompt, whose length is not trained; others are counted only",
                )
            counts["rows"] += 1
            counts["tokens"] += len(row.input_ids)
            counts["trained_tokens"] += row.num_trained
            counts["longest_row"] = max(counts["longest_row"], len(row.input_ids))
            counts["rows_with_media"] += bool(row.media)
            counts["rows_without_trained_tokens"] += row.num_trained == 0
            counts["rows_with_mismatch"] += bool(row.mismatch)
            counts["messages_without_generation_prompt"] += row.num_without_prompt
            writer.add(row)
    writer.finish_shard()
    if counts["rows"] == 0:
        first = counts["skipped"][0]
        raise InputError(
            f"all {len(counts['skipped'])} rows were skipped, the first, "
            f"{first['file']} row {first['row']}: {first['reason']}"
        )
    return counts


def summary(index: dict[str, Any], output: str) -> str:
    """What people are told, one fact a line."""
    lines = [
        f"{index['rows']:,} rows, {index['tokens']:,} tokens ({index['trained_tokens']:,} "
        f"trained), longest {index['longest_row']:,}, in {len(index['shards'])} "
        f"shard{'s' * (len(index['shards']) != 1)}: {output}"
    ]
    for key, meaning in (
        ("rows_with_media", "rows with media"),
        ("rows_without_trained_tokens", "rows without a trained token"),
        ("rows_with_mismatch", "rows that differ from their whole conversation"),
        ("messages_without_generation_prompt", "messages without the generation prompt"),
    ):
        if index[key]:
            lines.append(f"{index[key]:,} {meaning}")
    if index["skipped"]:
        lines.append(f"{len(index['skipped']):,} rows skipped, listed in index.json")
    return "\n".join(lines)

"""Rows of tokens as safetensors shards in a folder that appears complete or not at all.

    OUTPUT/index.json                   schema isochron.data.v1: shards, counts, what was skipped
    OUTPUT/rows-00000.safetensors       input_ids int32 [tokens], loss_mask uint8 [tokens],
                                        offsets int64 [rows + 1]; position_ids int32 [tokens] or
                                        [4, tokens] unless every row counts 0, 1, 2, ..; group
                                        int64 [rows] with --group-key
    OUTPUT/media/rows-00000.safetensors for shards with media: `ROW.NAME` for every output NAME of
                                        the processor, ROW counted in the shard

`__metadata__` of a shard has one entry, `isochron`: JSON text that says where the rows come from.
One entry, because safetensors writes several in any order, and equal rows shall be equal bytes.
"""

import json
import os
import shutil
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from isochron.console import InputError, WorldError, one_line
from isochron.prepare.row import TokenRow

INDEX = "index.json"
MEDIA_FOLDER = "media"
# Media wait in memory for the end of their shard, so that ends a shard too.
MAX_MEDIA_BYTES = 2**30


class OutputFolder:
    """A folder under a temporary name until commit(); without that it leaves nothing behind."""

    def __init__(self, path: str, overwrite: bool) -> None:
        """Raises InputError if `path` holds something that may not be replaced."""
        self._path = path.rstrip("/") or path
        self._overwrite = overwrite
        self._check_place()
        self.temporary = f"{self._path}.tmp-{os.getpid()}"

    def _check_place(self) -> None:
        if os.path.lexists(self._path) and not os.path.isdir(self._path):
            raise InputError(f"{self._path} is a file, must be a folder or nothing")
        if os.path.isdir(self._path) and os.listdir(self._path):
            if not self._overwrite:
                raise InputError(f"{self._path} is not empty; --overwrite replaces it")
            if not os.path.exists(os.path.join(self._path, INDEX)):
                raise InputError(
                    f"{self._path} holds something else than prepared data: no {INDEX}"
                )

    def __enter__(self) -> "OutputFolder":
        os.makedirs(self.temporary)
        return self

    def commit(self) -> None:
        """Gives the folder its name. Raises InputError if that was taken in the meantime."""
        self._check_place()
        _sync_folder(self.temporary)
        replaced = f"{self._path}.old-{os.getpid()}"
        if os.path.isdir(self._path):
            os.rename(self._path, replaced)
        os.rename(self.temporary, self._path)
        _sync_folder(os.path.dirname(os.path.abspath(self._path)))
        shutil.rmtree(replaced, ignore_errors=True)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.temporary, ignore_errors=True)


class ShardWriter:
    """Collects rows into shards of one folder."""

    def __init__(
        self, folder: str, shard_tokens: int, has_groups: bool, description: dict[str, Any]
    ) -> None:
        """`description` goes into the metadata of every shard."""
        self._folder = folder
        self._shard_tokens = shard_tokens
        self._has_groups = has_groups
        self._description = description
        self._rows: list[TokenRow] = []
        self._num_tokens = 0
        self._media_bytes = 0
        self.shards: list[dict[str, Any]] = []
        self.groups: dict[str, int] = {}  # name to number, by first appearance

    def add(self, row: TokenRow) -> None:
        """Appends a row; a shard that it would overfill ends before it."""
        is_full = (
            self._num_tokens + len(row.input_ids) > self._shard_tokens
            or self._media_bytes > MAX_MEDIA_BYTES
        )
        if self._rows and is_full:
            self.finish_shard()
        self._rows.append(row)
        self._num_tokens += len(row.input_ids)
        self._media_bytes += sum(value.nbytes for value in row.media.values())

    def finish_shard(self) -> None:
        """Writes the rows that are not written yet, if any."""
        if not self._rows:
            return
        rows, name = self._rows, f"rows-{len(self.shards):05d}.safetensors"
        description = dict(self._description)
        tensors = {
            "input_ids": np.concatenate([row.input_ids for row in rows]),
            "loss_mask": np.concatenate([row.loss_mask for row in rows]),
            "offsets": np.cumsum([0, *(len(row.input_ids) for row in rows)], dtype=np.int64),
        }
        if any(row.position_ids is not None for row in rows):
            tensors["position_ids"] = _joined_positions(rows)
        if self._has_groups:
            numbers = [self.groups.setdefault(row.group or "", len(self.groups)) for row in rows]
            tensors["group"] = np.asarray(numbers, dtype=np.int64)
            here = set(numbers)
            description["groups"] = {
                str(number): group for group, number in self.groups.items() if number in here
            }
        shard = {"file": name, "rows": len(rows), "tokens": self._num_tokens}
        media = {
            f"{index}.{key}": np.ascontiguousarray(value)
            for index, row in enumerate(rows)
            for key, value in row.media.items()
        }
        if media:
            shard["media"] = f"{MEDIA_FOLDER}/{name}"
            os.makedirs(os.path.join(self._folder, MEDIA_FOLDER), exist_ok=True)
            _save(media, os.path.join(self._folder, shard["media"]), {"rows": name})
        _save(tensors, os.path.join(self._folder, name), description)
        self.shards.append(shard)
        self._rows, self._num_tokens, self._media_bytes = [], 0, 0

    def write_index(self, index: dict[str, Any]) -> None:
        """Writes index.json."""
        with open(os.path.join(self._folder, INDEX), "w", encoding="utf-8") as stream:
            json.dump(index, stream, indent=1, ensure_ascii=False)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())


def _joined_positions(rows: list[TokenRow]) -> np.ndarray:
    """[tokens], or [4, tokens] if any row has four; rows without positions count 0, 1, 2, .."""
    positions = [
        np.arange(len(row.input_ids), dtype=np.int32)
        if row.position_ids is None
        else row.position_ids
        for row in rows
    ]
    num_axes = max(position.ndim for position in positions)
    if num_axes == 2:
        num_rows = max(len(position) for position in positions if position.ndim == 2)
        positions = [
            np.broadcast_to(position, (num_rows, position.shape[-1])) for position in positions
        ]
    return np.ascontiguousarray(np.concatenate(positions, axis=-1))


def _save(tensors: dict[str, np.ndarray], path: str, description: dict[str, Any]) -> None:
    text = json.dumps(description, ensure_ascii=False, sort_keys=True)
    try:
        save_file(tensors, path, metadata={"isochron": text})
    except SafetensorError as error:
        raise WorldError(f"{path}: {one_line(error)}") from error
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The lines of metrics.jsonl from where the last reading ended.

A line counts once its line break is there: a run may be in the middle of writing it. Where a run
resumes it writes steps again; of lines with the same step the later one holds.
"""

import dataclasses
import json
import math
import os
import zlib
from typing import Any

CHECKED_BYTES = 256  # before the offset: tells a file that was written anew from one that grew


@dataclasses.dataclass(frozen=True)
class Position:
    """How far a file has been read."""

    offset: int = 0
    checksum: int = 0  # of the bytes before it


@dataclasses.dataclass(frozen=True)
class Reading:
    """What was new in the file."""

    steps: list[tuple[int, dict[str, float]]]  # in the order of the file, each step once
    position: Position
    started_anew: bool  # the file does not continue what was read before
    problems: list[str]


def read_metrics(path: str, position: Position) -> Reading:
    """All complete lines after `position`; from the start if the file was written anew."""
    with open(path, "rb") as stream:
        started_anew = _checksum(stream, position.offset) != position.checksum
        offset = 0 if started_anew else position.offset
        stream.seek(offset)
        content = stream.read()
        content = content[: content.rfind(b"\n") + 1]
        end = offset + len(content)
        checksum = _checksum(stream, end)
    steps: dict[int, dict[str, float]] = {}
    problems = []
    for line in content.splitlines():
        if not line.strip():
            continue
        try:
            step, data = _parse(line)
        except ValueError as error:
            problems.append(f"a line is skipped: {error}: {line[:80].decode(errors='replace')}")
            continue
        steps.pop(step, None)  # the later line stands where it was written
        steps[step], unusable = _numbers(data)
        if unusable:
            problems.append(f"step {step}: {', '.join(unusable)} are no numbers and are left out")
    return Reading(list(steps.items()), Position(end, checksum), started_anew, problems)


def _checksum(stream: Any, offset: int) -> int:
    start = max(0, offset - CHECKED_BYTES)
    stream.seek(0, os.SEEK_END)
    if stream.tell() < offset:
        return -1
    stream.seek(start)
    return zlib.crc32(stream.read(offset - start))


def _parse(line: bytes) -> tuple[int, dict[str, Any]]:
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("not JSON") from error
    if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
        raise ValueError('not {"step": .., "data": {..}}')
    step = value.get("step")
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError("step is not a count")
    return step, value["data"]


def _numbers(data: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    """The numbers, with null for one that is not finite, and the names of what is none."""
    numbers, unusable = {}, []
    for name, value in data.items():
        if value is None:
            numbers[name] = math.nan
        elif isinstance(value, int | float):
            numbers[name] = _as_float(value)
        else:
            unusable.append(name)
    return numbers, unusable


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all doubles
        return math.inf if value > 0 else -math.inf

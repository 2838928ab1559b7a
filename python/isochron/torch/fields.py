"""Batches as they come: one tensor, a mapping of names to fields, or a TensorDict.

Functions of this package take any of these and give back the same kind with the same names. A
field is a jagged tensor (tokens of each row), a dense tensor (one entry a row) or a list (one
object a row); what is none of these and no array belongs to all rows and is kept as it is. The
package tensordict is needed by those who have a TensorDict, and by nobody else.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy
from torch import Tensor

BatchT = TypeVar("BatchT")  # Tensor, Mapping[str, Any] or TensorDict

OnTensors = Callable[[str, list[Tensor]], Tensor]
OnLists = Callable[[str, list[list[Any]]], list[Any]]


def combine_fields(
    where: str,
    batches: Sequence[BatchT],
    on_tensors: OnTensors,
    on_lists: OnLists,
    num_rows: int | None = None,
) -> BatchT:
    """One batch out of several of the same kind and names, field by field.

    The functions get where to blame for an error, "[where] name:", and the field of each batch. A
    TensorDict comes back with `num_rows` rows, or without a batch size if that is None.
    """
    combined: BatchT = _combine(f"[{where}]", "", batches, on_tensors, on_lists, num_rows)
    return combined


def _combine(
    where: str,
    name: str,
    parts: Sequence[Any],
    on_tensors: OnTensors,
    on_lists: OnLists,
    num_rows: int | None,
) -> Any:
    blame = f"{where} {name}:" if name else where
    first = parts[0]
    if any(type(part) is not type(first) for part in parts):
        kinds = sorted({type(part).__name__ for part in parts})
        raise ValueError(f"{blame} the parts are {' and '.join(kinds)}, must be of one kind")
    if isinstance(first, Tensor):
        return on_tensors(blame, list(parts))
    if isinstance(first, list):
        return on_lists(blame, list(parts))
    if isinstance(first, numpy.ndarray):
        raise ValueError(f"{blame} the field is a numpy array, must be a tensor or a list")
    if not isinstance(first, Mapping) and not is_tensordict(first):
        return first
    columns = [dict(_fields(part)) for part in parts]
    for column in columns:
        if different := sorted(column.keys() ^ columns[0].keys()):
            raise ValueError(f"{blame} {different[0]} is in some of the parts, must be in all")
    combined = {
        key: _combine(
            where,
            f"{name}.{key}" if name else key,
            [column[key] for column in columns],
            on_tensors,
            on_lists,
            num_rows,
        )
        for key in columns[0]
    }
    return _tensordict(combined, num_rows) if is_tensordict(first) else combined


def is_tensordict(batch: object) -> bool:
    """Whether `batch` is a TensorDict: only who has imported the package can have one."""
    tensordict = sys.modules.get("tensordict")
    return tensordict is not None and isinstance(batch, tensordict.TensorDictBase)


def _fields(batch: Any) -> Iterator[tuple[str, Any]]:
    """Names and fields; what tensordict wraps because it is no tensor comes out as it is."""
    if not is_tensordict(batch):
        yield from batch.items()
        return
    from tensordict import NonTensorData, NonTensorStack

    for name in batch.keys():  # noqa: SIM118, a TensorDict iterates over rows
        field = batch.get(name)
        if isinstance(field, NonTensorStack):
            yield name, list(field.tolist())
        elif isinstance(field, NonTensorData):
            yield name, _OfAllRows(field.data)
        else:
            yield name, field


class _OfAllRows:
    """Keeps a list that belongs to all rows apart from one that has an entry for each."""

    def __init__(self, data: object) -> None:
        self.data = data


def _tensordict(fields: Mapping[str, Any], num_rows: int | None) -> Any:
    from tensordict import NonTensorStack, TensorDict

    batch = TensorDict({}, batch_size=[] if num_rows is None else [num_rows])
    for name, field in fields.items():
        if isinstance(field, _OfAllRows):
            batch.set_non_tensor(name, field.data)
        else:
            batch.set(name, NonTensorStack(*field) if isinstance(field, list) else field)
    return batch

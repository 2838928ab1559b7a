"""The best micro-batches of a rank that agrees with others on their number.

Every rank finds the fewest micro-batches that hold its own rows, all ranks take the largest of
these counts, and every rank packs into exactly so many: wherever k micro-batches keep the cap,
k + 1 do, as long as each gets a row. All that can be wrong is a number too, so that one exchange
tells every rank the count or the error, and none waits for one that has raised.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from isochron import _planner
from isochron.compat.agreement import Agreement


@dataclass(frozen=True)
class MicrobatchQuestion:
    """The arguments of rearrange_micro_batches that are not data."""

    max_token_len: int
    num_batches_divided_by: int | None = None
    min_num_micro_batch: int | None = None
    use_dynamic_bsz_balance: bool = True
    force_group_size: int = 1


@dataclass(frozen=True)
class _Groups:
    """What moves: rows that stay together, in consecutive runs of equal size."""

    tokens: np.ndarray[Any, Any]
    workloads: np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Need:
    """What the ranks agree on: the largest of each field over them."""

    count: int = 0  # of micro-batches
    longest: int = 0
    most_group_tokens: int = 0
    negative_groups: int = -(2**62)
    undivided_rows: int = -1  # rows that force_group_size does not divide; -1: it does
    failed: int = 0  # 1: a rank could not say what it needs


def best_microbatches(
    lengths_of_rows: Callable[[], np.ndarray[Any, Any]],
    question: MicrobatchQuestion,
    agreement: Agreement | None,
) -> list[list[int]]:
    """The rows of each micro-batch, ascending. AssertionError and ValueError as in verl 0.9.1."""
    failure: Exception | None = None
    try:
        lengths = lengths_of_rows().astype(np.int64)
        groups = _groups_of(lengths, question.force_group_size)
        need = _need_of(lengths, groups, question)
    except Exception as error:  # the others have to know before it goes up
        failure, need = error, _Need(failed=1)
    if agreement is not None:
        need = _Need(*agreement(list(astuple(need))))
    if failure is not None:
        raise failure
    count = _agreed_count(need, question)
    parts = _packed(groups, question, count)
    if question.use_dynamic_bsz_balance:  # the largest in the middle: short warm-up and drain
        parts = parts[::2][::-1] + parts[1::2]
    size = question.force_group_size
    return [[group * size + i for group in part for i in range(size)] for part in parts]


def _groups_of(lengths: np.ndarray[Any, Any], size: int) -> _Groups:
    whole = len(lengths) // size * size
    rows = lengths[:whole].reshape(-1, size)
    # A row without a token takes the room of one.
    return _Groups(np.maximum(rows, 1).sum(axis=1), (24576 * rows + rows * rows).sum(axis=1))


def _need_of(lengths: np.ndarray[Any, Any], groups: _Groups, question: MicrobatchQuestion) -> _Need:
    is_divided = len(lengths) % question.force_group_size == 0
    most = int(groups.tokens.max(initial=0))
    count = 0
    if is_divided and 0 < most <= question.max_token_len:
        packing = _planner.pack(groups.tokens, capacity=question.max_token_len)
        count = len(packing.microbatches)
    return _Need(
        count=max(count, question.min_num_micro_batch or 0),
        longest=int(lengths.max()),
        most_group_tokens=most,
        negative_groups=-len(groups.tokens),
        undivided_rows=-1 if is_divided else len(lengths),
    )


def _agreed_count(need: _Need, question: MicrobatchQuestion) -> int:
    cap = question.max_token_len
    if need.failed:
        raise RuntimeError(
            "[rearrange_micro_batches] another rank of dp_group could not read its batch; "
            "it says why"
        )
    assert cap >= need.longest, (
        "max_token_len must be greater than the sequence length. "
        f"Got max_token_len={cap} and max_seq_len={need.longest}"
    )
    assert need.undivided_rows < 0, (
        f"Batch size {need.undivided_rows} must be divisible by force_group_size "
        f"{question.force_group_size}"
    )
    if need.most_group_tokens > cap:
        raise ValueError(
            "A forced group exceeds max_token_len and cannot be split. "
            f"Got max_group_token_len={need.most_group_tokens} and max_token_len={cap}."
        )
    multiple = question.num_batches_divided_by or 1
    count = (need.count + multiple - 1) // multiple * multiple
    if count > -need.negative_groups:
        raise ValueError(
            "Cannot satisfy max_token_len while keeping forced groups atomic and using the same "
            "micro-batch count across DP ranks. "
            f"Requested {count} non-empty micro-batches, but a rank has only "
            f"{-need.negative_groups} forced groups."
        )
    return count


def _packed(groups: _Groups, question: MicrobatchQuestion, count: int) -> list[list[int]]:
    """Groups in exactly `count` micro-batches, in descending order of workload."""
    packing = _planner.pack(
        groups.tokens, costs=groups.workloads, capacity=question.max_token_len, count=count
    )
    workloads = groups.workloads.tolist()
    return sorted(
        packing.microbatches,
        key=lambda part: (sum(workloads[group] for group in part), part),
        reverse=True,
    )

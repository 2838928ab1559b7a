"""Results of all micro-batches back in the order of the batch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from isochron import StepPlan
from isochron.torch.fields import BatchT, combine_fields
from isochron.torch.jagged import is_jagged, jagged, positions_in_rows, ragged, spread, take
from isochron.torch.microbatch import microbatches_of_ranks


def restore_order(plan: StepPlan, outputs_of_rank: Sequence[Sequence[BatchT]]) -> BatchT:
    """The rows of the batch, in its order, out of the results of every rank.

    `outputs_of_rank[r][i]` is what rank r has for the i-th of `microbatches_of(plan, r)`, one row
    for each of its sequences: a tensor, jagged (see `unpack`) or with one entry a row, a mapping
    of such or a TensorDict. Of a context group the leader's counts, and what other members,
    padding rows and placeholders have is not looked at. A row that the plan dropped is empty if
    jagged, else 0 (None in a list). Gradients flow back to what was taken.
    """
    if len(outputs_of_rank) != plan.ranks:
        raise ValueError(
            f"[restore_order] there are outputs of {len(outputs_of_rank)} ranks, must be of "
            f"{plan.ranks}"
        )
    taken: list[BatchT] = []
    sequences: list[list[int]] = []
    for rank, microbatches in enumerate(microbatches_of_ranks(plan)):
        outputs = outputs_of_rank[rank]
        if len(outputs) != len(microbatches):
            raise ValueError(
                f"[restore_order] rank {rank} has {len(outputs)} outputs, must have "
                f"{len(microbatches)}: one for each of its micro-batches"
            )
        for microbatch, output in zip(microbatches, outputs, strict=True):
            if microbatch.is_leader and not microbatch.is_placeholder:
                taken.append(output)
                sequences.append(list(microbatch.sequences))
    return in_order(taken, sequences, len(plan.lengths))


def in_order(
    outputs: Sequence[BatchT], sequences: Sequence[Sequence[int]], num_rows: int
) -> BatchT:
    """Rows 0 to `num_rows` out of `outputs`, whose rows have the ids `sequences`."""
    place_of_row = torch.full((num_rows,), -1, dtype=torch.int64)
    for place, row in enumerate(row for part in sequences for row in part):
        if row < num_rows:
            place_of_row[row] = place

    def restore_field(where: str, parts: list[Tensor]) -> Tensor:
        for part, rows in zip(parts, sequences, strict=True):
            _require_rows(where, len(part) if part.dim() else 0, rows)
        if not is_jagged(parts[0]):
            return take(torch.cat(parts), place_of_row)
        return _restore_jagged(where, parts, place_of_row)

    def restore_list(where: str, parts: list[list[Any]]) -> list[Any]:
        for part, rows in zip(parts, sequences, strict=True):
            _require_rows(where, len(part), rows)
        entries = [entry for part in parts for entry in part]
        return [entries[place] if place >= 0 else None for place in place_of_row.tolist()]

    return combine_fields("restore_order", outputs, restore_field, restore_list, num_rows)


def _restore_jagged(where: str, parts: list[Tensor], place_of_row: Tensor) -> Tensor:
    rows = [ragged(where, part) for part in parts]
    sizes = torch.tensor([len(part.values) for part in rows])
    starts = torch.cat(
        [part.starts + shift for part, shift in zip(rows, sizes.cumsum(0) - sizes, strict=True)]
    )
    lengths = take(torch.cat([part.lengths for part in rows]), place_of_row)
    index = spread(starts[place_of_row], lengths) + positions_in_rows(lengths)
    values = take(torch.cat([part.values for part in rows]), index)
    return jagged(values, lengths, rows[0].token_dim)


def _require_rows(where: str, given: int, sequences: Sequence[int]) -> None:
    if given != len(sequences):
        raise ValueError(
            f"{where} an output has {given} rows, its micro-batch has {len(sequences)}"
        )

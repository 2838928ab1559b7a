"""Results of micro-batches back in the order of the batch."""

import pytest
import torch

from batches import (
    MIXED_LENGTHS,
    all_microbatches,
    assert_rows_equal,
    jagged_rows,
    message_of,
    plan_of,
)
from isochron.torch import restore_order


def outputs_of(plan, make):
    return [[make(m) for m in microbatches] for microbatches in all_microbatches(plan)]


def test_entries_of_rows_come_back_in_order():
    plan = plan_of(MIXED_LENGTHS, 4, 24, context="dynamic", pad_multiple=12)
    outputs = outputs_of(plan, lambda m: torch.tensor(m.sequences)[:, None] * 1.5)
    restored = restore_order(plan, outputs)
    assert restored.tolist() == [[1.5 * row] for row in range(10)]


def test_the_leader_of_a_group_counts():
    plan = plan_of([20, 3], 2, 16, context="dynamic")
    assert len(plan.microbatches[0][0].ranks) == 2
    outputs = outputs_of(plan, lambda m: torch.full((len(m.sequences),), float(m.rank)))
    leader_of = {
        i: m.ranks[0] for part in all_microbatches(plan) for m in part for i in m.sequences
    }
    assert restore_order(plan, outputs).tolist() == [float(leader_of[row]) for row in range(2)]


def test_a_dropped_row_is_empty_or_zero():
    plan = plan_of([4, 5, 6], 2, 6, counts="equal", short="drop")
    assert list(plan.dropped) == [2]
    tokens = outputs_of(plan, lambda m: jagged_rows([torch.full((n,), n) for n in m.lengths]))
    assert_rows_equal(
        restore_order(plan, tokens),
        [torch.full((4,), 4), torch.full((5,), 5), torch.zeros(0, dtype=torch.int64)],
    )
    rows = outputs_of(plan, lambda m: torch.tensor(m.lengths))
    assert restore_order(plan, rows).tolist() == [4, 5, 0]
    names = outputs_of(plan, lambda m: [f"row {i}" for i in m.sequences])
    assert restore_order(plan, names) == ["row 0", "row 1", None]


def test_a_placeholder_is_not_looked_at():
    plan = plan_of([3, 4], 3, 16, counts="equal")
    outputs = outputs_of(plan, lambda m: None if m.is_placeholder else torch.tensor(m.lengths))
    assert restore_order(plan, outputs).tolist() == [3, 4]


def test_gradients_flow_to_what_was_taken():
    plan = plan_of([20, 3, 5], 2, 16, context="dynamic", pad_multiple=4)
    outputs = outputs_of(
        plan,
        lambda m: (
            jagged_rows([torch.ones(n, dtype=torch.float64) for n in m.lengths])
            .detach()
            .requires_grad_()
        ),
    )
    (restore_order(plan, outputs).values() * torch.arange(1.0, 29.0)).sum().backward()
    starts = [0, 20, 23]
    for rank, microbatches in enumerate(all_microbatches(plan)):
        for m, output in zip(microbatches, outputs[rank], strict=True):
            if not m.is_leader:
                assert output.grad is None
                continue
            for sequence, row in zip(m.sequences, output.grad.unbind(), strict=True):
                if sequence == 3:  # the padding row
                    assert row.tolist() == [0, 0]
                else:
                    assert row.tolist() == [starts[sequence] + i + 1 for i in range(len(row))]


@pytest.mark.parametrize(
    "outputs, message",
    [
        ([[]], "[restore_order] there are outputs of 1 ranks, must be of 2"),
        ([[], []], "[restore_order] rank 0 has 0 outputs, must have 1: one for each of its "
                   "micro-batches"),
        ([[torch.zeros(2)], [torch.zeros(1)]],
         "[restore_order] an output has 2 rows, its micro-batch has 1"),
        ([[{"x": torch.zeros(1)}], [{"x": torch.zeros(1), "y": torch.zeros(1)}]],
         "[restore_order] y is in some of the parts, must be in all"),
        ([[{"x": torch.zeros(1)}], [{"x": [1]}]],
         "[restore_order] x: the parts are Tensor and list, must be of one kind"),
    ],
)  # fmt: skip
def test_mistakes_are_named_in_one_line(outputs, message):
    assert message_of(lambda: restore_order(plan_of([3, 3], 2, 4), outputs)) == message

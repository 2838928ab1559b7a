"""What a plan gives each rank."""

import pytest

import isochron
from batches import MIXED_LENGTHS, all_microbatches, message_of, plan_of
from isochron.torch import ContextGroups, microbatches_of, rows_of


def test_ranks_run_their_groups_in_the_order_of_the_slots():
    plan = plan_of(MIXED_LENGTHS, 4, 24, context="dynamic")
    assert {len(group.ranks) for slot in plan.microbatches for group in slot} > {1}
    for rank, microbatches in enumerate(all_microbatches(plan)):
        expected = [
            (slot, list(group.ranks), list(group.sequences))
            for slot, groups in enumerate(plan.microbatches)
            for group in groups
            if rank in list(group.ranks)
        ]
        assert [(m.slot, list(m.ranks), list(m.sequences)) for m in microbatches] == expected
        for microbatch in microbatches:
            assert microbatch.lengths == tuple(MIXED_LENGTHS[i] for i in microbatch.sequences)
            assert microbatch.ranks[microbatch.context_rank] == rank
            assert microbatch.is_leader == (rank == microbatch.ranks[0])
            assert not microbatch.is_placeholder


def test_a_rank_without_work_has_no_microbatch():
    plan = plan_of([3, 4], 3, 16)
    assert sorted(len(microbatches) for microbatches in all_microbatches(plan)) == [0, 1, 1]


def test_a_placeholder_can_be_filled_with_a_padding_row():
    plan = plan_of([3, 4], 3, 16, counts="equal")
    placeholders = [m for part in all_microbatches(plan) for m in part if m.is_placeholder]
    assert len(placeholders) == 1
    filled = placeholders[0].filled()
    assert (filled.sequences, filled.lengths) == ((2,), (2,))
    assert filled.filled() is filled


def test_padding_rows_have_two_tokens_and_the_ids_behind_the_last_row():
    plan = plan_of([3, 4, 5], 2, 16, pad_multiple=4)
    assert plan.padding_rows == 1
    lengths = {
        sequence: length
        for part in all_microbatches(plan)
        for m in part
        for sequence, length in zip(m.sequences, m.lengths, strict=True)
    }
    assert lengths == {0: 3, 1: 4, 2: 5, 3: 2}


def test_a_rank_needs_its_own_rows_and_no_padding_rows():
    plan = plan_of(MIXED_LENGTHS, 3, 24, context="dynamic:any", pad_multiple=11)
    needed = [rows_of(plan, rank) for rank in range(3)]
    for rank, rows in enumerate(needed):
        sequences = {i for m in microbatches_of(plan, rank) for i in m.sequences}
        assert rows == sorted(i for i in sequences if i < len(MIXED_LENGTHS))
    assert sorted({row for rows in needed for row in rows}) == list(range(len(MIXED_LENGTHS)))


def test_tensor_parallel_comes_from_the_plan():
    plan = plan_of([3, 4], 1, 16, tensor_parallel=4)
    assert [m.tensor_parallel for m in microbatches_of(plan, 0)] == [4]


def test_a_rank_that_the_plan_lacks_is_named():
    plan = plan_of([3, 4], 2, 16)
    with pytest.raises(ValueError, match=r"^\[microbatches_of\] rank is 2, must be from 0 to 1$"):
        microbatches_of(plan, 2)
    with pytest.raises(ValueError, match=r"^\[microbatches_of\] rank is -1, must be from 0 to 1$"):
        microbatches_of(plan, -1)


def test_the_ranks_of_a_copy_ascend():
    message = message_of(lambda: ContextGroups([[0, 1], [3, 2]]))
    assert message == "[ContextGroups] copies[1] is [3, 2], must ascend"


def test_where_there_is_no_plan_its_reason_is_given():
    plan = isochron.plan_step([30], ranks=2, capacity=16)
    assert plan.status == "infeasible"
    with pytest.raises(ValueError, match=r"^\[microbatches_of\] the plan is infeasible: .*30"):
        microbatches_of(plan, 0)

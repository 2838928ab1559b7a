"""Context groups, gathered shards and collected results in real processes, over Gloo."""

import contextlib

import pytest
import torch
import torch.distributed as dist

from batches import MIXED_LENGTHS, assert_rows_equal, jagged_rows, plan_of, random_field, run_ranks
from isochron.torch import (
    ContextGroups,
    collect_rows,
    collect_tokens,
    gather_shards,
    microbatches_of,
    pack,
    require_same_plan,
    shard_of,
    token_weights,
    unpack,
)

PLANS = [
    (24, {"context": "dynamic:any"}),
    (64, {}),
    (40, {"context": "dynamic:any", "min_context_size": 2, "pad_multiple": 13}),
]


def token_function(tokens, positions, weight):
    return torch.sin(tokens * weight) + torch.cos(positions[:, None] * weight)


def sequence_loss(rows):
    """Every token of a sequence matters to every later one."""
    return sum((row.cumsum(0) ** 2).sum() / len(row) for row in rows)


def weight_parameter():
    return torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)


def small_field():
    field = random_field(5, MIXED_LENGTHS, (2,))
    return torch.nested.nested_tensor_from_jagged(field.values() / 100, field.offsets())


def whole_rows(weight):
    """What no plan has touched."""
    return [token_function(row, torch.arange(len(row)), weight) for row in small_field().unbind()]


def check_values_and_gradients(rank: int) -> None:
    """`own`: every member evaluates the whole loss of its group."""
    expected_weight = weight_parameter()
    expected = whole_rows(expected_weight)
    sequence_loss(expected).backward()

    groups = ContextGroups(max_open=1)  # every plan ends groups of the one before
    for capacity, options in [*PLANS, PLANS[0]]:
        plan = plan_of(MIXED_LENGTHS, dist.get_world_size(), capacity, **options)
        groups.prepare(plan)
        weight = weight_parameter()
        tokens, rows = [], []
        for m in microbatches_of(plan, rank):
            shard = shard_of(m)
            output = token_function(pack(small_field(), shard), shard.positions, weight)
            unpacked = unpack(output, shard, groups.of(m))
            for sequence, row in zip(m.sequences, unpacked.unbind(), strict=True):
                if sequence < len(MIXED_LENGTHS):
                    torch.testing.assert_close(row, expected[sequence], rtol=0, atol=0)
            is_real = [sequence < len(MIXED_LENGTHS) for sequence in m.sequences]
            real = [row for row, keep in zip(unpacked.unbind(), is_real, strict=True) if keep]
            loss = sequence_loss(real)
            if real:
                loss.backward()
            tokens.append(output)
            rows.append(torch.stack([row.sum(0) for row in unpacked.detach().unbind()]))
        grad = weight.grad if weight.grad is not None else torch.zeros_like(weight)
        dist.all_reduce(grad)
        torch.testing.assert_close(grad, expected_weight.grad, rtol=1e-12, atol=1e-12)

        collected = collect_tokens(plan, tokens)
        assert not collected.requires_grad
        assert_rows_equal(collected, [row.detach() for row in expected])
        sums = torch.stack([row.detach().sum(0) for row in expected])
        torch.testing.assert_close(collect_rows(plan, rows), sums, rtol=1e-14, atol=1e-14)
    groups.close()


def check_summed_gradients(rank: int) -> None:
    """`sum`: each member evaluates its own part of what it sees of the others."""
    size = dist.get_world_size()
    own = (torch.arange(6, dtype=torch.float64).view(3, 2) + 10 * rank).requires_grad_()
    gathered = gather_shards(own, dist.group.WORLD, gradient="sum")
    assert gathered.shape == (size, 3, 2)
    (gathered**2 * (rank + 1)).sum().backward()
    expected = 2 * own.detach() * sum(range(1, size + 1))
    torch.testing.assert_close(own.grad, expected, rtol=0, atol=0)

    own.grad = None
    (gather_shards(own, dist.group.WORLD) ** 2 * (rank + 1)).sum().backward()
    torch.testing.assert_close(own.grad, 2 * own.detach() * (rank + 1), rtol=0, atol=0)


def check_dtypes_and_fields(rank: int) -> None:
    plan = plan_of([11, 6], dist.get_world_size(), 8, context="dynamic:any")
    groups = ContextGroups()
    groups.prepare(plan)
    names = {
        str(dtype): random_field(3, [11, 6], dtype=dtype)
        for dtype in (torch.bool, torch.bfloat16, torch.float16, torch.uint8, torch.int64)
    }
    outputs = {name: [] for name in names}
    for m in microbatches_of(plan, rank):
        shard = shard_of(m)
        packed = pack(names, shard)
        unpacked = unpack(packed, shard, groups.of(m))
        for name, field in names.items():
            assert_rows_equal(unpacked[name], [field.unbind()[i] for i in m.sequences])
            outputs[name].append(packed[name])
    for name, field in names.items():
        assert_rows_equal(collect_tokens(plan, outputs[name]), field.unbind())
    groups.close()


def check_ranks_without_work(rank: int) -> None:
    size = dist.get_world_size()
    field = jagged_rows([torch.arange(12.0).view(3, 4).half()])
    for options in ({}, {"counts": "equal"}):
        plan = plan_of([3], size, 16, **options)
        outputs = [pack(field, shard_of(m.filled())) for m in microbatches_of(plan, rank)]
        assert_rows_equal(collect_tokens(plan, outputs), field.unbind())
        rows = [torch.full((len(m.sequences), 2), 7) for m in microbatches_of(plan, rank)]
        assert collect_rows(plan, rows).tolist() == [[7, 7]]


def check_data_parallel(rank: int) -> None:
    """What docs/own_loop.md says about DDP: equal counts, the mean undone, placeholders filled."""
    lengths = [5, 4, 6, 3]
    size = dist.get_world_size()
    field = random_field(6, lengths, (2,))
    plan = plan_of(lengths, size, 6, counts="equal")
    microbatches = microbatches_of(plan, rank)
    assert len(microbatches) == 2
    has_placeholder = any(not group.sequences for slot in plan.microbatches for group in slot)
    assert has_placeholder == (size == 3)

    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1).double()
    expected = torch.nn.Linear(2, 1).double()
    expected.load_state_dict(model.state_dict())
    weights = token_weights(plan, random_field(7, lengths), dtype=torch.float64)
    (weights.values() * expected(field.values()).squeeze(1) ** 2).sum().backward()

    parallel = torch.nn.parallel.DistributedDataParallel(model)
    for i, m in enumerate(microbatches):
        is_last = i + 1 == len(microbatches)
        with contextlib.nullcontext() if is_last else parallel.no_sync():
            shard = shard_of(m.filled())
            losses = parallel(pack(field, shard)).squeeze(1) ** 2
            ((pack(weights, shard) * losses).sum() * size).backward()
    for actual, wanted in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(actual.grad, wanted.grad, rtol=1e-12, atol=1e-12)


def check_copies_of_a_plan(rank: int) -> None:
    """Two pipeline stages of two ranks each, on four ranks of the job."""
    copies = [[0, 2], [1, 3]]
    groups = ContextGroups(copies)
    plan = plan_of([11], 2, 8, context="dynamic")
    groups.prepare(plan)
    place = next(copy.index(rank) for copy in copies if rank in copy)
    m = microbatches_of(plan, place)[0]
    shard = shard_of(m)
    field = random_field(3, [11])
    group = groups.of(m)
    assert dist.get_process_group_ranks(group) == next(copy for copy in copies if rank in copy)
    assert_rows_equal(unpack(pack(field, shard), shard, group), field.unbind())
    groups.close()


def check_errors(rank: int) -> None:
    size = dist.get_world_size()
    plan = plan_of([11, 6], size, 8, context="dynamic:any")
    m = microbatches_of(plan, rank)[0]
    if m.context_size > 1:
        with pytest.raises(ValueError, match=r"^\[ContextGroups\] there is no group of the ranks "):
            ContextGroups().of(m)
    with pytest.raises(ValueError, match=r"^\[collect_tokens\] there are 0 outputs, must be \d: "):
        collect_tokens(plan, [])
    wide = plan_of([11, 6], size + 1, 16)
    message = rf"^\[collect_rows\] the group has {size} ranks, must have {size + 1}$"
    with pytest.raises(ValueError, match=message):
        collect_rows(wide, [])
    with pytest.raises(ValueError, match=r"^\[gather_shards\] gradient is 'all', must be 'own' or"):
        gather_shards(torch.zeros(1), dist.group.WORLD, gradient="all")
    outputs = [torch.zeros(1) for _ in microbatches_of(plan, rank)]
    with pytest.raises(
        ValueError, match=r"^\[collect_tokens\] outputs\[0\] is a tensor of shape \[1\], must begin"
    ):
        collect_tokens(plan, outputs)


def check_agreement(rank: int) -> None:
    size = dist.get_world_size()
    require_same_plan(plan_of([11, 6], size, 16))
    other = plan_of([11, 6 + rank // (size - 1)], size, 16)  # the last rank read another length
    hashes = [plan_of([11, length], size, 16).hash for length in (6, 7)]
    message = (
        rf"^\[require_same_plan\] rank {size - 1} has plan {hashes[1]}, rank 0 has {hashes[0]}: "
    )
    with pytest.raises(RuntimeError, match=message):
        require_same_plan(other)


def check_all(rank: int) -> None:
    check_values_and_gradients(rank)
    check_summed_gradients(rank)
    check_dtypes_and_fields(rank)
    check_ranks_without_work(rank)
    check_data_parallel(rank)
    check_agreement(rank)
    check_errors(rank)


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_agree_with_one(ranks, tmp_path):
    run_ranks(ranks, check_all, tmp_path)


def test_stages_have_groups_of_their_own(tmp_path):
    run_ranks(4, check_copies_of_a_plan, tmp_path)


def test_the_plans_of_these_tests_share_sequences():
    sizes = [
        {len(group.ranks) for slot in plan.microbatches for group in slot}
        for plan in (plan_of(MIXED_LENGTHS, 3, capacity, **options) for capacity, options in PLANS)
    ]
    assert any({1, 3} <= found or {2, 3} <= found or {1, 2} <= found for found in sizes)

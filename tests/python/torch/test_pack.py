"""Rows to packed shards and back: values, gradients, dtypes, errors."""

import numpy
import pytest
import torch

from batches import (
    MIXED_LENGTHS,
    all_microbatches,
    assert_rows_equal,
    jagged_rows,
    lone_microbatch,
    message_of,
    plan_of,
    random_field,
    random_lengths,
)
from isochron.torch import (
    join_shards,
    microbatches_of,
    pack,
    pack_next,
    restore_order,
    rows_of,
    shard_of,
    unpack,
)

EXAMPLE = jagged_rows([torch.arange(10, 15), torch.arange(20, 28), torch.arange(30, 33)])
EXAMPLE_LENGTHS = [5, 8, 3]

# Plans of MIXED_LENGTHS that differ in all that matters here.
PLANS = [
    (1, 128, {}),
    (3, 48, {}),
    (2, 32, {"context": "static:2"}),
    (3, 24, {"context": "dynamic:any"}),
    (4, 24, {"context": "dynamic"}),
    (4, 32, {"context": "dynamic", "tensor_parallel": 2}),
    (4, 64, {"context": "dynamic", "counts": "equal", "pad_multiple": 12}),
    (8, 64, {"counts": "equal", "pad_multiple": 4}),
    (12, 64, {"counts": "equal"}),
]


def example_shard(context_size: int, context_rank: int):
    return shard_of(lone_microbatch(EXAMPLE_LENGTHS, context_size, context_rank))


@pytest.mark.parametrize(
    "size, rank, cu_seqlens, ids, labels, positions",
    [
        (2, 0, [0, 8, 16, 20], [10, 11, 0, 0, 20, 21, 26, 27, 30, 0],
         [11, 12, -1, -1, 21, 22, 27, -1, 31, -1], [0, 1, 0, 0, 0, 1, 6, 7, 0, 0]),
        (2, 1, [0, 8, 16, 20], [12, 13, 14, 0, 22, 23, 24, 25, 31, 32],
         [13, 14, -1, -1, 23, 24, 25, 26, 32, -1], [2, 3, 4, 0, 2, 3, 4, 5, 1, 2]),
        (4, 3, [0, 8, 16, 24], [13, 14, 23, 24, 0, 0], [14, -1, 24, 25, -1, -1],
         [3, 4, 3, 4, 0, 0]),
    ],
)  # fmt: skip
def test_the_golden_zigzag(size, rank, cu_seqlens, ids, labels, positions):
    shard = example_shard(size, rank)
    assert shard.cu_seqlens.dtype == torch.int32
    assert shard.cu_seqlens.tolist() == cu_seqlens
    assert shard.max_seqlen == 8
    assert pack(EXAMPLE, shard).tolist() == ids
    assert pack_next(EXAMPLE, shard, fill=-1).tolist() == labels
    assert shard.positions.tolist() == positions


def test_one_rank_holds_whole_sequences_one_behind_the_other():
    shard = example_shard(1, 0)
    assert shard.cu_seqlens.tolist() == [0, 5, 13, 16]
    assert pack(EXAMPLE, shard).tolist() == EXAMPLE.values().tolist()
    labels = pack_next(EXAMPLE, shard, fill=-100).tolist()
    assert labels == [11, 12, 13, 14, -100, *range(21, 28), -100, 31, 32, -100]


def test_positions_are_original_indices_in_both_chunks():
    shard = shard_of(lone_microbatch([4803], 2, 1))
    assert (int(shard.positions[0]), int(shard.positions[-1])) == (1201, 3602)


@pytest.mark.parametrize("ranks, capacity, options", PLANS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 4)])
def test_what_is_packed_and_joined_is_the_batch(ranks, capacity, options, shape):
    plan = plan_of(MIXED_LENGTHS, ranks, capacity, **options)
    field = random_field(1, MIXED_LENGTHS, shape)
    outputs = []
    for microbatches in all_microbatches(plan):
        outputs.append([])
        for m in microbatches:
            shards = [shard_of(m, context_rank=rank) for rank in range(m.context_size)]
            parts = [pack(field, shard) for shard in shards]
            for part in parts:
                assert part.shape == (len(shards[0].positions), *shape)
            outputs[-1].append(join_shards(parts, m))
    assert_rows_equal(restore_order(plan, outputs), field.unbind())


@pytest.mark.parametrize("seed", range(30))
def test_random_batches_survive_random_groups(seed):
    lengths = random_lengths(seed, 1 + seed % 7)
    field = random_field(seed, lengths)
    for size in (1, 2, 3, 4, 5):
        m = lone_microbatch(lengths, size, tensor_parallel=1 + seed % 3)
        parts = [pack(field, shard_of(m, context_rank=rank)) for rank in range(size)]
        assert_rows_equal(join_shards(parts, m), field.unbind())


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16, torch.bfloat16]
)
def test_dtypes_are_kept(dtype):
    field = random_field(2, EXAMPLE_LENGTHS, dtype=dtype)
    m = lone_microbatch(EXAMPLE_LENGTHS, 2)
    parts = [pack(field, shard_of(m, context_rank=rank)) for rank in range(2)]
    assert all(part.dtype == dtype for part in parts)
    assert pack_next(field, example_shard(2, 0)).dtype == dtype
    assert_rows_equal(join_shards(parts, m), field.unbind())


def test_each_token_is_a_label_once_but_for_the_first_of_each_row():
    for size in (1, 2, 3, 4):
        m = lone_microbatch(MIXED_LENGTHS, size)
        numbered = jagged_rows([torch.full((n,), row) for row, n in enumerate(MIXED_LENGTHS)])
        labels = torch.cat(
            [pack_next(numbered, shard_of(m, context_rank=rank), fill=-1) for rank in range(size)]
        )
        counts = [int((labels == row).sum()) for row in range(len(MIXED_LENGTHS))]
        assert counts == [n - 1 for n in MIXED_LENGTHS]


def test_tokens_may_stand_behind_another_dim():
    field = jagged_rows([torch.arange(4 * n).view(4, n) for n in EXAMPLE_LENGTHS])
    m = lone_microbatch(EXAMPLE_LENGTHS, 2)
    parts = [pack(field, shard_of(m, context_rank=rank)) for rank in range(2)]
    assert [part.shape for part in parts] == [(4, 10), (4, 10)]
    joined = join_shards([part.T for part in parts], m)
    assert_rows_equal(joined, [row.T for row in field.unbind()])


def test_rows_may_have_gaps_between_them():
    padded = torch.arange(1, 13).view(3, 4)
    starts, lengths = torch.tensor([0, 1, 2]), torch.tensor([2, 1, 2])
    field = torch.nested.narrow(padded, 1, starts, lengths, layout=torch.jagged)
    shard = shard_of(lone_microbatch([2, 1, 2]))
    assert pack(field, shard).tolist() == [1, 2, 6, 11, 12]


def test_fields_of_rows_follow_the_micro_batch():
    plan = plan_of(MIXED_LENGTHS, 3, 24, context="dynamic:any", pad_multiple=11)
    scores = torch.arange(1, 11).float().view(10, 1)
    names = [f"row {i}" for i in range(10)]
    for microbatches in all_microbatches(plan):
        for m in microbatches:
            shard = shard_of(m)
            packed = pack({"scores": scores, "names": names, "step": 7}, shard)
            is_real = [i < 10 for i in m.sequences]
            expected = [
                i + 1.0 if real else 0.0 for i, real in zip(m.sequences, is_real, strict=True)
            ]
            assert packed["scores"].tolist() == [[score] for score in expected]
            assert packed["names"] == [
                names[i] if real else None for i, real in zip(m.sequences, is_real, strict=True)
            ]
            assert packed["step"] == 7


def test_padding_rows_are_filled():
    m = microbatches_of(plan_of([3], 1, 16, pad_multiple=2), 0)[0]
    assert m.sequences == (0, 1)
    field = jagged_rows([torch.tensor([5, 6, 7])])
    assert pack(field, shard_of(m), fill=9).tolist() == [5, 6, 7, 9, 9]
    assert pack_next(field, shard_of(m), fill=9).tolist() == [6, 7, 9, 9, 9]


def test_a_placeholder_packs_to_nothing_and_a_filled_one_to_a_padding_row():
    placeholder = next(
        m
        for part in all_microbatches(plan_of([3], 2, 16, counts="equal"))
        for m in part
        if m.is_placeholder
    )
    field = jagged_rows([torch.tensor([5, 6, 7])])
    empty = shard_of(placeholder)
    assert empty.cu_seqlens.tolist() == [0]
    assert empty.max_seqlen == 0
    assert pack(field, empty).tolist() == []
    assert unpack(torch.zeros(0, 3), empty).size(0) == 0
    assert pack(field, shard_of(placeholder.filled()), fill=1).tolist() == [1, 1]


def test_a_rank_packs_from_its_own_rows_alone():
    plan = plan_of(MIXED_LENGTHS, 3, 24, context="dynamic:any")
    field = random_field(4, MIXED_LENGTHS)
    all_rows = field.unbind()
    for rank, microbatches in enumerate(all_microbatches(plan)):
        rows = rows_of(plan, rank)
        own = jagged_rows([all_rows[row] for row in rows])
        for m in microbatches:
            shard = shard_of(m)
            assert torch.equal(pack(own, shard, rows=rows), pack(field, shard))
            assert torch.equal(pack_next(own, shard, rows=rows), pack_next(field, shard))


def test_a_rank_without_rows_of_its_own_packs_a_padding_row():
    plan = plan_of([3], 2, 16, counts="equal")
    idle = next(rank for rank in range(2) if not rows_of(plan, rank))
    nothing = torch.nested.nested_tensor_from_jagged(
        torch.zeros(0, 2), torch.zeros(1, dtype=torch.int64)
    )
    shard = shard_of(microbatches_of(plan, idle)[0].filled())
    assert pack(nothing, shard, rows=[]).tolist() == [[0, 0], [0, 0]]


def token_function(tokens, positions, weight):
    """Differs from token to token and is not linear in anything."""
    return torch.sin(tokens * weight) + torch.cos(positions[:, None] * weight)


def sequence_loss(rows):
    """Every token of a sequence matters to every later one."""
    return sum((row.cumsum(0) ** 2).sum() / len(row) for row in rows)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_values_and_gradients_of_shards_are_those_of_whole_sequences(size):
    lengths = MIXED_LENGTHS
    whole = random_field(5, lengths, (2,))

    def prepared():
        values = (whole.values() / 100).requires_grad_()
        weight = torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)
        field = torch.nested.nested_tensor_from_jagged(values, whole.offsets())
        return values, weight, field

    values, weight, _ = prepared()
    positions = torch.cat([torch.arange(n) for n in lengths])
    expected = token_function(values, positions, weight)
    loss = sequence_loss(expected.split(lengths))
    loss.backward()

    m = lone_microbatch(lengths, size)
    shards = [shard_of(m, context_rank=rank) for rank in range(size)]
    shard_values, shard_weight, field = prepared()
    for own in range(size):  # as each rank sees it: the shards of others are constants
        outputs = [token_function(pack(field, s), s.positions, shard_weight) for s in shards]
        outputs = [out if rank == own else out.detach() for rank, out in enumerate(outputs)]
        joined = join_shards(outputs, m)
        torch.testing.assert_close(joined.values(), expected, rtol=0, atol=0)
        sequence_loss(joined.unbind()).backward()
    torch.testing.assert_close(shard_weight.grad, weight.grad, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(shard_values.grad, values.grad, rtol=1e-12, atol=1e-12)


def test_unpack_alone_needs_no_group():
    shard = shard_of(lone_microbatch(EXAMPLE_LENGTHS, tensor_parallel=4))
    packed = pack(EXAMPLE, shard)
    assert len(packed) == 8 + 8 + 4
    assert_rows_equal(unpack(packed, shard), EXAMPLE.unbind())


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: pack(EXAMPLE, shard_of(lone_microbatch([5, 8, 4]))),
         "[pack] row 2 has 3 tokens, the plan has 4"),
        (lambda: pack({"ids": EXAMPLE}, shard_of(lone_microbatch([5, 8]))),
         "[pack] ids: the field has 3 rows, must have 2"),
        (lambda: pack(torch.zeros(4), example_shard(1, 0)),
         "[pack] the field has 4 rows, must have 3"),
        (lambda: pack({"names": ["a"]}, example_shard(1, 0)),
         "[pack] names: the field has 1 rows, must have 3"),
        (lambda: pack({"uid": numpy.array(["a", "b", "c"])}, example_shard(1, 0)),
         "[pack] uid: the field is a numpy array, must be a tensor or a list"),
        (lambda: pack(EXAMPLE, example_shard(1, 0), rows=[0, 1, 3]),
         "[pack] the micro-batch has row 2, which rows lacks"),
        (lambda: pack_next({"score": torch.zeros(3)}, example_shard(1, 0)),
         "[pack_next] score: the field is a tensor of shape [3], must be jagged: "
         "torch.nested.as_nested_tensor(rows, layout=torch.jagged) or jagged_from_padded()"),
        (lambda: unpack(torch.zeros(10), example_shard(2, 0)),
         "[unpack] the micro-batch is shared by 2 ranks, must get their process group"),
        (lambda: unpack({"x": torch.zeros(15)}, example_shard(1, 0)),
         "[unpack] x: packed is a tensor of shape [15], must begin with the 16 tokens of the "
         "shard"),
        (lambda: unpack([1, 2], example_shard(1, 0)),
         "[unpack] the field is a list of 2, must be a tensor"),
        (lambda: join_shards([torch.zeros(10)], lone_microbatch(EXAMPLE_LENGTHS, 2)),
         "[join_shards] there are 1 parts, must be 2: one for each rank of the group"),
        (lambda: join_shards([torch.zeros(10), torch.zeros(9)],
                             lone_microbatch(EXAMPLE_LENGTHS, 2)),
         "[join_shards] part 1: packed is a tensor of shape [9], must begin with the 10 tokens of "
         "the shard"),
        (lambda: unpack(EXAMPLE, example_shard(1, 0)),
         "[unpack] packed is a jagged tensor, must begin with the 16 tokens of the shard"),
    ],
)  # fmt: skip
def test_mistakes_are_named_in_one_line(call, message):
    assert message_of(call) == message

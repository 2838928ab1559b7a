"""Shards are those of verl 0.9.1's Megatron engine, in values and in gradients."""

import logging

import pytest
import torch
import torch.distributed as dist

from batches import (
    MIXED_LENGTHS,
    assert_rows_equal,
    lone_microbatch,
    random_field,
    random_lengths,
    run_ranks,
)
from isochron.torch import pack, pack_next, shard_of, unpack

BATCHES = [MIXED_LENGTHS, [5, 8, 3], [4803], random_lengths(1, 9, 200)]


def weighted_sum(rows):
    return sum((row.cumsum(0) ** 2).sum() for row in rows)


def check_batch(lengths: list[int], rank: int) -> None:
    from verl.models.mcore.util import postprocess_thd_engine, preprocess_thd_engine

    ids = random_field(1, lengths, dtype=torch.int64)
    shard = shard_of(lone_microbatch(lengths, dist.get_world_size(), rank))
    packed, params, positions = preprocess_thd_engine(ids)
    assert torch.equal(packed[0], pack(ids, shard))
    assert torch.equal(params.cu_seqlens_q_padded, shard.cu_seqlens)
    assert params.max_seqlen_q == shard.max_seqlen
    is_real = shard.source >= 0
    assert torch.equal(positions[0][is_real], shard.positions[is_real])

    labels, _, _ = preprocess_thd_engine(ids, need_roll=True)
    has_next = shard.target >= 0
    assert torch.equal(labels[0][has_next], pack_next(ids, shard)[has_next])

    parts = [(pack(ids, shard).double() / 100).requires_grad_() for _ in range(2)]
    of_verl = postprocess_thd_engine(parts[0].sin()[None], params, ids, len(lengths))
    ours = unpack(parts[1].sin(), shard, dist.group.WORLD)
    assert_rows_equal(ours, of_verl.unbind())
    weighted_sum(of_verl.unbind()).backward()
    weighted_sum(ours.unbind()).backward()
    torch.testing.assert_close(parts[1].grad, parts[0].grad, rtol=1e-12, atol=1e-12)


def check_batches(rank: int) -> None:
    from megatron.core import parallel_state

    logging.disable(logging.WARNING)  # verl speaks of every row that it pads
    parallel_state.initialize_model_parallel(context_parallel_size=dist.get_world_size())
    for lengths in BATCHES:
        check_batch(lengths, rank)


@pytest.mark.parametrize("ranks", [2, 3])
def test_shards_are_those_of_verl(ranks, tmp_path):
    run_ranks(ranks, check_batches, tmp_path)

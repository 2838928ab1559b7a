"""The rules of verl and slime, as the drop-ins need them."""

import random

import numpy as np
import pytest

import isochron
from isochron import _planner
from program import random_lengths


def test_karmarkar_karp_gives_verls_partitions():
    # verl 0.9.1: raw output of karmarkar_karp, then of get_seqlen_balanced_partitions.
    cases = [
        ([8, 7, 6, 5, 4], "free", [[4, 1], [3, 2], [0]], [[1, 4], [2, 3], [0]]),
        ([8, 7, 6, 5, 4, 1], "equal", [[4, 1], [3, 2], [5, 0]], [[1, 4], [2, 3], [0, 5]]),
        ([5] * 6, "free", [[5, 0], [4, 1], [3, 2]], [[0, 5], [1, 4], [2, 3]]),
    ]
    for values, sizes, raw, ascending in cases:
        assert isochron.karmarkar_karp(values, 3, sizes) == raw
        assert isochron.balanced_partitions(values, 3, sizes) == ascending


def test_a_partition_that_cannot_be_is_a_mistake():
    with pytest.raises(ValueError, match="3 values are fewer than 4 parts"):
        isochron.karmarkar_karp([1, 2, 3], 4, "free")
    with pytest.raises(ValueError, match='sizes is "some", must be one of equal, free'):
        isochron.karmarkar_karp([1, 2, 3], 1, "some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"values\[1\]"):
        isochron.karmarkar_karp([1.0, float("nan")], 1, "free")
    with pytest.raises(ValueError, match="float16"):
        isochron.karmarkar_karp(np.ones(3, np.float16), 1, "free")


@pytest.mark.parametrize("seed", range(20))
def test_verls_microbatches_keep_the_cap(seed: int):
    lengths = random_lengths(seed, 8000)
    cap = random.Random(seed).choice([8192, 20000])
    microbatches = _planner.verl_microbatches(lengths, max_token_len=cap)
    assert sorted(i for ids in microbatches for i in ids) == list(range(len(lengths)))
    assert max(sum(lengths[i] for i in ids) for ids in microbatches) <= cap


def test_verls_ranks_agree_where_verl_reduces():
    asked: list[list[int]] = []

    def all_reduce_max(numbers: list[int]) -> list[int]:
        asked.append(numbers)
        return [3] if len(asked) == 1 else numbers  # another rank needs three micro-batches

    microbatches = _planner.verl_microbatches(
        [9, 5, 3, 1], max_token_len=10, all_reduce_max=all_reduce_max
    )
    assert len(microbatches) == 3
    assert asked[:2] == [[2], [9, -4]]


def test_verls_spread_of_tokens():
    values = [9, 5, 3, 1]
    parts = isochron.balanced_partitions(values, 2, "equal")
    spread = _planner.verl_seqlen_unbalance(values, parts)
    assert (spread.min, spread.max, spread.minmax_diff, spread.mean) == (4, 14, 10, 9.0)
    assert (spread.balanced_min, spread.balanced_max) == (8, 10)
    assert isochron.load_spread(values, parts) == spread
    assert _planner.verl_workload(2) == 49156


def test_slimes_bins():
    lengths = [6, 5, 4, 3]
    bins = _planner.slime_first_fit_pack(lengths, 10)
    assert bins == [[0, 2], [1, 3]]
    assert _planner.slime_min_microbatches(lengths, 10) == 2
    assert len(_planner.slime_expand_bins(bins, 3, lengths)) == 3
    assert _planner.slime_capped_partitions(lengths, 3, 10) == [[0, 2], [1, 3], []]
    with pytest.raises(AssertionError):
        _planner.slime_capped_partitions(lengths, 1, 10)


def test_slimes_schedule_covers_every_sample():
    shape = _planner.SlimeShape(
        hidden_size=64,
        num_attention_heads=4,
        kv_channels=16,
        num_query_groups=2,
        ffn_hidden_size=128,
        vocab_size=1000,
        num_layers=2,
    )
    lengths = [1 + (i * 7919) % 4000 for i in range(64)]
    schedule = _planner.slime_schedule(
        lengths,
        range(64),
        shape,
        global_batch_size=32,
        dp_size=2,
        use_dynamic_batch_size=True,
        max_tokens_per_gpu=4096,
        balance_data=True,
    )
    assert sorted(i for ids in schedule.partitions for i in ids) == list(range(64))
    assert schedule.global_batch_sizes == [32, 32]
    assert [len(rank) for rank in schedule.micro_batch_indices] == [
        sum(schedule.num_microbatches)
    ] * 2
    with pytest.raises(AssertionError):
        _planner.slime_schedule([5], [0], shape, global_batch_size=2, micro_batch_size=1)
    assert _planner.slime_forward_flops(8, shape) > 0


def test_a_padding_row_follows_its_schema():
    columns = _planner.verl_columns()
    row = _planner.padding_row(columns, 7, "padding")
    by_name = {column.name: column for column in row.columns}
    assert by_name["input_ids"].values.tolist() == [7, 7]
    assert by_name["attention_mask"].values.tolist() == [1, 1]
    assert row.tag == _planner.PaddingTag()
    own = [_planner.ColumnSchema("score", "float32", ["sequence", 3])]
    column = _planner.padding_row(own, None, "padding").columns[0]
    assert (column.shape, column.values.tolist()) == ([2, 3], [0] * 6)
    assert own[0].shape == ["sequence", 3]
    with pytest.raises(ValueError, match="shape has 'batch', must be integers, 'prompt'"):
        _planner.ColumnSchema("score", "float32", ["batch"])  # type: ignore[list-item]


def test_real_rows_are_spread():
    rows = isochron.pad(10, pad="rows", multiple=4)
    for begin, end in ((0, 6), (6, 12), (3, 9)):
        expected = int((rows.rows[begin:end] < 10).sum())
        assert _planner.num_real_between(10, 12, begin, end) == expected

"""TensorDicts in and out."""

import subprocess
import sys

import pytest
import torch
from tensordict import NonTensorData, NonTensorStack, TensorDict

from batches import (
    MIXED_LENGTHS,
    all_microbatches,
    assert_rows_equal,
    message_of,
    plan_of,
    random_field,
)
from isochron.torch import join_shards, pack, pack_next, restore_order, shard_of, unpack

NUM_ROWS = len(MIXED_LENGTHS)


def batch() -> TensorDict:
    images = TensorDict({"pixels": random_field(3, MIXED_LENGTHS, (2,))}, batch_size=[NUM_ROWS])
    return TensorDict(
        {
            "input_ids": random_field(1, MIXED_LENGTHS, dtype=torch.int64),
            "log_probs": random_field(2, MIXED_LENGTHS, dtype=torch.bfloat16),
            "reward": torch.arange(NUM_ROWS, dtype=torch.float32),
            "uid": NonTensorStack(*[f"uid {i}" for i in range(NUM_ROWS)]),
            "temperature": NonTensorData(0.7, batch_size=[NUM_ROWS]),
            "images": images,
        },
        batch_size=[NUM_ROWS],
    )


@pytest.mark.parametrize(
    "ranks, capacity, options",
    [(1, 128, {}), (3, 48, {}), (4, 24, {"context": "dynamic", "pad_multiple": 12})],
)
def test_a_batch_comes_back_as_it_was(ranks, capacity, options):
    plan = plan_of(MIXED_LENGTHS, ranks, capacity, **options)
    before = batch()
    outputs = []
    for microbatches in all_microbatches(plan):
        outputs.append([])
        for m in microbatches:
            parts = [pack(before, shard_of(m, context_rank=r)) for r in range(m.context_size)]
            assert all(isinstance(part, TensorDict) for part in parts)
            first = parts[0]
            assert first["temperature"] == 0.7
            assert first["log_probs"].dtype == torch.bfloat16
            assert first["input_ids"].shape == (len(shard_of(m).source),)
            assert first["reward"].shape == (len(m.sequences),)
            outputs[-1].append(
                TensorDict(
                    {
                        "input_ids": join_shards([part["input_ids"] for part in parts], m),
                        "reward": first["reward"],
                        "uid": first.get("uid"),
                        "images": TensorDict(
                            {"pixels": join_shards([p["images", "pixels"] for p in parts], m)},
                            batch_size=[len(m.sequences)],
                        ),
                    },
                    batch_size=[len(m.sequences)],
                )
            )
    after = restore_order(plan, outputs)
    assert isinstance(after, TensorDict)
    assert after.batch_size == torch.Size([NUM_ROWS])
    assert_rows_equal(after["input_ids"], before["input_ids"].unbind())
    assert_rows_equal(after["images", "pixels"], before["images", "pixels"].unbind())
    assert torch.equal(after["reward"], before["reward"])
    assert after.get("uid").tolist() == before.get("uid").tolist()


def test_token_fields_shift_and_unpack_together():
    m = all_microbatches(plan_of(MIXED_LENGTHS, 1, 128))[0][0]
    shard = shard_of(m)
    fields = batch().select("input_ids", "log_probs")
    labels = pack_next(fields, shard)
    assert torch.equal(labels["input_ids"], pack_next(fields["input_ids"], shard))
    unpacked = unpack(pack(fields, shard), shard)
    assert unpacked.batch_size == torch.Size([NUM_ROWS])
    for name in ("input_ids", "log_probs"):
        assert_rows_equal(unpacked[name], [fields[name].unbind()[i] for i in m.sequences])


def test_a_field_that_is_wrong_is_named():
    shard = shard_of(all_microbatches(plan_of([5] * NUM_ROWS, 1, 128))[0][0])
    message = message_of(lambda: pack(batch().select("images"), shard))
    assert message == "[pack] images.pixels: row 1 has 9 tokens, the plan has 5"


def test_who_has_no_tensordict_needs_none():
    program = "import sys, isochron.torch; print('tensordict' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert result.stdout == "False\n"

"""Micro-batches of TensorDicts and DataProtos: verl's own functions beside ours."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from tensordict import TensorDict
from verl import DataProto
from verl.utils import seqlen_balancing as verl
from verl.utils import tensordict_utils

from isochron.compat import verl as ours

LC = [6933, 3171, 6225, 7308, 3461, 347, 2137, 7925, 4204, 3996, 3333, 7538, 6436, 6814, 2500, 7944]
LD = [8192, 128, 64, 64, 4096, 4096, 2048, 100, 50, 50, 6000, 10]


def nested_batch(lengths: list[int]) -> TensorDict:
    rows = [torch.arange(length) + 1000 * row for row, length in enumerate(lengths)]
    return TensorDict(
        {
            "input_ids": torch.nested.as_nested_tensor(rows, layout=torch.jagged),
            "reward": torch.arange(len(lengths)).float(),
        },
        batch_size=[len(lengths)],
    )


def dense_batch(lengths: list[int], width: int) -> TensorDict:
    mask = (torch.arange(width) < torch.tensor(lengths).unsqueeze(1)).long()
    ids = torch.arange(len(lengths) * width).view(len(lengths), width) * mask
    return TensorDict({"input_ids": ids, "attention_mask": mask}, batch_size=[len(lengths)])


def outcome(function, *arguments, **options):
    """The rows of the micro-batches, or the error."""
    try:
        return function(*arguments, **options)[1]
    except (AssertionError, ValueError) as error:
        return type(error), str(error)


@pytest.fixture
def without_slicing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay numbers: thousands of batches are about who gets which."""
    monkeypatch.setattr(tensordict_utils, "index_select_tensor_dict", lambda batch, rows: rows)


def random_questions(seed: int, count: int) -> Iterator[tuple[TensorDict, dict]]:
    generator = random.Random(seed)
    for _ in range(count):
        size = generator.choice([1, 1, 1, 2, 3])
        rows = size * generator.randint(1, 18 // size)
        if generator.random() < 0.05:
            rows += 1  # not divisible, for most sizes
        longest = generator.choice([1, 4, 12, 40])
        lengths = [generator.randint(1, longest) for _ in range(rows)]
        cap = generator.randint(max(1, max(lengths) * size - 2), 3 * max(lengths) * size)
        options = {
            "max_token_len": cap,
            "num_batches_divided_by": generator.choice([None, None, 1, 2, 3, 4]),
            "min_num_micro_batch": generator.choice([None, None, 1, 2, 4]),
            "use_dynamic_bsz_balance": generator.random() < 0.7,
            "force_group_size": size,
        }
        is_nested = generator.random() < 0.5
        width = max(lengths) + generator.choice([0, 0, 1])
        yield nested_batch(lengths) if is_nested else dense_batch(lengths, width), options


@pytest.mark.usefixtures("without_slicing")
def test_exact_micro_batches_and_errors_are_verls():
    errors = set()
    for batch, options in random_questions(seed=1, count=12_000):
        expected = outcome(verl.rearrange_micro_batches, batch, **options)
        assert outcome(ours.rearrange_micro_batches, batch, **options, mode="exact") == expected
        if isinstance(expected, tuple):
            errors.add((expected[0], *expected[1].split()[:2]))
    assert errors == {  # all that verl knows
        (AssertionError, "max_token_len", "must"),
        (AssertionError, "Batch", "size"),
        (ValueError, "A", "forced"),
        (ValueError, "Cannot", "satisfy"),
    }


def lengths_of(batch: TensorDict) -> list[int]:
    if batch["input_ids"].is_nested:
        return batch["input_ids"].offsets().diff().tolist()
    return batch["attention_mask"].sum(dim=1).tolist()


@pytest.mark.usefixtures("without_slicing")
def test_best_micro_batches_keep_the_cap_and_are_fewer():
    num_fewer = num_solved = 0
    for batch, options in random_questions(seed=2, count=6_000):
        lengths = lengths_of(batch)
        expected = outcome(verl.rearrange_micro_batches, batch, **options)
        answer = outcome(ours.rearrange_micro_batches, batch, **options)
        if isinstance(answer, tuple):
            # What has no answer here has none there.
            assert isinstance(expected, tuple), (lengths, options)
            continue
        assert sorted(row for part in answer for row in part) == list(range(len(lengths)))
        assert all(part and part == sorted(part) for part in answer)
        cap, size = options["max_token_len"], options["force_group_size"]
        assert all(sum(lengths[row] for row in part) <= cap for part in answer)
        for part in answer:
            assert [row // size * size + i for row in part[::size] for i in range(size)] == part
        assert len(answer) % (options["num_batches_divided_by"] or 1) == 0
        assert len(answer) >= (options["min_num_micro_batch"] or 0)
        if isinstance(expected, tuple):
            num_solved += 1
        else:
            assert len(answer) <= len(expected), (lengths, options)
            num_fewer += len(answer) < len(expected)
    assert num_fewer > 20
    assert num_solved > 40


@pytest.mark.usefixtures("without_slicing")
def test_the_dearest_micro_batch_runs_in_the_middle():
    for batch, options in random_questions(seed=3, count=300):
        answer = outcome(ours.rearrange_micro_batches, batch, **options)
        if isinstance(answer, tuple):
            continue
        workloads = [verl.calculate_workload(length) for length in lengths_of(batch)]
        sums = [sum(workloads[row] for row in part) for part in answer]
        if options["use_dynamic_bsz_balance"]:
            peak = sums.index(max(sums))
            assert sums == sorted(sums[: peak + 1]) + sorted(sums[peak + 1 :], reverse=True)
        else:
            assert sums == sorted(sums, reverse=True)


GOLDEN = [
    (LD, 8192, {}, [[4, 6], [0], [10], [1, 2, 3, 5, 7, 8, 9, 11]], None),
    (
        LC,
        16384,
        {},
        [[13, 15], [0, 1, 2], [4, 6, 9, 11], [3, 12, 14], [5, 7, 8, 10]],
        [[0, 2], [12, 13], [4, 7, 14], [1, 3, 10], [6, 9, 11], [5, 8, 15]],
    ),
    (
        LC,
        16384,
        {"num_batches_divided_by": 4},
        [[11, 14], [0, 10], [9, 12], [1, 3], [6, 7], [2, 8], [4, 13], [5, 15]],
        None,
    ),
    ([6295, 3017, 5272], 8192, {}, [[1, 2], [0]], [[1], [0], [2]]),
    ([5, 6, 6], 10, {}, [[0, 1], [2]], [[0], [2], [1]]),
    (
        [7] * 8,
        8,
        {},
        [[2], [4], [6], [0, 1], [7], [5], [3]],
        [[1], [3], [5], [7], [6], [4], [2], [0]],
    ),
]


@pytest.mark.usefixtures("without_slicing")
@pytest.mark.parametrize(("lengths", "cap", "options", "before", "after"), GOLDEN)
def test_both_rules_of_verl_give_their_golden_answers(lengths, cap, options, before, after):
    batch = nested_batch(lengths)
    older = ours.rearrange_micro_batches(batch, cap, **options, mode="exact_before_7553")
    newer = ours.rearrange_micro_batches(batch, cap, **options, mode="exact")
    assert (older[1], newer[1]) == (before, after or before)


@pytest.mark.usefixtures("without_slicing")
def test_five_micro_batches_hold_what_verl_needs_six_for():
    assert len(ours.rearrange_micro_batches(nested_batch(LC), 16384)[1]) == 5


@pytest.mark.usefixtures("without_slicing")
def test_a_multiple_that_fits_is_found_where_verl_gives_up():
    batch, options = nested_batch([9, 13, 12, 8, 2, 4, 3]), {"num_batches_divided_by": 4}
    with pytest.raises(ValueError, match="Requested 8 non-empty micro-batches"):
        verl.rearrange_micro_batches(batch, 13, **options)
    assert len(ours.rearrange_micro_batches(batch, 13, **options)[1]) == 4


@pytest.mark.usefixtures("without_slicing")
def test_the_older_rule_fails_an_assertion_without_words():
    with pytest.raises(AssertionError) as raised:
        ours.rearrange_micro_batches(
            nested_batch([3, 3]), 8, num_batches_divided_by=4, mode="exact_before_7553"
        )
    assert raised.value.args == ()


@pytest.mark.usefixtures("without_slicing")
def test_the_width_of_a_padded_batch_does_not_count_in_best_mode():
    batch = dense_batch([3, 4], width=16)
    with pytest.raises(AssertionError, match="max_seq_len=16"):
        ours.rearrange_micro_batches(batch, 8, mode="exact")
    assert ours.rearrange_micro_batches(batch, 8)[1] == [[0, 1]]
    with pytest.raises(AssertionError, match="Got max_token_len=3 and max_seq_len=4$"):
        ours.rearrange_micro_batches(batch, 3)


def assert_equal_batches(mine: list[TensorDict], theirs: list[TensorDict]) -> None:
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert type(one) is type(other)
        assert one.batch_size == other.batch_size
        assert set(one.keys()) == set(other.keys())
        for key in set(other.keys()):
            assert one[key].is_nested == other[key].is_nested
            pairs = [(one[key], other[key])]
            if one[key].is_nested:
                pairs = list(zip(one[key].unbind(), other[key].unbind(), strict=True))
            assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def test_exact_slices_are_verls_tensors():
    num_compared = 0
    for batch, options in random_questions(seed=4, count=250):
        try:
            theirs, rows = verl.rearrange_micro_batches(batch, **options)
        except (AssertionError, ValueError):
            continue
        mine, my_rows = ours.rearrange_micro_batches(batch, **options, mode="exact")
        assert my_rows == rows
        assert_equal_batches(mine, theirs)
        num_compared += 1
    assert num_compared > 100


@pytest.mark.parametrize("mode", ["best", "exact", "exact_before_7553"])
def test_restoring_what_was_rearranged_gives_the_batch(mode: str):
    for batch, options in random_questions(seed=5, count=120):
        try:
            micro_batches, rows = ours.rearrange_micro_batches(batch, **options, mode=mode)
        except (AssertionError, ValueError):
            continue
        ids = [part["input_ids"] for part in micro_batches]
        if batch["input_ids"].is_nested:
            joined = torch.nested.as_nested_tensor(
                [row for part in ids for row in part.unbind()], layout=torch.jagged
            )
            back, theirs = (f(joined, rows) for f in restorers())
            assert back.layout == theirs.layout == torch.jagged
            triples = zip(back.unbind(), theirs.unbind(), batch["input_ids"].unbind(), strict=True)
            assert all(torch.equal(a, c) and torch.equal(b, c) for a, b, c in triples)
        else:
            back, theirs = (f(torch.cat(ids), rows) for f in restorers())
            assert torch.equal(back, batch["input_ids"])
            assert torch.equal(theirs, batch["input_ids"])


def restorers():
    return ours.restore_dynamic_batch, verl.restore_dynamic_batch


def test_restoring_another_number_of_rows_is_refused():
    for restore in restorers():
        with pytest.raises(AssertionError, match=r"^3 vs. 2$"):
            restore(torch.zeros(2), [[0, 2], [1]])


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_a_data_proto_keeps_its_other_columns(mode: str):
    lengths = [5, 9, 2, 7, 7, 3]
    batch = dense_batch(lengths, width=9)
    data = DataProto.from_dict(
        dict(batch.items()),
        {"uid": np.array(list("abcdef"), dtype=object)},
        meta_info={"temperature": 0.5, "list": [1]},
    )
    mine, rows = ours.prepare_dynamic_batch(data, 14, mode=mode)
    if mode == "exact":
        theirs, their_rows = verl.prepare_dynamic_batch(data, 14)
        assert rows == their_rows
        assert_equal_batches([part.batch for part in mine], [part.batch for part in theirs])
    for part, part_rows in zip(mine, rows, strict=True):
        assert type(part) is DataProto
        assert list(part.non_tensor_batch["uid"]) == ["abcdef"[row] for row in part_rows]
        assert torch.equal(part.batch["input_ids"], batch["input_ids"][part_rows])
        assert part.meta_info == data.meta_info
        assert part.meta_info["list"] is not data.meta_info["list"]
    restored = ours.restore_dynamic_batch(
        torch.cat([part.batch["attention_mask"] for part in mine]), rows
    )
    assert torch.equal(restored, batch["attention_mask"])

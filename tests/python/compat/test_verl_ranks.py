"""Counts and errors that two ranks agree on, over a real Gloo group."""

import random
from typing import Any

import pytest
import torch

from two_ranks import on_two_ranks

Question = tuple[list[list[int]], dict[str, Any]]  # the lengths of each rank, options


def random_questions(seed: int, count: int) -> list[Question]:
    generator = random.Random(seed)
    questions = []
    for _ in range(count):
        size = generator.choice([1, 1, 2])
        longest = generator.choice([4, 20, 40])
        lengths = [
            [generator.randint(1, longest) for _ in range(size * generator.randint(1, 16 // size))]
            for _ in range(2)
        ]
        cap = generator.randint(longest * size, 3 * longest * size)
        options = {
            "max_token_len": cap,
            "num_batches_divided_by": generator.choice([None, None, 2, 3]),
            "min_num_micro_batch": generator.choice([None, None, 2]),
            "force_group_size": size,
            "same_micro_num_in_dp": generator.random() < 0.9,
        }
        questions.append((lengths, options))
    return questions


def answer(function: Any, rank: int, question: Question, **mode: str) -> Any:
    """Rows of the micro-batches of this rank, or its error in words."""
    from tensordict import TensorDict

    lengths, options = question
    rows = [torch.arange(length) for length in lengths[rank]]
    batch = TensorDict(
        {"input_ids": torch.nested.as_nested_tensor(rows, layout=torch.jagged)},
        batch_size=[len(rows)],
    )
    try:
        return function(batch, dp_group=torch.distributed.group.WORLD, **options, **mode)[1]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def answers(rank: int) -> dict[str, list[Any]]:
    """Of every test in this file: processes are slow to start."""
    from verl.utils import seqlen_balancing as verl

    from isochron.compat import verl as ours

    verl.get_device_name = lambda: "cpu"  # of a machine without a device verl says cuda
    return {
        "exact": [
            (
                answer(verl.rearrange_micro_batches, rank, question),
                answer(ours.rearrange_micro_batches, rank, question, mode="exact"),
            )
            for question in random_questions(1, 300)
        ],
        "best": [
            (
                answer(verl.rearrange_micro_batches, rank, question),
                answer(ours.rearrange_micro_batches, rank, question),
            )
            for question in random_questions(2, 400)
        ],
        "wrong": [answer(ours.rearrange_micro_batches, rank, question) for question, _ in WRONG],
        "unreadable": [unreadable(rank)],
    }


def unreadable(rank: int) -> str:
    from tensordict import TensorDict

    from isochron.compat import verl as ours

    rows = torch.nested.as_nested_tensor([torch.arange(3)], layout=torch.jagged)
    batch = TensorDict({"ids" if rank == 0 else "input_ids": rows}, batch_size=[1])
    try:
        ours.rearrange_micro_batches(batch, 8, dp_group=torch.distributed.group.WORLD)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


WRONG: list[tuple[Question, str]] = [
    (
        ([[3, 9], [3, 3]], {"max_token_len": 8}),
        "AssertionError: max_token_len must be greater than the sequence length. "
        "Got max_token_len=8 and max_seq_len=9",
    ),
    (
        ([[3, 3, 3], [3, 3]], {"max_token_len": 8, "force_group_size": 2}),
        "AssertionError: Batch size 3 must be divisible by force_group_size 2",
    ),
    (
        ([[3, 3], [5, 5]], {"max_token_len": 8, "force_group_size": 2}),
        "ValueError: A forced group exceeds max_token_len and cannot be split. "
        "Got max_group_token_len=10 and max_token_len=8.",
    ),
    (
        ([[5, 5, 5], [5, 5]], {"max_token_len": 8}),
        "ValueError: Cannot satisfy max_token_len while keeping forced groups atomic and using "
        "the same micro-batch count across DP ranks. Requested 3 non-empty micro-batches, but "
        "a rank has only 2 forced groups.",
    ),
]


@pytest.fixture(scope="module")
def ranks() -> list[dict[str, list[Any]]]:
    return on_two_ranks(answers)


def test_exact_counts_over_two_ranks_are_verls(ranks):
    for rank in ranks:
        pairs = rank["exact"]
        assert [mine for _, mine in pairs] == [theirs for theirs, _ in pairs]
        errors = [theirs for theirs, _ in pairs if isinstance(theirs, str)]
        assert 5 < len(errors) < 150


def test_best_counts_are_the_same_on_both_ranks(ranks):
    first, second = (rank["best"] for rank in ranks)
    questions = random_questions(2, len(first))
    num_solved = 0
    for (lengths, options), one, other in zip(questions, first, second, strict=True):
        if isinstance(one[1], str) and options["same_micro_num_in_dp"]:
            assert one[1] == other[1]  # and neither waited for the other
            assert one[0] == other[0] == one[1] or isinstance(one[0], str)
            continue
        for rank, (theirs, mine) in enumerate((one, other)):
            if isinstance(mine, str):
                assert not options["same_micro_num_in_dp"]
                continue
            tokens = [sum(lengths[rank][row] for row in part) for part in mine]
            assert 0 < min(tokens) <= max(tokens) <= options["max_token_len"]
            assert sorted(row for part in mine for row in part) == list(range(len(lengths[rank])))
            assert len(mine) % (options["num_batches_divided_by"] or 1) == 0
            assert len(mine) >= (options["min_num_micro_batch"] or 1)
            if isinstance(theirs, list):
                assert len(mine) <= len(theirs)
            else:
                num_solved += 1
        if options["same_micro_num_in_dp"]:
            assert len(one[1]) == len(other[1])
    assert num_solved > 0


@pytest.mark.parametrize("which", range(len(WRONG)))
def test_what_is_wrong_on_one_rank_is_the_error_of_both(ranks, which: int):
    error = WRONG[which][1]
    assert [rank["wrong"][which] for rank in ranks] == [error, error]


def test_a_batch_that_cannot_be_read_stops_both_ranks(ranks):
    first, second = (rank["unreadable"][0] for rank in ranks)
    assert first.startswith("KeyError")
    assert second == (
        "RuntimeError: [rearrange_micro_batches] another rank of dp_group could not read its "
        "batch; it says why"
    )

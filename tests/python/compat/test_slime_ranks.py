"""slime's data iterators on two ranks, over real Gloo groups of Megatron's parallel state."""

import random
from typing import Any

import pytest

from two_ranks import on_two_ranks

Question = tuple[list[list[int]], int, int, int]  # lengths of each rank, step size, cap, multiple


def random_questions(seed: int, count: int) -> list[Question]:
    generator = random.Random(seed)
    questions = []
    for _ in range(count):
        size, num_steps = generator.randint(1, 12), generator.randint(1, 3)
        longest = generator.choice([4, 20, 400])
        lengths = [
            [generator.randint(1, max(1, longest // (rank + 1))) for _ in range(size * num_steps)]
            for rank in generator.sample([0, 1], 2)
        ]
        cap = generator.randint(longest - longest // 8, 3 * longest)
        questions.append((lengths, size, cap, generator.choice([1, 1, 2])))
    return questions


def answer(rank: int, question: Question, mode: str) -> Any:
    """Micro-batches and counts of this rank, or its error in words."""
    from isochron.compat.slime import get_data_iterator
    from megatron_ranks import args_of, data_of, model_of, virtual_stages

    lengths, size, cap, multiple = question
    args = args_of(max_tokens_per_gpu=cap, global_batch_size=2 * size)
    with virtual_stages(2 if multiple > 1 else None):
        try:
            iterators, counts = get_data_iterator(
                args, model_of(multiple), data_of(lengths[rank]), mode=mode
            )
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return iterators[0].micro_batch_indices, counts


def answers(rank: int) -> dict[str, Any]:
    """Of every test in this file: processes are slow to start."""
    from megatron_ranks import parallel_state
    from slime_rule import schedule_of

    with parallel_state():
        by_data = {
            "exact": [
                (schedule_of(question[0], rank, *question[1:]), answer(rank, question, "exact"))
                for question in random_questions(1, 300)
            ],
            "best": [answer(rank, question, "best") for question in random_questions(2, 300)],
            "wrong": [answer(rank, question, "best") for question, _ in WRONG],
            "unreadable": unreadable(rank),
        }
    with parallel_state(context_parallel_size=2):  # both ranks hold halves of the same samples
        by_context = {f"context {mode}": context_parallel(mode) for mode in ("exact", "best")}
    return {**by_data, **by_context}


def unreadable(rank: int) -> str:
    from isochron.compat.slime import get_data_iterator
    from megatron_ranks import args_of, model_of

    data = {"total_lengths": [3, 3]} if rank == 1 else {}
    args = args_of(max_tokens_per_gpu=8, global_batch_size=4)
    try:
        get_data_iterator(args, model_of(None), data)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def context_parallel(mode: str) -> list[int]:
    from isochron.compat.slime import get_data_iterator
    from megatron_ranks import args_of, data_of, model_of

    args = args_of(max_tokens_per_gpu=5, global_batch_size=4)
    return get_data_iterator(args, model_of(None), data_of([5, 5, 6, 4]), mode=mode)[1]


WRONG: list[tuple[Question, str]] = [
    (
        ([[3, 3], [3, 3, 3, 3]], 2, 8, 1),
        "ValueError: [get_data_iterator] data-parallel ranks have 2 to 4 samples, "
        "must have equally many",
    ),
    (
        ([[3, 3, 3], [3, 3, 3]], 2, 8, 1),
        "AssertionError: 3 samples of a rank fill no whole number of steps of 2",
    ),
    (
        ([[3, 3, 3], [7, 7, 7]], 3, 8, 2),
        "AssertionError: number of items:[3] < k_partitions:[4]",
    ),
]


@pytest.fixture(scope="module")
def ranks() -> list[dict[str, Any]]:
    return on_two_ranks(answers)


def test_exact_over_two_ranks_is_slimes_rule(ranks):
    for rank in ranks:
        num_errors = 0
        for expected, mine in rank["exact"]:
            if expected is AssertionError:
                assert mine.startswith("AssertionError: ")
                num_errors += 1
            else:
                assert mine == expected
        assert 10 < num_errors < 200


def test_best_counts_are_the_same_on_both_ranks_and_keep_the_cap(ranks):
    from slime_rule import first_fit

    num_raised = num_empty_handed = 0
    for question, one, other in zip(
        random_questions(2, 300), ranks[0]["best"], ranks[1]["best"], strict=True
    ):
        lengths_of_rank, size, cap, multiple = question
        if isinstance(one, str):
            assert one == other
            assert one.startswith("AssertionError: number of items:")
            assert multiple > 1
            num_empty_handed += 1
            continue
        assert one[1] == other[1]
        for lengths, (micro_batches, counts) in zip(lengths_of_rank, (one, other), strict=True):
            assert len(micro_batches) == sum(counts)
            assert sorted(sum(micro_batches, [])) == list(range(len(lengths)))
            assert all(micro_batches)
            assert all(count % multiple == 0 for count in counts)
            for each in micro_batches:
                assert len({sample // size for sample in each}) == 1
                assert len(each) == 1 or sum(lengths[sample] for sample in each) <= cap
            own = [
                len(first_fit(lengths[start : start + size], cap))
                for start in range(0, len(lengths), size)
            ]
            num_raised += any(a > b for a, b in zip(counts, own, strict=True))
    assert num_raised > 20  # a rank has taken the count of the other
    assert num_empty_handed > 5


@pytest.mark.parametrize("which", range(len(WRONG)))
def test_what_is_wrong_on_one_rank_is_the_error_of_both(ranks, which: int):
    error = WRONG[which][1]
    assert [rank["wrong"][which] for rank in ranks] == [error, error]


def test_a_rollout_that_cannot_be_read_stops_both_ranks(ranks):
    first, second = (rank["unreadable"] for rank in ranks)
    assert first == "KeyError: 'total_lengths'"
    assert second == (
        "RuntimeError: [get_data_iterator] another data-parallel rank could not count its "
        "micro-batches; it says why"
    )


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_the_cap_is_that_of_all_context_parallel_ranks(ranks, mode: str):
    assert [rank[f"context {mode}"] for rank in ranks] == [[2], [2]]

"""Parts of equal sums: verl's own functions on the same input, in the same process."""

import random

import numpy as np
import pytest
import torch
from verl.utils import seqlen_balancing as verl

from isochron.compat import verl as ours

FLOAT32_LENGTHS = torch.tensor(
    [3765, 30817, 14350, 9825, 28544, 25697, 7113, 20034]
    + [14106, 13834, 10, 7534, 3612, 532, 32621, 15886]
)


def random_sizes(generator: random.Random, largest: int) -> tuple[int, int, bool]:
    """Items, parts, and whether these must be of equal size."""
    parts = generator.randint(1, 8)
    if generator.random() < 0.5:
        return parts * generator.randint(1, max(1, largest // parts)), parts, True
    return generator.randint(parts, largest), parts, False


def random_integers(generator: random.Random, count: int) -> list[int]:
    longest = generator.choice([1, 3, 10, 1000, 10**9])  # short ranges have ties
    return [generator.randint(0, longest) for _ in range(count)]


def assert_equal_partitions(values, parts: int, equal_size: bool) -> None:
    expected = verl.karmarkar_karp(values, parts, equal_size)
    assert ours.karmarkar_karp(values, parts, equal_size) == expected
    assert ours.get_seqlen_balanced_partitions(values, parts, equal_size, mode="exact") == [
        sorted(part) for part in expected
    ]


def test_integers_give_verls_parts_in_verls_order():
    generator = random.Random(1)
    for _ in range(20_000):
        count, parts, equal_size = random_sizes(generator, 24)
        assert_equal_partitions(random_integers(generator, count), parts, equal_size)


@pytest.mark.parametrize("convert", [list, np.float32, np.float64], ids=["list", "f32", "f64"])
def test_floats_are_added_in_their_own_precision(convert):
    generator = random.Random(2)
    for _ in range(3_000):
        count, parts, equal_size = random_sizes(generator, 32)
        values = [generator.lognormvariate(8, 2) for _ in range(count)]
        if convert is not list:
            values = [convert(value) for value in values]
        assert_equal_partitions(values, parts, equal_size)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32])
def test_tensors_are_what_the_trainers_pass(dtype: torch.dtype):
    generator = random.Random(3)
    for _ in range(150):
        count, parts, equal_size = random_sizes(generator, 20)
        lengths = torch.tensor([generator.randint(1, 20000) for _ in range(count)], dtype=dtype)
        is_small = dtype == torch.int32  # workloads would overflow there, in verl
        values = lengths if is_small else ours.calculate_workload(lengths)
        assert_equal_partitions(values, parts, equal_size)
        assert_equal_partitions(list(values), parts, equal_size)


def test_float32_decides_differently_from_integers():
    in_integers = ours.calculate_workload(FLOAT32_LENGTHS)
    in_floats = ours.calculate_workload(FLOAT32_LENGTHS.float())
    assert in_floats.dtype == torch.float32
    assert ours.get_seqlen_balanced_partitions(in_floats, 2, True, mode="exact") == [
        [0, 1, 4, 8, 9, 10, 11, 15],
        [2, 3, 5, 6, 7, 12, 13, 14],
    ]
    for same in (in_integers, in_integers.double()):
        assert ours.get_seqlen_balanced_partitions(same, 2, True, mode="exact") == [
            [2, 3, 5, 7, 10, 11, 12, 14],
            [0, 1, 4, 6, 8, 9, 13, 15],
        ]


@pytest.mark.parametrize(
    ("values", "parts", "equal_size", "joined"),
    [
        ([8, 7, 6, 5, 4], 3, False, [[4, 1], [3, 2], [0]]),
        ([8, 7, 6, 5, 4, 1], 3, True, [[4, 1], [3, 2], [5, 0]]),
        ([5] * 6, 3, False, [[5, 0], [4, 1], [3, 2]]),
        ([5, 0, 7], 5, False, [[2], [0], [1], [], []]),
    ],
)
def test_items_stand_in_the_order_of_joining(values, parts, equal_size, joined):
    assert ours.karmarkar_karp(values, parts, equal_size) == joined
    assert verl.karmarkar_karp(values, parts, equal_size) == joined


@pytest.mark.parametrize("function", ["karmarkar_karp", "get_seqlen_balanced_partitions"])
@pytest.mark.parametrize(
    ("values", "parts", "equal_size"),
    [
        ([], 2, False),
        ([], 2, True),
        ([], 0, False),
        ([1, 2], 0, False),
        ([1, 2], 0, True),
        ([1, 2, 3], 2, True),
        ([1, 2], 3, True),
        ([1, 2], 3, False),
    ],
)
@pytest.mark.parametrize("mode", ["exact", "best"])
def test_what_verl_refuses_is_refused_alike(function, values, parts, equal_size, mode):
    try:
        getattr(verl, function)(values, parts, equal_size)
    except Exception as error:
        expected = error
    else:
        assert function == "karmarkar_karp"  # more parts than items
        return
    options = {} if function == "karmarkar_karp" else {"mode": mode}
    with pytest.raises(type(expected)) as raised:
        getattr(ours, function)(values, parts, equal_size, **options)
    assert str(raised.value) == str(expected)


def test_the_best_parts_are_never_worse_than_verls():
    generator = random.Random(4)
    num_better = 0
    for _ in range(5_000):
        count, parts, equal_size = random_sizes(generator, 24)
        values = random_integers(generator, count)
        theirs = verl.get_seqlen_balanced_partitions(values, parts, equal_size)
        best = ours.get_seqlen_balanced_partitions(values, parts, equal_size)
        sums = [sum(values[item] for item in part) for part in best]
        assert sorted(item for part in best for item in part) == list(range(count))
        assert len(best) == parts
        assert all(part and part == sorted(part) for part in best)
        assert sums == sorted(sums, reverse=True)
        assert not equal_size or {len(part) for part in best} == {count // parts}
        largest = max(sum(values[item] for item in part) for part in theirs)
        assert max(sums) <= largest
        num_better += max(sums) < largest
    assert num_better > 300


def test_the_best_parts_of_fractions_are_no_worse_either():
    generator = random.Random(5)
    for _ in range(500):
        count, parts, equal_size = random_sizes(generator, 24)
        values = [generator.lognormvariate(0, 2) for _ in range(count)]
        theirs = verl.get_seqlen_balanced_partitions(values, parts, equal_size)
        best = ours.get_seqlen_balanced_partitions(values, parts, equal_size)
        largest_of = [max(sum(values[i] for i in part) for part in each) for each in (best, theirs)]
        assert largest_of[0] <= largest_of[1] * (1 + 1e-12)


@pytest.mark.parametrize("equal_size", [True, False])
def test_greedy_partitions_are_verls(equal_size: bool):
    generator = random.Random(6)
    for _ in range(2_000):
        parts = generator.randint(1, 6)
        values = random_integers(generator, parts * generator.randint(1, 5))
        for given in (values, [value / 7 for value in values], torch.tensor(values).float() / 3):
            expected = verl.greedy_partition(given, parts, equal_size)
            assert ours.greedy_partition(given, parts, equal_size) == expected
            if generator.random() < 0.9:
                break  # tensors are slow there


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_runs_of_equal_uids_stay_together(mode: str):
    generator = random.Random(7)
    for _ in range(500):
        parts = generator.randint(1, 4)
        groups = [generator.randint(1, 4) for _ in range(parts * generator.randint(1, 4))]
        uids = [str(group % 5) for group, size in enumerate(groups) for _ in range(size)]
        lengths = [generator.randint(1, 20000) for _ in uids]
        expected = error_or(verl.get_group_balanced_partitions, lengths, uids, parts)
        answer = error_or(ours.get_group_balanced_partitions, lengths, uids, parts, mode=mode)
        if mode == "exact" or isinstance(expected, str):
            assert answer == expected
            continue
        assert sorted(i for part in answer for i in part) == list(range(len(uids)))
        assert all(part == sorted(part) for part in answer)
        first_of = [i for i in range(len(uids)) if i == 0 or uids[i] != uids[i - 1]]
        runs_of = [sum(i in first_of for i in part) for part in answer]
        assert runs_of == [len(first_of) // parts] * parts
        workloads = [verl.calculate_workload(length) for length in lengths]
        largest_of = [
            max(sum(workloads[i] for i in p) for p in each) for each in (answer, expected)
        ]
        assert largest_of[0] <= largest_of[1]


def error_or(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except AssertionError as error:
        return f"AssertionError: {error}"


@pytest.mark.parametrize("mode", ["exact", "best"])
def test_groups_must_be_a_multiple_of_the_parts(mode: str):
    for arguments in (([1, 2, 3], ["a", "b", "c"], 2), ([1], ["a"], 2), ([1, 2], ["a"], 1)):
        expected = error_or(verl.get_group_balanced_partitions, *arguments)
        assert expected.startswith("AssertionError: ")
        assert error_or(ours.get_group_balanced_partitions, *arguments, mode=mode) == expected


def test_small_functions_are_verls():
    generator = random.Random(8)
    for _ in range(2_000):
        a, b = generator.randint(0, 10**6), generator.randint(1, 10**4)
        assert ours.ceildiv(a, b) == verl.ceildiv(a, b)
        assert ours.roundup_divisible(a, b) == verl.roundup_divisible(a, b)
        permutation = list(range(generator.randint(0, 9)))
        generator.shuffle(permutation)
        assert ours.get_reverse_idx(permutation) == verl.get_reverse_idx(permutation)
    order = torch.tensor([2, 0, 1])
    assert ours.get_reverse_idx(order).tolist() == [1, 2, 0]
    with pytest.raises(TypeError):
        ours.get_reverse_idx((1, 0))
    for dtype in (torch.int32, torch.int64, torch.float32):
        lengths = torch.tensor([1, 4096], dtype=dtype)
        assert torch.equal(ours.calculate_workload(lengths), verl.calculate_workload(lengths))
        assert ours.calculate_workload(lengths).dtype == dtype


def test_the_log_of_the_spread_is_verls():
    generator = random.Random(9)
    for _ in range(2_000):
        parts = generator.randint(1, 6)
        values = [generator.randint(1, 500) for _ in range(generator.randint(parts, 30))]
        partitions = verl.get_seqlen_balanced_partitions(values, parts, False)
        expected = verl.log_seqlen_unbalance(values, partitions, "global_seqlen")
        assert ours.log_seqlen_unbalance(values, partitions, "global_seqlen") == expected
    tensor = torch.tensor([1.5, 2.5, 3.0])
    expected = verl.log_seqlen_unbalance(tensor, [[0], [1, 2]], "x")
    answer = ours.log_seqlen_unbalance(tensor, [[0], [1, 2]], "x")
    assert answer == expected
    assert [type(value) for value in answer.values()] == [type(v) for v in expected.values()]
    with pytest.raises(ValueError, match="must not be zero"):
        ours.log_seqlen_unbalance([1], [[0], []], "x")


def test_an_unknown_mode_is_refused():
    with pytest.raises(
        ValueError, match=r'^\[get_seqlen_balanced_partitions\] mode is "fast", must'
    ):
        ours.get_seqlen_balanced_partitions([1], 1, True, mode="fast")

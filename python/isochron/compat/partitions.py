"""Items into parts of about equal sums: what verl and slime share, under their names."""

import copy
import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from isochron import _planner
from isochron.compat.modes import require_mode

MAX_TOTAL = 2**62  # of the costs of a question


def karmarkar_karp(seqlen_list: Any, k_partitions: int, equal_size: bool) -> list[list[int]]:
    """Largest differencing, bit for bit: it is what its name says in every mode.

    Sums are formed in the type of the values: float32 tensors give the answer of float32. The parts
    come in descending order of their sums, items in the order in which the method joined them.
    """
    count = len(seqlen_list)
    if equal_size:
        assert count % k_partitions == 0, f"{count} % {k_partitions} != 0"
    if count == 0 or k_partitions < 1:
        raise IndexError("list index out of range")
    values = values_of(seqlen_list)
    if count < k_partitions:  # nothing is ever joined
        largest_first = sorted(range(count), key=lambda item: (values[item], item), reverse=True)
        return [[item] for item in largest_first] + [[] for _ in range(k_partitions - count)]
    return _planner.karmarkar_karp(values, k_partitions, "equal" if equal_size else "free")


def greedy_partition(seqlen_list: Any, k_partitions: int, equal_size: bool) -> list[list[int]]:
    """Each item in turn to the first part with the smallest sum; the same in every mode."""
    items = list(values_of(seqlen_list)) if hasattr(seqlen_list, "detach") else seqlen_list
    # So large that a part with fewer items always has the smaller sum.
    bias = sum(items) + 1 if equal_size else 0
    partitions: list[list[int]] = [[] for _ in range(k_partitions)]
    sums = [(0, part) for part in range(k_partitions)]
    for item, value in enumerate(items):
        smallest, part = sums[0]
        partitions[part].append(item)
        heapq.heapreplace(sums, (smallest + (value + bias), part))
    if equal_size:
        for partition in partitions:
            assert len(partition) * k_partitions == len(items), (
                f"{len(partition)} * {k_partitions} != {len(items)}"
            )
    return partitions


def get_seqlen_balanced_partitions(
    seqlen_list: Any, k_partitions: int, equal_size: bool, *, mode: str = "best"
) -> list[list[int]]:
    """Parts of about equal sums, none empty, in descending order of sums, items ascending.

    "best": the largest sum is as small as isochron.balance() makes it, never larger than that of
    Karmarkar-Karp. "exact": the parts of Karmarkar-Karp.
    """
    require_mode(mode, "get_seqlen_balanced_partitions", "best", "exact", "exact_before_7553")
    count = len(seqlen_list)
    assert count >= k_partitions, f"number of items:[{count}] < k_partitions:[{k_partitions}]"
    if mode != "best" or k_partitions < 1 or (equal_size and count % k_partitions != 0):
        return [sorted(part) for part in karmarkar_karp(seqlen_list, k_partitions, equal_size)]
    costs = whole_costs(values_of(seqlen_list))
    balance = _planner.balance(None, k_partitions, costs=costs, equal_count=equal_size)
    parts = _without_empty(balance.sequences_of_rank)
    totals = costs.tolist()
    return sorted(
        parts, key=lambda part: (sum(totals[item] for item in part), len(part), part), reverse=True
    )


def get_reverse_idx(idx_map: Any) -> Any:
    """The inverse of a permutation, as a copy of what it was given: a list or a tensor."""
    reverse_idx_map = copy.deepcopy(idx_map)
    for position, index in enumerate(idx_map):
        reverse_idx_map[index] = position
    return reverse_idx_map


def values_of(values: Any) -> Any:
    """The numbers where the planner reads them, in the type in which they come."""
    if hasattr(values, "detach"):  # a tensor, perhaps on a device
        return values.detach().cpu().numpy()
    if len(values) > 0 and hasattr(values[0], "detach"):
        return np.asarray([value.detach().cpu().numpy() for value in values])
    if len(values) > 0 and isinstance(values[0], np.generic):
        return np.asarray(values)
    return values


def whole_costs(values: Any) -> np.ndarray[Any, Any]:
    """The values as 64-bit integers: as they are if whole, else times a power of two.

    The planner compares whole numbers. Fractions keep as many bits as a total of 2^61 leaves.
    """
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iu":
        return numbers.astype(np.int64)
    numbers = numbers.astype(np.float64)
    total = float(numbers.sum())
    if total < MAX_TOTAL and np.array_equal(numbers, np.floor(numbers)):
        return numbers.astype(np.int64)
    exponent = 61 - math.frexp(total)[1]
    return np.rint(np.ldexp(numbers, exponent)).astype(np.int64)


def _without_empty(parts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Gives every empty part an item of one that has several, which makes no sum larger."""
    filled = [sorted(part) for part in parts]
    givers = [part for part in filled if len(part) > 1]
    for part in filled:
        if part:
            continue
        giver = givers[-1]
        part.append(giver.pop())
        if len(giver) == 1:
            givers.pop()
    return filled

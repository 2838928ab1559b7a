"""The older scheduler of Megatron's hybrid context parallelism, answer for answer.

One group of samples after the other, each ended by a barrier. Samples, longest first, are cut into
buckets of about equal work, one for each number of ranks that is needed. A sample joins the least
loaded group of exactly its size or opens one on free ranks, until the ranks are balanced or nothing
has a place. The last sample of the busiest rank goes back if that helps, and ranks without a sample
are given to the smallest groups by doubling them.

What it gets wrong it gets wrong here too: after a doubling only the first sample of a list counts,
and groups pushed beyond the last rank are an IndexError.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil, log2

Sample = tuple[int, int]  # id, length

SLACK = 0.05  # of the busiest rank's work


@dataclass
class _Rank:
    """What a rank runs, one sample after the other."""

    samples: list[Sample]
    work: float = 0.0


class BalancedCpRule:
    """The groups of a batch for a number of ranks and a longest length per rank."""

    def __init__(self, max_seq_len_per_rank: int, num_ranks: int) -> None:
        self._max_length = max_seq_len_per_rank
        self._num_ranks = num_ranks

    def groups(self, samples: list[Sample]) -> list[list[list[Sample]]]:
        """The samples of every rank in every group."""
        rest = sorted(samples, key=lambda sample: sample[1], reverse=True)
        groups = []
        while rest:
            ranks, rest = self._next_group(rest)
            groups.append([rank.samples for rank in ranks])
        return groups

    def _ranks_needed(self, length: int) -> int:
        return max(1, 2 ** ceil(log2(length / self._max_length)))

    def _work(self, length: int, size: int | None = None) -> float:
        return length * length / (self._ranks_needed(length) if size is None else size)

    def _buckets(self, samples: list[Sample]) -> list[deque[Sample]]:
        num_left = len({self._ranks_needed(length) for _, length in samples})
        target = sum(self._work(length) for _, length in samples) / num_left
        buckets: list[deque[Sample]] = []
        bucket: deque[Sample] = deque()
        work = 0.0
        for place, sample in enumerate(samples):
            more = self._work(sample[1])
            is_full = work + more > target * 1.1
            is_last_chance = len(samples) - place <= num_left - len(buckets)
            if bucket and (is_full or is_last_chance):
                buckets.append(bucket)
                bucket, work = deque(), 0.0
                num_left -= 1
            bucket.append(sample)
            work += more
        buckets.append(bucket)
        return buckets

    def _next_group(self, samples: list[Sample]) -> tuple[list[_Rank], list[Sample]]:
        buckets = self._buckets(samples)
        ranks = [_Rank([]) for _ in range(self._num_ranks)]
        members_of: list[list[int]] = []  # of each group, in the order of opening
        first_size: int | None = None
        may_end = False
        while buckets:
            with_place = (each for each in buckets if each and self._has_place(each[0], members_of))
            bucket = next(with_place, None)
            if bucket is None:
                break
            sample = bucket.popleft()
            size = self._ranks_needed(sample[1])
            first_size = size if first_size is None else first_size
            for rank in self._least_loaded(size, ranks, members_of):
                ranks[rank].samples.append(sample)
                ranks[rank].work += self._work(sample[1])
            while buckets and not buckets[0]:
                buckets.pop(0)
            may_end = may_end or size < first_size
            if may_end and buckets and _is_balanced(ranks):
                break
        rest = [sample for bucket in buckets for sample in bucket]
        self._trim(ranks, members_of, rest)
        before = sum(len(rank.samples) for rank in ranks)
        while any(not rank.samples for rank in ranks):
            ranks = self._widened(ranks, members_of)
        after = sum(len(rank.samples) for rank in ranks)
        assert after >= before, f"Samples were removed: {before} -> {after}"
        return ranks, rest

    def _num_free(self, members_of: list[list[int]]) -> int:
        return self._num_ranks - sum(len(members) for members in members_of)

    def _has_place(self, sample: Sample, members_of: list[list[int]]) -> bool:
        size = self._ranks_needed(sample[1])
        return self._num_free(members_of) >= size or any(len(m) == size for m in members_of)

    def _least_loaded(
        self, size: int, ranks: list[_Rank], members_of: list[list[int]]
    ) -> list[int]:
        """The members of a group of this size; of a new one if none is idle and ranks are free."""
        loads = [
            (max(ranks[rank].work for rank in members), members)
            for members in members_of
            if len(members) == size
        ]
        num_free = self._num_free(members_of)
        if num_free >= size and all(load > 0 for load, _ in loads):
            first = self._num_ranks - num_free  # groups open one behind the other
            members_of.append(list(range(first, first + size)))
            return members_of[-1]
        return min(loads, key=lambda pair: pair[0])[1]

    def _trim(self, ranks: list[_Rank], members_of: list[list[int]], rest: list[Sample]) -> None:
        while not _is_balanced(ranks):
            works = [rank.work for rank in ranks]
            busiest = works.index(max(works))
            if min(works) == 0 or len(ranks[busiest].samples) <= 1:
                break
            members = next(members for members in members_of if busiest in members)
            sample = ranks[busiest].samples[-1]
            work = self._work(sample[1])
            for rank in members:
                works[rank] -= work
            if max(works) - min(works) >= _spread(ranks):
                break
            for rank in members:
                ranks[rank].samples.pop()
                ranks[rank].work -= work
            rest.append(sample)

    def _widened(self, ranks: list[_Rank], members_of: list[list[int]]) -> list[_Rank]:
        """The first of the smallest groups on twice its ranks; those behind it move on."""
        assert members_of, "There should be at least one group existing, cannot reditribute, "
        smallest = min(len(members) for members in members_of)
        wide = min(smallest * 2, self._num_ranks)
        num_more = wide - smallest
        place = next(i for i, members in enumerate(members_of) if len(members) == smallest)
        first, last = members_of[place][0], members_of[place][-1]
        first_empty = next(i for i, rank in enumerate(ranks) if not rank.samples)
        pushed = ranks[last + 1 : first_empty]
        shared = ranks[last].samples
        widened = [_Rank([]) for _ in ranks]
        widened[:first] = ranks[:first]
        for rank in range(first, last + num_more + 1):
            widened[rank] = _Rank(shared, self._work(shared[0][1], wide))
        for i, later in enumerate(pushed):
            widened[last + num_more + 1 + i] = later
        members_of[place] = list(range(first, last + num_more + 1))
        for i in range(place + 1, len(members_of)):
            members_of[i] = [rank + num_more for rank in members_of[i]]
        return widened


def _spread(ranks: list[_Rank]) -> float:
    works = [rank.work for rank in ranks]
    return max(works) - min(works)


def _is_balanced(ranks: list[_Rank]) -> bool:
    return _spread(ranks) <= SLACK * max(rank.work for rank in ranks)

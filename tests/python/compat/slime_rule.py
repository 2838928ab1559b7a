"""slime's rule of pull request 1823 once more: plain Python, and verl's Karmarkar-Karp."""

from verl.utils.seqlen_balancing import get_seqlen_balanced_partitions

Outcome = tuple[list[list[int]], list[int]] | type[Exception]


def schedule_of(
    lengths_of_rank: list[list[int]], rank: int, step_size: int, cap: int, multiple: int
) -> Outcome:
    """Micro-batches of a rank and their number in each step, or the error that it raises."""
    if step_size == 0:
        return ZeroDivisionError
    micro_batches: list[list[int]] = []
    counts: list[int] = []
    lengths = lengths_of_rank[rank]
    for start in range(0, len(lengths) - step_size + 1, step_size):
        own = lengths[start : start + step_size]
        count = max(
            len(first_fit(each[start : start + step_size], cap)) for each in lengths_of_rank
        )
        while count % multiple != 0:
            count += 1
        if count > len(own):
            return AssertionError
        parts = get_seqlen_balanced_partitions(own, count, equal_size=False)
        if any(sum(own[i] for i in part) > cap for part in parts):
            parts = first_fit(own, cap)
            if max(own) > cap:
                return AssertionError
            parts += [[]] * (count - len(parts))
        micro_batches += [[start + i for i in part] for part in parts]
        counts.append(count)
    if sum(len(part) for part in micro_batches) != len(lengths):
        return AssertionError
    return micro_batches, counts


def first_fit(lengths: list[int], cap: int) -> list[list[int]]:
    bins: list[list[int]] = []
    for i, length in enumerate(lengths):
        for each in bins:
            if sum(lengths[j] for j in each) + length <= cap:
                each.append(i)
                break
        else:
            bins.append([i])
    return bins

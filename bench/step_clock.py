"""What a step takes by the cost model of docs/cost.md, whoever planned it.

A step is a list of slots; a slot has a list of sequences for every rank, and ranks with the same list
share them. A rank runs its slots in order, a group starts when its last member is free.
"""


class StepClock:
    """Times the steps of a number of ranks by a cost model (as in its JSON)."""

    def __init__(self, cost, ranks):
        self._cost = cost
        self._ranks = ranks

    def step_ns(self, slots, lengths, is_serial=False):
        """`is_serial`: the sequences of a group run one after the other, each in a micro-batch of its
        own, and all ranks wait for each other after a slot."""
        free = [0] * self._ranks
        for slot in slots:
            for first, size in groups_of(slot):
                sequences = [lengths[i] for i in slot[first]]
                batches = [[length] for length in sequences] if is_serial else [sequences]
                members = range(first, first + size)
                end = max(free[rank] for rank in members)
                end += sum(self._microbatch_ns(batch, first, size) for batch in batches)
                for rank in members:
                    free[rank] = end
            if is_serial:
                free = [max(free)] * self._ranks
        return max(free)

    def _microbatch_ns(self, lengths, first, size):
        cost = self._cost
        total = cost["microbatch_ns"]
        link = self._link(first, size) if size > 1 else None
        if link:
            total += 1000 * link["latency_us"]
        for length in lengths:
            work = cost["quadratic_ns"] * length * length + cost["linear_ns"] * length
            total += work / size
            if link:
                context = cost["context"]
                moved = context["bytes_per_token"] * length * (size - 1) / size
                total += (1 - context["overlap"]) * moved / link["gb_per_s"]
        return total

    def _link(self, first, size):
        """The first link whose block holds all members."""
        last = first + size - 1
        return next(
            link
            for link in self._cost["context"]["links"]
            if first // link["max_ranks"] == last // link["max_ranks"]
        )


def groups_of(slot):
    """(first rank, ranks) of every group that runs something."""
    first = 0
    for rank in range(1, len(slot) + 1):
        # Lists without a sequence are idle ranks, not a group.
        if rank == len(slot) or slot[rank] != slot[first] or not slot[first]:
            if slot[first]:
                yield first, rank - first
            first = rank


def overfull(slots, lengths, capacity):
    """(micro-batches, those over the capacity of a rank, the fullest over the capacity)."""
    loads = [
        sum(lengths[i] for i in slot[first]) / (size * capacity)
        for slot in slots
        for first, size in groups_of(slot)
    ]
    return len(loads), sum(load > 1 for load in loads), max(loads)

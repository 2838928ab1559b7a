"""Process groups for the context groups of plans."""

from collections import Counter
from collections.abc import Sequence

import torch.distributed as dist

from isochron import StepPlan
from isochron.torch.microbatch import Microbatch

Ranks = tuple[int, ...]


class ContextGroups:
    """Process groups for context groups of two and more ranks, kept from step to step.

    Sizes may be mixed and change from plan to plan. Before a step every rank of the job goes
    through the whole plan and creates what is missing in the order (slot, first rank, size), so
    that no two ranks wait for each other; nothing is created in the middle of a step. Members
    alone communicate. The others make the same calls because torch names groups by their number.
    """

    def __init__(self, copies: Sequence[Sequence[int]] | None = None, max_open: int = 64) -> None:
        """Of a job in which each rank is one of the plan, unless `copies` are given.

        `copies[i][r]` is the rank of the job that is rank r of the plan in its i-th copy: one copy
        for each pipeline stage and tensor-parallel place, each ascending. At most `max_open` groups
        stay open per rank, unless one plan needs more: see GroupCache.
        """
        for i, copy in enumerate(copies or []):
            if list(copy) != sorted(set(copy)):
                raise ValueError(f"[ContextGroups] copies[{i}] is {list(copy)}, must ascend")
        self._copies = copies
        self._cache = GroupCache(max_open)
        self._own: dict[Ranks, dist.ProcessGroup] = {}  # by the ranks of the plan

    def prepare(self, plan: StepPlan) -> None:
        """Creates what `plan` needs and ends what is too much.

        Every rank of the job calls it before the step, when nothing is under way in any group.
        """
        copies = self._copies or [range(plan.ranks)]
        closed, opened = self._cache.advance(plan)
        for ranks in closed:
            self._end(ranks)
        for ranks in opened:
            for copy in copies:
                members = [copy[rank] for rank in ranks]
                group = dist.new_group(members)
                if dist.get_rank() in members:
                    self._own[ranks] = group

    def of(self, microbatch: Microbatch) -> dist.ProcessGroup | None:
        """The group that shares the micro-batch; None if one rank runs it alone."""
        if microbatch.context_size == 1:
            return None
        if microbatch.ranks not in self._own:
            raise ValueError(
                f"[ContextGroups] there is no group of the ranks {list(microbatch.ranks)}: call "
                "prepare(plan) on every rank before the step"
            )
        return self._own[microbatch.ranks]

    def close(self) -> None:
        """Ends the groups of this rank."""
        for ranks in list(self._own):
            self._end(ranks)
        self._cache = GroupCache(self._cache.max_open)

    def _end(self, ranks: Ranks) -> None:
        if ranks in self._own:
            dist.destroy_process_group(self._own.pop(ranks))


class GroupCache:
    """Which groups are open, on all ranks: each keeps the same account of the same plans.

    Before a step the least recently used groups are closed, ties by their ranks, of ranks that
    would have more than `max_open`. Never one that the plan needs: a rank that needs more in one
    step keeps them all until the next.
    """

    def __init__(self, max_open: int) -> None:
        if max_open < 1:
            raise ValueError(f"[ContextGroups] max_open is {max_open}, must be at least 1")
        self.max_open = max_open
        self._step = 0
        self._last_step: dict[Ranks, int] = {}  # of each open group: when a plan needed it last

    def advance(self, plan: StepPlan) -> tuple[list[Ranks], list[Ranks]]:
        """What is closed and then opened before the step of `plan`, each in that order."""
        self._step += 1
        opened = []
        for slot in plan.microbatches:  # groups of a slot ascend by rank and do not overlap
            for ranks in (tuple(group.ranks) for group in slot if len(group.ranks) > 1):
                if ranks not in self._last_step:
                    opened.append(ranks)
                self._last_step[ranks] = self._step

        num_open = Counter(rank for ranks in self._last_step for rank in ranks)
        unneeded = sorted(
            (last, ranks[0], len(ranks), ranks)
            for ranks, last in self._last_step.items()
            if last < self._step
        )
        closed = []
        for _, _, _, ranks in unneeded:
            if max(num_open[rank] for rank in ranks) > self.max_open:
                num_open.subtract(ranks)
                del self._last_step[ranks]
                closed.append(ranks)
        return closed, opened

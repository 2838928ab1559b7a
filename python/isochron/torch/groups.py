"""Process groups for the context groups of plans."""

from collections.abc import Sequence

import torch.distributed as dist

from isochron import StepPlan
from isochron.torch.microbatch import Microbatch


class ContextGroups:
    """Process groups for context groups of two and more ranks; each is created once and kept.

    Sizes may be mixed and change from plan to plan. Before a step every rank of the job goes
    through the whole plan and creates what is missing in the order (slot, first rank, size), so
    that no two ranks wait for each other; nothing is created in the middle of a step. Members
    alone communicate. The others make the same calls because torch names groups by their number.
    """

    def __init__(self, copies: Sequence[Sequence[int]] | None = None) -> None:
        """Of a job in which each rank is one of the plan, unless `copies` are given.

        `copies[i][r]` is the rank of the job that is rank r of the plan in its i-th copy: one copy
        for each pipeline stage and tensor-parallel place, each ascending.
        """
        for i, copy in enumerate(copies or []):
            if list(copy) != sorted(set(copy)):
                raise ValueError(f"[ContextGroups] copies[{i}] is {list(copy)}, must ascend")
        self._copies = copies
        self._created: set[tuple[int, ...]] = set()  # by the ranks of the job
        self._own: dict[tuple[int, ...], dist.ProcessGroup] = {}  # by the ranks of the plan

    def prepare(self, plan: StepPlan) -> None:
        """Creates what `plan` needs. Every rank of the job calls it before the step."""
        copies = self._copies or [range(plan.ranks)]
        for slot in plan.microbatches:  # groups of a slot ascend by rank and do not overlap
            for ranks in (tuple(group.ranks) for group in slot if len(group.ranks) > 1):
                for copy in copies:
                    self._create(ranks, tuple(copy[rank] for rank in ranks))

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
        for group in self._own.values():
            dist.destroy_process_group(group)
        self._own.clear()
        self._created.clear()

    def _create(self, ranks: tuple[int, ...], members: tuple[int, ...]) -> None:
        if members in self._created:
            return
        self._created.add(members)
        group = dist.new_group(list(members))
        if dist.get_rank() in members:
            self._own[ranks] = group

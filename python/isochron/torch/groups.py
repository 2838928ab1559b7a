"""Process groups for the context groups of plans."""

from collections.abc import Sequence

import torch.distributed as dist

from isochron import StepPlan
from isochron.torch.microbatch import Microbatch


class ContextGroups:
    """Process groups for context groups of two and more ranks; each is created once and kept.

    Sizes may be mixed and change from plan to plan. Only members take part in creating a group,
    and every rank creates those it lacks in the order (slot, first rank, size) of the plan, so that
    no two ranks wait for each other. Nothing is created in the middle of a step.
    """

    def __init__(self, ranks: Sequence[int] | None = None, *, backend: str | None = None) -> None:
        """`ranks[r]` is the rank in the job of the plan's rank r; None: they are the same."""
        self._ranks = ranks
        self._backend = backend
        self._groups: dict[tuple[int, ...], dist.ProcessGroup] = {}

    def prepare(self, plan: StepPlan) -> None:
        """Creates what `plan` needs. Every rank calls it before the first operation of a step."""
        wanted = sorted(
            (slot, group.ranks[0], len(group.ranks))
            for slot, groups in enumerate(plan.microbatches)
            for group in groups
            if len(group.ranks) > 1
        )
        own = dist.get_rank()
        for _, first, size in wanted:
            members = self._members(range(first, first + size))
            if own in members and members not in self._groups:
                self._groups[members] = dist.new_group(
                    list(members), backend=self._backend, use_local_synchronization=True
                )

    def of(self, microbatch: Microbatch) -> dist.ProcessGroup | None:
        """The group that shares the micro-batch; None if one rank runs it alone."""
        if microbatch.context_size == 1:
            return None
        members = self._members(microbatch.ranks)
        if members not in self._groups:
            raise ValueError(
                f"[ContextGroups] there is no group of the ranks {list(members)}: call prepare(plan) "
                "on every rank before the step"
            )
        return self._groups[members]

    def close(self) -> None:
        """Ends all groups; every rank calls it."""
        for group in self._groups.values():
            dist.destroy_process_group(group)
        self._groups.clear()

    def _members(self, ranks: Sequence[int]) -> tuple[int, ...]:
        return tuple(ranks) if self._ranks is None else tuple(self._ranks[rank] for rank in ranks)

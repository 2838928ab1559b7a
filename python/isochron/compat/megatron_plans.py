"""Plans of the planner as Megatron's schedulers return them: the samples of every rank."""

from typing import Any, Literal

from isochron import _planner
from isochron.compat.megatron_balanced_cp import Sample

Slot = list[list[Sample]]  # of every rank


def dynamic_groups(
    samples: list[Sample],
    *,
    ranks: int,
    capacity: int,
    multiple: int = 1,
    min_size: int = 1,
    cost: Any = None,
    sync: Literal["step", "microbatch"] = "step",
) -> list[Slot]:
    """Micro-batches with groups of mixed sizes, in which every rank has a sample.

    ValueError where there are none, in the words of the planner.
    """
    if not samples:
        return []
    plan = _planner.plan_step(
        [length for _, length in samples],
        ranks,
        capacity,
        cost=cost,
        context="dynamic:powers",
        min_context_size=min_size,
        sync=sync,
        counts="equal",
        short="error",
        # The count of micro-batches is a multiple of `group` where stages are virtual.
        stages=min(2, multiple),
        virtual=min(2, multiple),
        group=multiple,
    )
    _require_plan(plan)
    return [_slot_of(groups, samples) for groups in plan.microbatches]


def static_groups(
    samples: list[Sample],
    *,
    dp_size: int,
    cp_size: int,
    capacity: int,
    multiple: int,
    max_sequences: int,
    cost: Any,
) -> list[Slot]:
    """Micro-batches with groups of cp_size ranks each, from one packing for all of them.

    ValueError for a sample above the cap; AssertionError, as in Megatron, for too few samples.
    """
    if not samples:
        return []
    lengths = [length for _, length in samples]
    schedule = _planner.schedule_ranks(
        lengths,
        dp_size,
        cost=cost,
        capacity=capacity * cp_size,
        multiple=multiple,
        max_sequences=max_sequences,
        oversize="error",
        short="error",
    )
    if schedule.status == "infeasible" and max(lengths) <= capacity * cp_size:
        raise AssertionError("Not enough samples to move")
    _require_plan(schedule)
    bins = schedule.packing.microbatches
    return [
        [[samples[i] for i in bins[place]] for place in places for _ in range(cp_size)]
        for places in zip(*schedule.microbatches_of_rank, strict=True)
    ]


def _require_plan(answer: Any) -> None:
    if answer.status in ("infeasible", "unknown"):
        raise ValueError(f"[get_groups_and_subsamples] {answer.reason}")


def _slot_of(groups: Any, samples: list[Sample]) -> Slot:
    of_rank = {
        rank: [samples[i] for i in group.sequences] for group in groups for rank in group.ranks
    }
    return [of_rank[rank] for rank in sorted(of_rank)]

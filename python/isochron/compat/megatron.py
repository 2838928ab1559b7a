"""Megatron's packing schedulers, by isochron's planner.

Each takes (sample id, padded length) of a batch and says which samples every DPxCP rank runs in
every micro-batch; ranks with the same list share its samples. mode="best" (the default) balances
full costs: every rank has a sample in every micro-batch, a group is a power of two up to half of
the ranks, from a multiple of its size on, or all ranks, and the cap holds for samples padded to
twice the size of their group. mode="exact" gives Megatron's own answers and failures:
BalancedCPScheduler as in megatron-core 0.16.1, the others as in the development branch.
"""

import functools
from collections.abc import Callable
from math import log2
from typing import Any

from isochron import _planner
from isochron.compat.megatron_balanced_cp import BalancedCpRule, Sample
from isochron.compat.megatron_plans import dynamic_groups, static_groups
from isochron.compat.modes import Mode, require_mode
from isochron.compat.patching import Patches

__all__ = [
    "BalancedCPScheduler",
    "DefaultDynamicCPScheduler",
    "DpBalancedScheduler",
    "install",
    "uninstall",
]

Groups = list[list[list[int]]]  # of every micro-batch and rank the ids of samples


class _Choice:
    """Whose answer a scheduler gives, and by which costs."""

    mode: Mode = "best"
    cost: Any = None  # a CostModel or the name of one; none: that of isochron.plan_step()

    def _choose(self, mode: Mode, cost: Any) -> None:
        require_mode(mode, type(self).__name__, "best", "exact")
        self.mode, self.cost = mode, cost


class _BalancedCp(_Choice):
    max_seq_len_per_rank: int
    total_hdp_gpus: int

    def get_groups_and_subsamples(
        self, sample_id_seqlens: list[Sample], config: Any
    ) -> tuple[Groups, Groups]:
        """(lengths, ids) of every group and rank; `config` is not looked at."""
        if self.mode == "exact":
            rule = BalancedCpRule(self.max_seq_len_per_rank, self.total_hdp_gpus)
            groups = rule.groups(sample_id_seqlens)
        else:
            groups = dynamic_groups(
                sample_id_seqlens,
                ranks=self.total_hdp_gpus,
                capacity=self.max_seq_len_per_rank,
                cost=self.cost,
                sync="microbatch",  # a barrier ends every group
            )
        lengths = [[[length for _, length in rank] for rank in group] for group in groups]
        return lengths, _ids_of(groups)


class _DpBalanced(_Choice):
    max_seqlen_per_dp_cp_rank: int
    cp_size: int
    dp_size: int
    microbatch_group_size_per_vp_stage: int | None
    max_num_seqs: int | None

    def get_groups_and_subsamples(self, sample_id_seqlens: list[Sample]) -> Groups:
        """Ids of every micro-batch and rank. "exact" gives positions in the list instead of ids."""
        per_rank = self.microbatch_group_size_per_vp_stage or 1
        max_sequences = getattr(self, "max_num_seqs", None)
        if self.mode == "exact":
            bins = _next_fit(
                [length for _, length in sample_id_seqlens],
                self.max_seqlen_per_dp_cp_rank * self.cp_size,
                max_sequences,
            )
            _align_by_tail(bins, self.dp_size * per_rank)
            return [
                [bins[first + rank // self.cp_size] for rank in range(self.dp_size * self.cp_size)]
                for first in range(0, len(bins), self.dp_size)
            ]
        return _ids_of(
            static_groups(
                sample_id_seqlens,
                dp_size=self.dp_size,
                cp_size=self.cp_size,
                capacity=self.max_seqlen_per_dp_cp_rank,
                multiple=per_rank,
                max_sequences=max_sequences or 0,
                cost=self.cost,
            )
        )


class _DynamicCp(_Choice):
    max_seqlen_per_dp_cp_rank: int
    cp_size: int
    dp_size: int
    microbatch_group_size_per_vp_stage: int | None
    min_cp_size: int

    def get_groups_and_subsamples(self, sample_id_seqlens: list[Sample]) -> Groups:
        """Ids of every micro-batch and rank."""
        ranks = self.dp_size * self.cp_size
        multiple = self.microbatch_group_size_per_vp_stage or 1
        if self.mode == "best":
            groups = dynamic_groups(
                sample_id_seqlens,
                ranks=ranks,
                capacity=self.max_seqlen_per_dp_cp_rank,
                multiple=multiple,
                min_size=self.min_cp_size,
                cost=self.cost,
            )
            return _ids_of(groups)
        for _, length in sample_id_seqlens:
            log2(length / self.max_seqlen_per_dp_cp_rank)  # ValueError for a length of 0
        places = _planner.megatron_schedule(
            [length for _, length in sample_id_seqlens],
            ranks=ranks,
            capacity=self.max_seqlen_per_dp_cp_rank,
            min_context_size=self.min_cp_size,
            slot_multiple=multiple,
        )
        ids = [sample for sample, _ in sample_id_seqlens]
        return [[[ids[place] for place in rank] for rank in group] for group in places]


class BalancedCPScheduler(_BalancedCp):
    """Samples of a rank run one after the other; all ranks wait for each other after a group."""

    def __init__(
        self, max_seq_len_per_rank: int, dp_cp_group: Any, *, mode: Mode = "best", cost: Any = None
    ) -> None:
        self._choose(mode, cost)
        self.max_seq_len_per_rank = max_seq_len_per_rank
        self.total_hdp_gpus = dp_cp_group.size()


class DpBalancedScheduler(_DpBalanced):
    """Samples of a rank are packed; context parallel groups have the same size throughout."""

    def __init__(
        self,
        max_seqlen_per_dp_cp_rank: int,
        cp_size: int,
        dp_size: int,
        microbatch_group_size_per_vp_stage: int | None,
        max_num_seqs: int | None = None,
        *,
        mode: Mode = "best",
        cost: Any = None,
    ) -> None:
        self._choose(mode, cost)
        self.max_seqlen_per_dp_cp_rank = max_seqlen_per_dp_cp_rank
        self.cp_size = cp_size
        self.dp_size = dp_size
        self.microbatch_group_size_per_vp_stage = microbatch_group_size_per_vp_stage
        self.max_num_seqs = max_num_seqs


class DefaultDynamicCPScheduler(_DynamicCp):
    """Samples of a rank are packed; each micro-batch has groups of its own sizes."""

    def __init__(
        self,
        max_seqlen_per_dp_cp_rank: int,
        cp_size: int,
        dp_size: int,
        microbatch_group_size_per_vp_stage: int | None,
        max_num_seqs: int | None = None,
        *,
        min_cp_size: int = 1,
        mode: Mode = "best",
        cost: Any = None,
    ) -> None:
        self._choose(mode, cost)
        self.max_seqlen_per_dp_cp_rank = max_seqlen_per_dp_cp_rank
        self.cp_size = cp_size
        self.dp_size = dp_size
        self.microbatch_group_size_per_vp_stage = microbatch_group_size_per_vp_stage
        self.max_num_seqs = max_num_seqs
        self.min_cp_size = min_cp_size


def _ids_of(groups: list[list[list[Sample]]]) -> Groups:
    return [[[sample for sample, _ in rank] for rank in group] for group in groups]


def _next_fit(lengths: list[int], cap: int, max_sequences: int | None) -> list[list[int]]:
    """Positions in order; a sample that does not fit closes the bin, even an empty one."""
    bins: list[list[int]] = []
    current: list[int] = []
    tokens = 0
    for position, length in enumerate(lengths):
        has_room = max_sequences is None or len(current) < max_sequences
        if tokens + length <= cap and has_room:
            current.append(position)
            tokens += length
        else:
            bins.append(current)
            current, tokens = [position], length
    return [*bins, current] if current else bins


def _align_by_tail(bins: list[list[int]], multiple: int) -> None:
    """Takes single samples out of the last bins that have several."""
    giver = len(bins) - 1
    for _ in range(-len(bins) % multiple):
        while giver >= 0 and len(bins[giver]) <= 1:
            giver -= 1
        assert giver >= 0, "Not enough samples to move"
        bins.append([bins[giver].pop()])


_RULES: dict[str, type[_Choice]] = {
    "BalancedCPScheduler": _BalancedCp,
    "DpBalancedScheduler": _DpBalanced,
    "DefaultDynamicCPScheduler": _DynamicCp,
}
_patches = Patches()
_undo: list[Callable[[], None]] = []


def install(mode: Mode = "best", cost: Any = None) -> None:
    """Gives every scheduler of this Megatron our groups, in every module and in `scheduler_map`.

    A scheduler stays what it is but for get_groups_and_subsamples(). Those that this Megatron does
    not have are left out. A second call changes the mode and the cost.
    """
    require_mode(mode, "install", "best", "exact")
    from megatron.core.datasets import data_schedule

    uninstall()
    scheduler_map = getattr(data_schedule, "scheduler_map", {})
    for name, rule in _RULES.items():
        original = getattr(data_schedule, name, None)
        if original is None:
            continue
        ours = type(name, (rule, original), {"mode": mode, "cost": cost})
        ours.__module__ = original.__module__
        _patches.replace(original, ours)
        for key in [key for key, value in scheduler_map.items() if value is original]:
            _undo.append(functools.partial(scheduler_map.__setitem__, key, original))
            scheduler_map[key] = ours


def uninstall() -> None:
    """Puts Megatron's own schedulers back; nothing if they are there."""
    _patches.take_back()
    while _undo:
        _undo.pop()()

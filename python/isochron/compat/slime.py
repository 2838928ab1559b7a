"""slime's utils/seqlen_balancing.py, dp_schedule.py and flops_utils.py, by isochron's planner.

get_data_iterator() is that of a slime without dp_schedule.py, where every rank packs its own.

mode="best" (the default) packs a step once for all ranks: under the cap, in as few micro-batches as
the planner finds, balanced by estimated FLOPs. mode="exact" gives slime's own answers, which break
the cap where `balance_by_flops` is set. A step of fixed micro-batches keeps slime's in both.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from isochron import _planner
from isochron.compat.modes import Mode, require_mode
from isochron.compat.partitions import (
    get_reverse_idx,
    get_seqlen_balanced_partitions,
    greedy_partition,
    karmarkar_karp,
    whole_costs,
)
from isochron.compat.patching import Patches
from isochron.compat.slime_flops import calculate_fwd_flops, costs_of
from isochron.compat.slime_iterators import DataIterator, get_data_iterator

__all__ = [
    "DataIterator",
    "build_dp_schedule",
    "calculate_fwd_flops",
    "expand_bins_by_splitting",
    "first_fit_pack",
    "get_data_iterator",
    "get_minimum_num_micro_batch_size",
    "get_reverse_idx",
    "get_seqlen_balanced_partitions",
    "greedy_partition",
    "install",
    "karmarkar_karp",
    "uninstall",
]

Bins = list[list[int]]
Schedule = tuple[list[list[int]], list[list[list[int]]], list[int], list[int]]


def first_fit_pack(total_lengths: Any, max_tokens_per_bin: int) -> Bins:
    """Each sample in turn to the first bin with room; one above the cap has its own."""
    return _planner.slime_first_fit_pack(total_lengths, max_tokens_per_bin)


def expand_bins_by_splitting(bins: Bins, target_count: int, lengths: Any) -> None:
    """Cuts the bin with the most tokens in two, in place, until there are enough bins."""
    bins[:] = _planner.slime_expand_bins(bins, target_count, lengths)


def _split_bin_by_tokens(bin_indices: list[int], lengths: Any) -> Bins:
    """Two halves of a bin: longest first, each sample to the half with fewer tokens."""
    halves: Bins = [[], []]
    tokens = [0, 0]
    for sample in sorted(bin_indices, key=lambda sample: -lengths[sample]):
        half = 0 if tokens[0] <= tokens[1] else 1
        halves[half].append(sample)
        tokens[half] += lengths[sample]
    return halves


def get_minimum_num_micro_batch_size(total_lengths: Any, max_tokens_per_gpu: int) -> int:
    """How many bins first_fit_pack() makes."""
    return _planner.slime_min_microbatches(total_lengths, max_tokens_per_gpu)


def _get_capped_partitions(seqlen_list: Any, num_partitions: int, max_tokens: int) -> Bins:
    """First fit into exactly so many bins, some perhaps empty; AssertionError if one is too few."""
    return _planner.slime_capped_partitions(seqlen_list, num_partitions, max_tokens)


def build_dp_schedule(
    args: Any,
    train_parallel_config: dict[str, Any],
    total_lengths: list[int],
    *,
    global_batch_size: int,
    rollout_indices: list[int],
    mode: Mode = "best",
) -> Schedule:
    """Samples of every rank, its micro-batches, and their number and rollouts in every step.

    Rollouts that fill no step are left out. Every rank has the same number of micro-batches in a
    step, a multiple of the pipeline's group; only a sample that is alone may exceed the cap.
    """
    require_mode(mode, "build_dp_schedule", "best", "exact")
    dp_size = train_parallel_config["dp_size"]
    has_groups = train_parallel_config["vpp_size"] > 1
    group = train_parallel_config["microbatch_group_size_per_vp_stage"] if has_groups else 1
    cap = 0
    if args.use_dynamic_batch_size:
        assert args.max_tokens_per_gpu is not None
        cap = args.max_tokens_per_gpu * train_parallel_config["cp_size"]
    partitions: list[list[int]] = [[] for _ in range(dp_size)]
    micro_batch_indices: list[Bins] = [[] for _ in range(dp_size)]
    num_microbatches: list[int] = []
    steps = _samples_of_steps(rollout_indices, global_batch_size)
    for number, samples in enumerate(steps):
        assert len(samples) >= dp_size, (
            f"step {number}: {len(samples)} samples < dp_size {dp_size}; "
            f"each step needs at least one sample per rank."
        )
        step = _Step(
            number, [total_lengths[sample] for sample in samples], dp_size, group, cap, args
        )
        is_best = mode == "best" and args.use_dynamic_batch_size
        bins_of_rank = step.best() if is_best else step.exact(mode)
        for rank, bins in enumerate(bins_of_rank):
            for positions in bins:
                first = len(partitions[rank])
                partitions[rank].extend(samples[position] for position in positions)
                micro_batch_indices[rank].append(list(range(first, first + len(positions))))
        num_microbatches.append(len(bins_of_rank[0]))
    return partitions, micro_batch_indices, num_microbatches, [global_batch_size] * len(steps)


def _samples_of_steps(rollout_indices: Sequence[int], global_batch_size: int) -> list[list[int]]:
    samples_of: dict[int, list[int]] = {}
    for sample, rollout in enumerate(rollout_indices):
        samples_of.setdefault(rollout, []).append(sample)
    rollouts = list(samples_of.values())
    num_steps = len(rollouts) // global_batch_size
    assert num_steps >= 1, (
        f"num_rollouts ({len(rollouts)}) < global_batch_size ({global_batch_size}); "
        f"need at least one rollout per step."
    )
    return [
        sum(rollouts[step * global_batch_size : (step + 1) * global_batch_size], [])
        for step in range(num_steps)
    ]


class _Step:
    """The samples of a step; micro-batches hold their positions in it."""

    def __init__(
        self, number: int, lengths: list[int], dp_size: int, group: int, cap: int, args: Any
    ) -> None:
        self._number = number
        self._lengths = lengths
        self._dp_size = dp_size
        self._group = group
        self._align_to = dp_size * group
        self._cap = cap
        self._args = args

    def exact(self, mode: Mode) -> list[Bins]:
        """Pack, align, deal: slime's order of things. The mode is that of dealing."""
        bins = self._packed()
        target = self._aligned(len(bins))
        if self._args.use_dynamic_batch_size:
            expand_bins_by_splitting(bins, target, self._lengths)
            self._require_count(len(bins), target)
        elif len(bins) != target:
            raise AssertionError(
                f"static path: num_mbs ({len(bins)}) is not a multiple of "
                f"dp_size * mb_group ({self._align_to}); got "
                f"step_size={len(self._lengths)}, "
                f"micro_batch_size={self._args.micro_batch_size}, "
                f"dp_size={self._dp_size}, mb_group={self._group}. "
                f"Splitting static mbs would break the fixed-size invariant; adjust the config "
                f"so step_size % (dp_size * micro_batch_size * mb_group) == 0."
            )
        return [[bins[place] for place in places] for places in self._dealt(bins, mode)]

    def best(self) -> list[Bins]:
        """Cap, counts and FLOPs at once."""
        lengths = [max(1, length) for length in self._lengths]
        schedule = _planner.schedule_ranks(
            lengths,
            self._dp_size,
            costs=whole_costs(costs_of(self._lengths, self._args)),
            capacity=self._cap,
            multiple=self._group,
            oversize="alone",
            short="error",
        )
        if schedule.status == "infeasible":
            packing = _planner.pack(lengths, capacity=self._cap, oversize="alone")
            self._require_count(len(lengths), self._aligned(len(packing.microbatches)))
        bins = schedule.packing.microbatches
        return [[bins[place] for place in places] for places in schedule.microbatches_of_rank]

    def _packed(self) -> Bins:
        count = len(self._lengths)
        if not self._args.use_dynamic_batch_size:
            size = self._args.micro_batch_size
            assert size is not None
            return [list(range(i, min(i + size, count))) for i in range(0, count, size)]
        if not self._args.balance_by_flops:
            return first_fit_pack(self._lengths, self._cap)
        num_bins = max(1, -(sum(self._lengths) // -self._cap))
        if num_bins >= count:
            return [[position] for position in range(count)]
        return get_seqlen_balanced_partitions(self._flops(), num_bins, False, mode="exact")

    def _dealt(self, bins: Bins, mode: Mode) -> Bins:
        if not self._args.balance_data:
            return [list(range(rank, len(bins), self._dp_size)) for rank in range(self._dp_size)]
        flops = self._flops()
        weights = [sum(flops[position] for position in each) for each in bins]
        return get_seqlen_balanced_partitions(weights, self._dp_size, True, mode=mode)

    def _aligned(self, count: int) -> int:
        return max(-(count // -self._align_to), 1) * self._align_to

    def _require_count(self, count: int, target: int) -> None:
        assert count == target, (
            f"dynamic path: could only produce {count} mbs after maximal splitting; "
            f"need {target}. step {self._number} has {len(self._lengths)} samples, below the "
            f"alignment threshold ({self._align_to})."
        )

    def _flops(self) -> list[float]:
        return [calculate_fwd_flops([length], self._args) for length in self._lengths]


_BALANCING: list[Callable[..., Any]] = [karmarkar_karp, get_seqlen_balanced_partitions]
_patches = Patches()


def install(mode: Mode = "best") -> None:
    """Puts these functions in the place of slime's, in every module that holds them.

    A slime that schedules on its rollout side has build_dp_schedule() and first_fit_pack(), an
    older one get_data_iterator(). ValueError if the functions of this slime take other arguments.
    A second call changes the mode.
    """
    require_mode(mode, "install", "best", "exact")
    balancing = import_module("slime.utils.seqlen_balancing")
    schedules = _module_or_none("slime.utils.dp_schedule")
    uninstall()
    try:
        _patches.install(balancing, _BALANCING, mode)
        if schedules is not None:
            _patches.install(balancing, [first_fit_pack], mode)
            _patches.install(schedules, [build_dp_schedule], mode)
        elif (data := _module_or_none("slime.backends.megatron_utils.data")) is not None:
            _patches.install(data, [get_data_iterator], mode)
    except ValueError:
        uninstall()
        raise


def uninstall() -> None:
    """Puts slime's own functions back; nothing if they are there."""
    _patches.take_back()


def _module_or_none(name: str) -> ModuleType | None:
    """None as well if what the module imports is missing: no one can call it then."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None

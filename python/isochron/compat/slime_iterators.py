"""slime's get_data_iterator() as of its pull request 1823: every rank schedules its own samples.

A rank counts the micro-batches that each of its steps needs, all ranks take the largest counts, and
every rank fills as many. "exact" counts by first fit and fills by Karmarkar-Karp, or by first fit
again where that breaks the cap. "best" leaves both to the planner, and the ranks agree that nothing
is wrong before they agree on counts: none waits for one that has raised.
"""

import logging
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from isochron import _planner
from isochron.compat.agreement import Agreement, maximum_over
from isochron.compat.modes import Mode, require_mode
from isochron.compat.partitions import get_seqlen_balanced_partitions, whole_costs
from isochron.compat.slime_flops import costs_of

Bins = list[list[int]]

_logger = logging.getLogger(__name__)


class DataIterator:
    """Micro-batches of a rank's samples: runs of a fixed size, or those of given indices."""

    def __init__(
        self,
        rollout_data: Any,
        micro_batch_size: int | None = None,
        micro_batch_indices: Bins | None = None,
    ) -> None:
        assert micro_batch_size is None or micro_batch_indices is None
        self.rollout_data = rollout_data
        self.micro_batch_size = micro_batch_size
        self.micro_batch_indices = micro_batch_indices
        self.offset = 0  # in micro-batches if they have indices, else in samples

    def get_next(self, keys: Sequence[str]) -> dict[str, Any]:
        """What the samples of the next micro-batch have under each key; None where no one has."""
        batch = {key: self._rows(self.rollout_data.get(key)) for key in keys}
        self.offset += 1 if self.micro_batch_size is None else self.micro_batch_size
        return batch

    def reset(self) -> "DataIterator":
        """Back to the first micro-batch."""
        self.offset = 0
        return self

    def _rows(self, values: Any) -> Any:
        if values is None:
            return None
        if self.micro_batch_indices is not None:
            return [values[sample] for sample in self.micro_batch_indices[self.offset]]
        assert self.micro_batch_size is not None
        end = self.offset + self.micro_batch_size
        assert end <= len(values), (
            f"offset: {self.offset}, micro_batch_size: {self.micro_batch_size}, "
            f"len(vals): {len(values)}"
        )
        return values[self.offset : end]


def get_data_iterator(
    args: Any, model: Any, rollout_data: Any, *, mode: Mode = "best"
) -> tuple[list[DataIterator], list[int]]:
    """An iterator for each virtual stage, and the number of micro-batches of each step.

    The cap is max_tokens_per_gpu on each context-parallel rank. "best": only a sample that is alone
    exceeds it, no micro-batch is empty, the costliest of a step come first. "exact": a sample above
    it is an AssertionError, and micro-batches may be empty. Megatron's parallel state says what the
    ranks are; steps of fixed micro-batches are the same in both modes.
    """
    require_mode(mode, "get_data_iterator", "best", "exact")
    ranks = _ranks_of(model)
    if not args.use_dynamic_batch_size:
        steps = _steps_of(args, rollout_data, ranks)
        counts = [steps.size // args.micro_batch_size] * len(steps.lengths)
        return ranks.iterators(rollout_data, args.micro_batch_size, None), counts
    fill = _best_bins if mode == "best" else _exact_bins
    bins_of_step, size = fill(args, rollout_data, ranks)
    indices = [
        [step * size + position for position in positions]
        for step, bins in enumerate(bins_of_step)
        for positions in bins
    ]
    return ranks.iterators(rollout_data, None, indices), [len(bins) for bins in bins_of_step]


@dataclass(frozen=True)
class _Ranks:
    dp_size: int
    cp_size: int
    vpp_size: int
    group: int  # the number of micro-batches is a multiple of it
    agree: Agreement

    def cap(self, args: Any) -> int:
        assert args.max_tokens_per_gpu is not None
        return args.max_tokens_per_gpu * self.cp_size

    def aligned(self, counts: list[int]) -> list[int]:
        return [-(count // -self.group) * self.group for count in counts]

    def iterators(self, rollout_data: Any, size: int | None, indices: Any) -> list[DataIterator]:
        return [DataIterator(rollout_data, size, indices) for _ in range(self.vpp_size)]


def _ranks_of(model: Any) -> _Ranks:
    import torch
    from megatron.core import mpu

    vpp_size = mpu.get_virtual_pipeline_model_parallel_world_size() or 1
    group = 1
    if vpp_size > 1:
        from megatron.core.utils import get_model_config

        group = get_model_config(model[0]).microbatch_group_size_per_vp_stage
    return _Ranks(
        dp_size=mpu.get_data_parallel_world_size(with_context_parallel=False),
        cp_size=mpu.get_context_parallel_world_size(),
        vpp_size=vpp_size,
        group=group,
        agree=maximum_over(mpu.get_data_parallel_group(), torch.cuda.current_device),
    )


@dataclass(frozen=True)
class _Steps:
    lengths: list[list[int]]  # of the samples of each whole step
    size: int  # samples of a step
    num_samples: int

    def require_all_samples(self) -> None:
        assert len(self.lengths) * self.size == self.num_samples, (
            f"{self.num_samples} samples of a rank fill no whole number of steps of {self.size}"
        )


def _steps_of(args: Any, rollout_data: Any, ranks: _Ranks) -> _Steps:
    lengths = rollout_data["total_lengths"]
    global_batch_size = rollout_data.get("dynamic_global_batch_size", args.global_batch_size)
    size = global_batch_size // ranks.dp_size
    num_steps = len(lengths) // size
    if global_batch_size != args.global_batch_size:
        _logger.info(
            "global batches of %d samples instead of %d: %d steps for %d samples of this rank",
            global_batch_size,
            args.global_batch_size,
            num_steps,
            len(lengths),
        )
    steps = [list(lengths[step * size : (step + 1) * size]) for step in range(num_steps)]
    return _Steps(steps, size, len(lengths))


def _exact_bins(args: Any, rollout_data: Any, ranks: _Ranks) -> tuple[list[Bins], int]:
    """The micro-batches of each step as positions in it, and the size of a step."""
    steps, cap = _steps_of(args, rollout_data, ranks), ranks.cap(args)
    needed = [_planner.slime_min_microbatches(lengths, cap) for lengths in steps.lengths]
    counts = ranks.aligned(ranks.agree(needed))
    bins_of_step = []
    for step, (lengths, count) in enumerate(zip(steps.lengths, counts, strict=True)):
        bins = get_seqlen_balanced_partitions(lengths, count, False, mode="exact")
        most = max(sum(lengths[position] for position in positions) for positions in bins)
        if most > cap:
            _logger.warning(
                "step %d: a balanced micro-batch has %d tokens, above the cap of %d; "
                "its samples go by first fit",
                step,
                most,
                cap,
            )
            bins = _planner.slime_capped_partitions(lengths, count, cap)
        bins_of_step.append(bins)
    steps.require_all_samples()
    return bins_of_step, steps.size


@dataclass(frozen=True)
class _Extent:
    """What has to be the same on all ranks: the largest of each field over them."""

    failed: int = 0  # 1: a rank could not count what it needs
    num_samples: int = -(2**62)
    negative_num_samples: int = -(2**62)
    size: int = -(2**62)  # of a step
    negative_size: int = -(2**62)


def _best_bins(args: Any, rollout_data: Any, ranks: _Ranks) -> tuple[list[Bins], int]:
    """As _exact_bins()."""
    failure: Exception | None = None
    extent = _Extent(failed=1)
    try:
        steps, cap = _steps_of(args, rollout_data, ranks), ranks.cap(args)
        lengths_of_step = [[max(1, int(n)) for n in lengths] for lengths in steps.lengths]
        needed = [
            len(_planner.pack(lengths, capacity=cap, oversize="alone").microbatches)
            for lengths in lengths_of_step
        ]
        costs_of_step = [whole_costs(costs_of(lengths, args)) for lengths in lengths_of_step]
        num_samples, size = steps.num_samples, steps.size
        extent = _Extent(0, num_samples, -num_samples, size, -size)
    except Exception as error:  # the others have to know before it goes up
        failure = error
    agreed = _Extent(*ranks.agree(list(astuple(extent))))
    if failure is not None:
        raise failure
    _require_same(agreed)
    steps.require_all_samples()
    counts = ranks.aligned(ranks.agree(needed)) if needed else []
    for count in counts:
        assert count <= size, f"number of items:[{size}] < k_partitions:[{count}]"
    questions = zip(lengths_of_step, costs_of_step, counts, strict=True)
    return [_packed(lengths, costs, cap, count) for lengths, costs, count in questions], size


def _require_same(agreed: _Extent) -> None:
    if agreed.failed:
        raise RuntimeError(
            "[get_data_iterator] another data-parallel rank could not count its micro-batches; "
            "it says why"
        )
    for what, most, fewest in (
        ("samples", agreed.num_samples, -agreed.negative_num_samples),
        ("samples of a step", agreed.size, -agreed.negative_size),
    ):
        if most != fewest:
            raise ValueError(
                f"[get_data_iterator] data-parallel ranks have {fewest} to {most} {what}, "
                f"must have equally many"
            )


def _packed(lengths: list[int], costs: Any, cap: int, count: int) -> Bins:
    """Samples in exactly so many micro-batches, in descending order of costs."""
    packing = _planner.pack(lengths, costs=costs, capacity=cap, count=count, oversize="alone")
    totals = costs.tolist()
    return sorted(
        packing.microbatches,
        key=lambda positions: (sum(totals[position] for position in positions), positions),
        reverse=True,
    )

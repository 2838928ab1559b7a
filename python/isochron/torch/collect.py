"""Results of all ranks on every rank, in the order of the batch.

The plan tells every rank how much each of the others holds, so the tensors travel padded to the
largest and nothing has to be agreed on first.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from isochron import StepPlan
from isochron.layouts import padded_length
from isochron.torch.gather import all_gather, device_of
from isochron.torch.jagged import described
from isochron.torch.microbatch import Microbatch, microbatches_of_ranks
from isochron.torch.pack import join_shards
from isochron.torch.restore import restore_order

_DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)
_MAX_DIMS = 8


def collect_tokens(
    plan: StepPlan, outputs: Sequence[Tensor], group: dist.ProcessGroup | None = None
) -> Tensor:
    """One number (or row of numbers) for each token of the batch, jagged, in its order.

    `outputs[i]` is what this rank has for the T tokens of its shard of the i-th of its
    micro-batches; that of a placeholder is not looked at. Every token travels once and context
    groups are not needed. All ranks of `group` (None: of the job) call it, rank r of the plan as
    rank r of the group; without gradients. A row that the plan dropped is empty.
    """
    received = _exchange("collect_tokens", plan, outputs, _num_tokens, group)
    joined = [
        [
            join_shards([received[member, part.slot] for member in part.ranks], part)
            if part.is_leader
            else received[rank, part.slot]
            for part in microbatches
        ]
        for rank, microbatches in enumerate(microbatches_of_ranks(plan))
    ]
    return restore_order(plan, joined)


def collect_rows(
    plan: StepPlan, outputs: Sequence[Tensor], group: dist.ProcessGroup | None = None
) -> Tensor:
    """One entry for each row of the batch, in its order; 0 for a row that the plan dropped.

    `outputs[i]` has one for each sequence of the i-th of this rank's micro-batches. Of a context
    group the leader's counts. All ranks of `group` call it as they do `collect_tokens`.
    """
    received = _exchange("collect_rows", plan, outputs, _num_led_rows, group)
    return restore_order(
        plan,
        [
            [received[rank, part.slot] for part in microbatches]
            for rank, microbatches in enumerate(microbatches_of_ranks(plan))
        ],
    )


def _num_tokens(microbatch: Microbatch) -> int:
    ranks, tensor_parallel = microbatch.context_size, microbatch.tensor_parallel
    padded = sum(padded_length(n, ranks, tensor_parallel) for n in microbatch.lengths)
    return padded // ranks


def _num_led_rows(microbatch: Microbatch) -> int:
    return len(microbatch.sequences) if microbatch.is_leader else 0


def _exchange(
    where: str,
    plan: StepPlan,
    outputs: Sequence[Tensor],
    num_sent: Callable[[Microbatch], int],
    group: dist.ProcessGroup | None,
) -> dict[tuple[int, int], Tensor]:
    """What each (rank, slot) has, `num_sent` entries of it."""
    if dist.get_world_size(group) != plan.ranks:
        raise ValueError(
            f"[{where}] the group has {dist.get_world_size(group)} ranks, must have {plan.ranks}"
        )
    own = dist.get_rank(group)
    sizes = [
        {part.slot: num_sent(part) for part in microbatches}
        for microbatches in microbatches_of_ranks(plan)
    ]
    totals = [sum(sizes_of_rank.values()) for sizes_of_rank in sizes]
    mine = _own_entries(where, outputs, list(sizes[own].values()))
    if not all(totals):
        sender = next(rank for rank, total in enumerate(totals) if total)
        example = _share_example(mine[0] if own == sender else None, sender, group)
        mine = mine or [example]
    sent = torch.cat(mine)
    padding = sent.new_zeros((max(totals) - len(sent), *sent.shape[1:]))
    received = all_gather(torch.cat([sent, padding]), group)
    return {
        (rank, slot): part
        for rank, sizes_of_rank in enumerate(sizes)
        for slot, part in zip(
            sizes_of_rank, _cut(received[rank], sizes_of_rank.values()), strict=True
        )
    }


def _cut(tensor: Tensor, sizes: Iterable[int]) -> list[Tensor]:
    """Pieces of those sizes, one behind the other; what is left is padding."""
    ends = list(itertools.accumulate(sizes, initial=0))
    return [tensor[start:end] for start, end in itertools.pairwise(ends)]


def _own_entries(where: str, outputs: Sequence[Tensor], sizes: Sequence[int]) -> list[Tensor]:
    """The outputs that this rank sends, each checked against its size."""
    if len(outputs) != len(sizes):
        raise ValueError(
            f"[{where}] there are {len(outputs)} outputs, must be {len(sizes)}: one for each "
            "of the rank's micro-batches"
        )
    for i, (output, size) in enumerate(zip(outputs, sizes, strict=True)):
        if size and (output.is_nested or output.dim() == 0 or len(output) != size):
            raise ValueError(
                f"[{where}] outputs[{i}] is {described(output)}, must begin with {size} entries"
            )
    return [output.detach() for output, size in zip(outputs, sizes, strict=True) if size]


def _share_example(example: Tensor | None, sender: int, group: dist.ProcessGroup | None) -> Tensor:
    """An empty tensor like that of `sender`, for ranks that have nothing of their own."""
    header = [0] * (3 + _MAX_DIMS)  # dtype, on a GPU, dims behind the first, their sizes
    if example is not None:
        sizes = example.shape[1:]
        header[:3] = [_DTYPES.index(example.dtype), int(example.is_cuda), len(sizes)]
        header[3 : 3 + len(sizes)] = sizes
    shared = torch.tensor(header, device=device_of(group))
    dist.broadcast(shared, group=group, group_src=sender)
    dtype, is_cuda, dims, *sizes_behind = shared.tolist()
    return torch.empty(
        (0, *sizes_behind[:dims]), dtype=_DTYPES[dtype], device="cuda" if is_cuda else "cpu"
    )

"""The packed (THD) layout of a micro-batch as tensors."""

import dataclasses

import torch
from torch import Tensor

from isochron.layouts import packed_layout
from isochron.torch.microbatch import Microbatch


@dataclasses.dataclass(frozen=True)
class Shard:
    """The T tokens of a micro-batch that one rank holds, its part of each sequence in turn.

    In a context group of c > 1 ranks each sequence is padded to a multiple of
    2 * c * tensor_parallel and cut into 2c chunks; rank r holds chunk r and behind it chunk
    2c-1-r (zigzag: even causal work). On one rank it is padded to a multiple of tensor_parallel.
    """

    microbatch: Microbatch
    cu_seqlens: Tensor  # int32: starts of the padded sequences in the group, and the end of the
    # last; the rank holds 1/c of each: its part of sequence i starts at cu_seqlens[i] / c
    max_seqlen: int  # tokens of the longest padded sequence
    positions: Tensor  # int64 [T]: index of the token in its sequence; 0 for padding
    source: Tensor  # int64 [T], on the host: which token of the group's sequences, one behind the
    # other, it is; -1 for padding
    target: Tensor  # int64 [T], on the host: the next token of the same sequence, also where
    # another rank holds it; -1 for a last token and for padding


def shard_of(
    microbatch: Microbatch,
    *,
    device: torch.device | str = "cpu",
    context_rank: int | None = None,
) -> Shard:
    """The shard of the micro-batch's own rank, or of the one at `context_rank` of its group."""
    layout = packed_layout(
        microbatch.lengths,
        context_size=microbatch.context_size,
        context_rank=microbatch.context_rank if context_rank is None else context_rank,
        tensor_parallel=microbatch.tensor_parallel,
    )
    cu_seqlens = torch.tensor(layout.cu_seqlens)
    return Shard(
        microbatch=microbatch,
        cu_seqlens=cu_seqlens.to(device),
        max_seqlen=max(cu_seqlens.diff().tolist(), default=0),
        positions=torch.tensor(layout.positions, dtype=torch.int64, device=device),
        source=torch.tensor(layout.source),
        target=torch.tensor(layout.target),
    )

"""Tokens of all ranks of a context group, with gradients."""

from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

Gradient = Literal["own", "sum"]


def gather_shards(
    packed: Tensor, group: dist.ProcessGroup, *, gradient: Gradient = "own"
) -> Tensor:
    """The packed tokens [T, ..] of every rank of the group, [c, T, ..], in the order of its ranks.

    All members call it with the same shape and dtype, which is kept. The gradient that flows back
    to the own shard is one of two:

    - `own`: what this rank's loss says about its own shard; the shards of others are constants.
      Backward communicates nothing. Right where every member evaluates the same loss of the
      whole sequences: the gradients of all members then add up to that of this loss.
    - `sum`: what the losses of all members say about it, added up, as an all-gather has it.
      Backward is a reduce-scatter, in which all members take part. Right where each member
      evaluates a part of its own, as in attention over gathered keys and values.
    """
    if gradient not in ("own", "sum"):
        raise ValueError(f"[gather_shards] gradient is {gradient!r}, must be 'own' or 'sum'")
    gathered: Tensor = _GatherShards.apply(packed, group, gradient)  # type: ignore[no-untyped-call]
    return gathered


def all_gather(tensor: Tensor, group: dist.ProcessGroup | None) -> Tensor:
    """Tensors of one shape from every rank of the group, stacked; any dtype, no gradient.

    They travel as bytes, because not every backend knows every dtype.
    """
    sent = tensor.detach().contiguous().flatten().view(torch.uint8)
    received = [torch.empty_like(sent) for _ in range(dist.get_world_size(group))]
    dist.all_gather(received, sent, group=group)
    return torch.stack([part.view(tensor.dtype).view(tensor.shape) for part in received])


def device_of(group: dist.ProcessGroup | None) -> torch.device:
    """Where a group wants small tensors to be."""
    return torch.device("cuda" if dist.get_backend(group) == "nccl" else "cpu")


class _GatherShards(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, packed: Tensor, group: dist.ProcessGroup, gradient: Gradient) -> Tensor:
        ctx.group, ctx.gradient = group, gradient
        return all_gather(packed, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if ctx.gradient == "own":
            return grad[dist.get_rank(ctx.group)], None, None
        total = grad.new_empty(grad.shape[1:])
        dist.reduce_scatter(total, list(grad.contiguous().unbind()), group=ctx.group)
        return total, None, None

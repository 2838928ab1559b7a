"""How the ranks of a data-parallel group of verl agree on numbers."""

from collections.abc import Callable
from typing import Any

# The largest of each number over the ranks.
Agreement = Callable[[list[int]], list[int]]


def agreement_of(dp_group: Any) -> Agreement | None:
    """An all-reduce over the group; none where verl has none, and a rank decides for itself."""
    from torch import distributed

    if dp_group is None or not distributed.is_initialized():
        return None

    def all_reduce_max(numbers: list[int]) -> list[int]:
        import torch

        tensor = torch.tensor(numbers, dtype=torch.long, device=_device_of(dp_group))
        distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX, group=dp_group)
        return tensor.tolist()

    return all_reduce_max


def _device_of(dp_group: Any) -> str:
    """Where the group's numbers have to lie: on the host if it can take them from there."""
    from torch import distributed

    if "gloo" in distributed.get_backend(dp_group):
        return "cpu"
    from verl.utils.device import get_device_name

    return get_device_name()

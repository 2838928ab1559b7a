"""How the ranks of a data-parallel group agree on numbers."""

from collections.abc import Callable
from typing import Any

# The largest of each number over the ranks.
Agreement = Callable[[list[int]], list[int]]


def maximum_over(group: Any, accelerator: Callable[[], Any]) -> Agreement:
    """An all-reduce over the process group, of numbers on the host if it can take them from there.

    Else they lie on the device that `accelerator` names.
    """

    def all_reduce_max(numbers: list[int]) -> list[int]:
        import torch
        from torch import distributed

        device = "cpu" if "gloo" in distributed.get_backend(group) else accelerator()
        tensor = torch.tensor(numbers, dtype=torch.long, device=device)
        distributed.all_reduce(tensor, op=distributed.ReduceOp.MAX, group=group)
        return tensor.tolist()

    return all_reduce_max

"""Batches, plans and processes to test with."""

import datetime
import multiprocessing
import os
import pathlib
import random
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing

import isochron
from isochron.torch import Microbatch, microbatches_of

torch.set_num_threads(1)  # tensors are tiny, and the machine is shared

MIXED_LENGTHS = [5, 9, 3, 40, 7, 1, 17, 2, 28, 1]


def plan_of(lengths: Sequence[int], ranks: int, capacity: int, **options: object):
    """A plan that exists."""
    plan = isochron.plan_step(lengths, ranks=ranks, capacity=capacity, **options)
    assert plan.status in ("optimal", "feasible"), plan.reason
    return plan


def random_lengths(seed: int, count: int, longest: int = 40) -> list[int]:
    numbers = random.Random(seed)
    return [numbers.choice([1, 2, numbers.randint(1, longest)]) for _ in range(count)]


def jagged_rows(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Made by torch itself, whatever the package does."""
    return torch.nested.as_nested_tensor(list(rows), layout=torch.jagged)


def random_field(
    seed: int, lengths: Sequence[int], shape: Sequence[int] = (), dtype: torch.dtype = torch.float64
) -> torch.Tensor:
    """Random numbers for each token, none of them 0."""
    generator = torch.Generator().manual_seed(seed)
    numbers = [torch.randint(1, 100, (n, *shape), generator=generator) for n in lengths]
    return jagged_rows([row.to(dtype) for row in numbers])


def assert_rows_equal(actual: torch.Tensor, expected: Sequence[torch.Tensor]) -> None:
    rows = actual.unbind()
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        torch.testing.assert_close(row, wanted, rtol=0, atol=0)


def message_of(call: Callable[[], object]) -> str:
    """The error that `call` raises."""
    try:
        call()
    except ValueError as error:
        return str(error)
    pytest.fail("no ValueError was raised")


def lone_microbatch(
    lengths: Sequence[int], context_size: int = 1, context_rank: int = 0, tensor_parallel: int = 1
) -> Microbatch:
    """All rows of a batch in one micro-batch."""
    return Microbatch(
        slot=0,
        rank=context_rank,
        ranks=tuple(range(context_size)),
        sequences=tuple(range(len(lengths))),
        lengths=tuple(lengths),
        num_rows=len(lengths),
        tensor_parallel=tensor_parallel,
    )


def all_microbatches(plan) -> list[list[Microbatch]]:
    return [microbatches_of(plan, rank) for rank in range(plan.ranks)]


def run_ranks(ranks: int, work: Callable[[int], None], folder: pathlib.Path) -> None:
    """Runs `work(rank)` in that many processes of one Gloo job."""
    multiprocessing.set_forkserver_preload(["isochron.torch"])  # with torch, imported once
    torch.multiprocessing.start_processes(
        _run_rank, (ranks, work, str(folder / "store")), nprocs=ranks, start_method="forkserver"
    )


def _run_rank(rank: int, ranks: int, work: Callable[[int], None], store: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=60),
    )
    try:
        work(rank)
    finally:
        dist.destroy_process_group()

"""Two real processes with a Gloo group between them, for a function that both run."""

import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch import distributed, multiprocessing

RANKS = 2
SECONDS = 300


def on_two_ranks(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What function(rank, *arguments) returns on each rank; a rank that hangs is an error."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    port = free_port()
    ranks = [
        context.Process(target=_run, args=(rank, port, answers, function, arguments), daemon=True)
        for rank in range(RANKS)
    ]
    try:
        for rank in ranks:
            rank.start()
        answer_of = dict(answers.get(timeout=SECONDS) for _ in ranks)
        return [answer_of[rank] for rank in range(RANKS)]
    finally:
        for rank in ranks:
            rank.join(timeout=10)
            rank.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _run(rank: int, port: int, answers: Any, function: Callable[..., Any], arguments: Any) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=RANKS,
        timeout=timedelta(seconds=60),
    )
    try:
        answers.put((rank, function(rank, *arguments)))
        distributed.barrier()
    finally:
        distributed.destroy_process_group()

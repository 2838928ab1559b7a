"""Other threads run while the planner works."""

import threading
import time
from collections.abc import Callable

import pytest

import isochron

LENGTHS = isochron.long_tailed_lengths(4096, 1)
MANY_LENGTHS = isochron.long_tailed_lengths(1_000_000, 1)

WORK: dict[str, Callable[[], object]] = {
    "balance": lambda: isochron.balance(MANY_LENGTHS, 1024),
    "pack": lambda: isochron.pack(LENGTHS, capacity=65536 * 2, max_work=300_000_000),
    "plan_step": lambda: isochron.plan_step(
        MANY_LENGTHS[:32_768], 2048, 16384, context="dynamic", sync="microbatch"
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_a_thread_makes_progress_during(name: str):
    # With the lock held no tick would fall between the begin and the end of a call.
    ticks: list[float] = []
    is_over = threading.Event()

    def tick() -> None:
        while not is_over.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        while not ticks:
            time.sleep(0.001)
        begin = time.monotonic()
        WORK[name]()
        end = time.monotonic()
    finally:
        is_over.set()
        thread.join()
    third = (end - begin) / 3  # input and output are made with the lock held
    inside = [moment for moment in ticks if begin + third < moment < end - third]
    assert len(inside) >= 3, f"{len(inside)} ticks in {end - begin:.3f} s"


def test_threads_plan_at_the_same_time():
    expected = isochron.plan_step(LENGTHS[:256], 16, 16384, context="dynamic").hash
    hashes: list[str] = []

    def plan() -> None:
        hashes.append(isochron.plan_step(LENGTHS[:256], 16, 16384, context="dynamic").hash)

    threads = [threading.Thread(target=plan) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hashes == [expected] * 8

"""Megatron's hybrid context parallelism with isochron's groups.

python examples/use_in_megatron.py
"""

from types import SimpleNamespace

from megatron.core.datasets import data_schedule

from isochron.compat import megatron as isochron_megatron

LENGTHS = [16000, 1000, 1000, 1000, 1000, 2000, 3000, 4000]


def schedule() -> list[list[list[int]]]:
    """What Megatron's data loader asks its scheduler for: samples of every group and rank."""
    ranks = SimpleNamespace(size=lambda: 6)
    scheduler = data_schedule.BalancedCPScheduler(4096, ranks)
    return scheduler.get_groups_and_subsamples(list(enumerate(LENGTHS)), config=None)[1]


def main() -> None:
    """6 ranks are no power of two."""
    try:
        schedule()
    except IndexError as error:
        print(f"megatron-core on 6 ranks: IndexError, {error}")

    isochron_megatron.install()
    for number, group in enumerate(schedule()):
        print(f"isochron, group {number}: {group}")
    isochron_megatron.uninstall()


if __name__ == "__main__":
    main()

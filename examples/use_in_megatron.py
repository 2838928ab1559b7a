"""Megatron's hybrid context parallelism with isochron's groups.

python examples/use_in_megatron.py
"""

from types import SimpleNamespace

from megatron.core.datasets import data_schedule

from isochron.compat import megatron as isochron_megatron

LENGTHS = [3000, 3000]


def schedule() -> list[list[list[int]]]:
    """What Megatron's data loader asks its scheduler for: samples of every group and rank."""
    ranks = SimpleNamespace(size=lambda: 14)
    scheduler = data_schedule.BalancedCPScheduler(4096, ranks)
    return scheduler.get_groups_and_subsamples(list(enumerate(LENGTHS)), config=None)[1]


def main() -> None:
    """14 ranks are no power of two."""
    try:
        schedule()
    except IndexError as error:
        print(f"megatron-core: IndexError, {error}")

    isochron_megatron.install()
    for group in schedule():
        print(f"isochron: {group}")
    isochron_megatron.uninstall()


if __name__ == "__main__":
    main()

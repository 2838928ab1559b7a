"""Whether the ranks of a data-parallel group of verl agree on numbers."""

from typing import Any

from isochron.compat.agreement import Agreement, maximum_over


def agreement_of(dp_group: Any) -> Agreement | None:
    """An all-reduce over the group; none where verl has none, and a rank decides for itself."""
    from torch import distributed

    if dp_group is None or not distributed.is_initialized():
        return None
    return maximum_over(dp_group, _device_name)


def _device_name() -> str:
    from verl.utils.device import get_device_name

    return get_device_name()

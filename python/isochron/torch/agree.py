"""Every rank plans for itself; this makes sure that all planned the same."""

import torch
import torch.distributed as dist

from isochron import StepPlan
from isochron.torch.gather import all_gather, device_of


def require_same_plan(plan: StepPlan, group: dist.ProcessGroup | None = None) -> None:
    """Raises RuntimeError on every rank of `group` (None: of the job) if their plans differ.

    Eight bytes a rank, once a step, before its first operation: ranks with different plans would
    wait for each other forever.
    """
    own = torch.tensor(list(bytes.fromhex(plan.hash)), dtype=torch.uint8, device=device_of(group))
    hashes = [bytes(part).hex() for part in all_gather(own, group).tolist()]
    for rank, other in enumerate(hashes):
        if other != hashes[0]:
            raise RuntimeError(
                f"[require_same_plan] rank {rank} has plan {other}, rank 0 has {hashes[0]}: all "
                "must plan from the same lengths and options"
            )

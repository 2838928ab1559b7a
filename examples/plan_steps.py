"""Plans the steps of a data set and shows what a rank runs: plan_steps.py

What a training loop does with the planner when it keeps its own engine: every rank plans the whole
step for itself, compares the hash with the others, and runs its groups in order.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import isochron

RANKS = 8
CAPACITY = 16384  # tokens that a rank may hold at a time
BATCH = 64  # sequences of a step


def batches(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The lengths of one step after the other."""
    for first in range(0, len(lengths), BATCH):
        yield lengths[first : first + BATCH]


def describe(group: isochron.ContextGroup, lengths: NDArray[np.int64]) -> str:
    """What a group runs, in words."""
    tokens = int(lengths[group.sequences].sum())
    return f"{len(group.sequences)} sequences, {tokens} tokens on ranks {group.ranks}"


def main() -> None:
    """Plans four steps; rank 0 speaks for all."""
    cost = isochron.analytic_cost(
        isochron.model_preset("qwen3-8b"), isochron.hardware_preset("h100"), recompute="selective"
    )
    lengths = isochron.long_tailed_lengths(4 * BATCH)
    for step, batch in enumerate(batches(lengths)):
        plan = isochron.plan_step(batch, RANKS, CAPACITY, cost=cost, context="dynamic")
        if plan.status == "infeasible":
            raise SystemExit(plan.reason)
        over = plan.predicted_step_ns / plan.lower_bound_ns - 1
        print(
            f"step {step}: {plan.predicted_step_ns / 1e6:.1f} ms, "
            f"at most {over:.2%} above the best, plan {plan.hash}"
        )
        for group in plan.groups_of_rank(0):
            print("  rank 0:", describe(group, batch))


if __name__ == "__main__":
    main()

"""What a plan gives one rank to run, micro-batch by micro-batch."""

import dataclasses

from isochron import StepPlan

PADDING_ROW_LENGTH = 2  # tokens of the synthetic rows that a plan counts as `padding_rows`


@dataclasses.dataclass(frozen=True)
class Microbatch:
    """What a rank runs in one slot, together with the other ranks of its context group."""

    slot: int
    rank: int
    ranks: tuple[int, ...]  # of the context group, ascending
    sequences: tuple[int, ...]  # rows of the batch; ids from `num_rows` on are padding rows
    lengths: tuple[int, ...]  # tokens of each sequence
    num_rows: int  # of the whole batch, without padding rows
    tensor_parallel: int = 1

    @property
    def context_size(self) -> int:
        """Ranks of the context group: each holds a shard of every sequence."""
        return len(self.ranks)

    @property
    def context_rank(self) -> int:
        """The place of the rank in its context group."""
        return self.ranks.index(self.rank)

    @property
    def is_leader(self) -> bool:
        """Whether this rank speaks for its group, so that each sequence is counted once."""
        return self.rank == self.ranks[0]

    @property
    def is_placeholder(self) -> bool:
        """Whether there is nothing to run: the slot exists because counts have to be equal."""
        return not self.sequences

    def filled(self) -> "Microbatch":
        """Itself, or for a placeholder a micro-batch of one padding row.

        For models that communicate in every forward pass (FSDP, expert parallelism) and therefore
        have to run something in every slot.
        """
        if not self.is_placeholder:
            return self
        return dataclasses.replace(self, sequences=(self.num_rows,), lengths=(PADDING_ROW_LENGTH,))


def microbatches_of(plan: StepPlan, rank: int) -> list[Microbatch]:
    """The micro-batches of `rank`, in the order in which it runs them.

    A slot in which the rank idles is left out, a placeholder is not. Raises ValueError if there is
    no such rank or no plan.
    """
    if not 0 <= rank < plan.ranks:
        raise ValueError(f"[microbatches_of] rank is {rank}, must be from 0 to {plan.ranks - 1}")
    return microbatches_of_ranks(plan)[rank]


def microbatches_of_ranks(plan: StepPlan) -> list[list[Microbatch]]:
    """The micro-batches of every rank, each in the order in which it runs them."""
    if plan.status not in ("optimal", "feasible"):
        raise ValueError(f"[microbatches_of] the plan is {plan.status}: {plan.reason}")
    num_rows = len(plan.lengths)
    lengths = [*plan.lengths.tolist(), *[PADDING_ROW_LENGTH] * plan.padding_rows]
    tensor_parallel = plan.options["tensor_parallel"]
    result: list[list[Microbatch]] = [[] for _ in range(plan.ranks)]
    for slot, groups in enumerate(plan.microbatches):
        for group in groups:
            ranks, sequences = tuple(group.ranks), tuple(group.sequences)
            lengths_of_group = tuple(lengths[sequence] for sequence in sequences)
            for rank in ranks:
                result[rank].append(
                    Microbatch(
                        slot, rank, ranks, sequences, lengths_of_group, num_rows, tensor_parallel
                    )
                )
    return result


def rows_of(plan: StepPlan, rank: int) -> list[int]:
    """The rows of the batch that `rank` needs, ascending; what a data loader has to read for it."""
    needed = {row for microbatch in microbatches_of(plan, rank) for row in microbatch.sequences}
    return sorted(row for row in needed if row < len(plan.lengths))

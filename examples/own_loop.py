"""A training loop of your own by isochron's plans, on two processes: own_loop.py [STEPS]

A tiny transformer learns to count. Its rows have a long tail of lengths, and the longest do not fit
one rank: the plan lets both ranks share them, each with a part of every sequence. Everything else
a loop needs is here: packed micro-batches, attention across the ranks of a group, one denominator
for the loss, gradients that are summed once a step, log-probabilities in the order of the batch.

At the end the same steps run in one process with the batch as it comes. In float64 the losses have
to agree to rounding, or this fails.
"""

import os
import random
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F  # noqa: N812

import isochron
from isochron.torch import (
    ContextGroups,
    collect_tokens,
    last_tokens,
    microbatches_of,
    pack,
    pack_next,
    require_same_plan,
    shard_of,
    shift_right,
    token_weights,
    unpack,
)

RANKS = 2
CAPACITY = 64  # tokens that a rank holds at a time
VOCABULARY = 32
WIDTH = 16
ROWS = 24  # of a batch
LONGEST = RANKS * CAPACITY  # what all ranks together can hold
PROMPT = 2  # tokens of a row that are not trained


class TinyModel(torch.nn.Module):
    """One layer of attention over the T tokens of a shard, and the keys of its whole group."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.position = torch.nn.Embedding(LONGEST, WIDTH)
        self.query_key_value = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids, shard, group):
        """Logits of the T tokens."""
        x = self.embedding(input_ids) + self.position(shard.positions)
        query, key, value = self.query_key_value(x).chunk(3, dim=1)
        return self.head(x + attention(query, key, value, shard, group))


def attention(query, key, value, shard, group):
    """Causal attention of the T queries of a shard over whole sequences.

    Keys and values come from all ranks of the group. What each rank does with them is different, so
    their gradients are those of all ranks, added up.
    """
    whole = unpack({"key": key, "value": value}, shard, group, gradient="sum")
    size = shard.microbatch.context_size
    starts = (shard.cu_seqlens // size).tolist()
    outputs = []
    for i, (keys, values) in enumerate(
        zip(whole["key"].unbind(), whole["value"].unbind(), strict=True)
    ):
        held = slice(starts[i], starts[i + 1])
        is_visible = shard.positions[held, None] >= torch.arange(len(keys))
        outputs.append(
            F.scaled_dot_product_attention(query[held], keys, values, attn_mask=is_visible)
        )
    return torch.cat(outputs)


def make_batch(step):
    """Rows that count up from somewhere; loss on all but the first two tokens of each."""
    numbers = random.Random(step)
    lengths = [min(int(numbers.lognormvariate(3, 0.9)) + 3, LONGEST) for _ in range(ROWS)]
    rows = [(torch.arange(n) + numbers.randrange(VOCABULARY)) % VOCABULARY for n in lengths]
    masks = [torch.arange(n) >= PROMPT for n in lengths]
    return {
        "input_ids": torch.nested.as_nested_tensor(rows, layout=torch.jagged),
        "loss_mask": torch.nested.as_nested_tensor(masks, layout=torch.jagged),
    }


def make_plan(batch, ranks, capacity, balance):
    """The same on every rank, without talking: it follows from the lengths alone."""
    lengths = batch["input_ids"].offsets().diff()
    plan = isochron.plan_step(
        lengths, ranks=ranks, capacity=capacity, context="dynamic", balance=balance
    )
    if not plan.microbatches:
        sys.exit(f"isochron: [own_loop] the plan is {plan.status}: {plan.reason}")
    return plan


def train_step(model, optimizer, batch, plan, rank, groups):
    """Runs this rank's part of a step. Returns the loss of the batch and its log-probabilities."""
    require_same_plan(plan)
    groups.prepare(plan)
    weights = token_weights(plan, batch["loss_mask"], dtype=torch.float64)
    loss = torch.zeros((), dtype=torch.float64)
    log_probs = []
    optimizer.zero_grad(set_to_none=False)
    for microbatch in microbatches_of(plan, rank):
        shard = shard_of(microbatch)
        input_ids = pack(batch["input_ids"], shard)
        labels = pack_next(batch["input_ids"], shard, fill=-100)
        logits = model(input_ids, shard, groups.of(microbatch))
        losses = F.cross_entropy(logits, labels, reduction="none", ignore_index=-100)
        loss_of_shard = (pack_next(weights, shard) * losses).sum()
        loss_of_shard.backward()
        loss += loss_of_shard.detach()
        log_probs.append(-losses.detach())

    # Weights have the denominator of the whole batch: ranks add up, also one that ran nothing.
    for tensor in (loss, *(parameter.grad for parameter in model.parameters())):
        dist.all_reduce(tensor)
    optimizer.step()
    return float(loss), collect_tokens(plan, log_probs)


def train(steps, rank, ranks, capacity, balance):
    """Trains from a fixed start. Returns the losses and the last log-probabilities."""
    torch.manual_seed(0)
    model = TinyModel().double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    groups = ContextGroups()
    losses = []
    for step in range(steps):
        batch = make_batch(step)
        plan = make_plan(batch, ranks, capacity, balance)
        loss, log_probs = train_step(model, optimizer, batch, plan, rank, groups)
        losses.append(loss)
        if rank == 0 and ranks > 1 and step == 0:
            show(plan)
    groups.close()
    answers = last_tokens(shift_right(log_probs), log_probs.offsets().diff() - PROMPT)
    return losses, answers


def show(plan):
    print(f"{len(plan.lengths)} rows, {sum(plan.lengths)} tokens, the longest {max(plan.lengths)}:")
    for slot, groups in enumerate(plan.microbatches):
        parts = [f"ranks {group.ranks} run rows {group.sequences}" for group in groups]
        print(f"  slot {slot}: {', '.join(parts)}")


def run(rank, ranks, steps, capacity, balance, folder):
    """What each process does; rank 0 keeps the result."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store_{ranks}", rank=rank, world_size=ranks
    )
    result = train(steps, rank, ranks, capacity, balance)
    if rank == 0:
        torch.save(
            {"losses": result[0], "answers": list(result[1].unbind())}, f"{folder}/{ranks}.pt"
        )
    dist.destroy_process_group()


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, (RANKS, steps, CAPACITY, True, folder), nprocs=RANKS)
        run(0, 1, steps, ROWS * LONGEST, False, folder)
        planned, alone = (torch.load(f"{folder}/{ranks}.pt") for ranks in (RANKS, 1))
    for step in sorted({*range(0, steps, 10), steps - 1}):
        print(f"step {step:2}: loss {planned['losses'][step]:.6f} on {RANKS} ranks, "
              f"{alone['losses'][step]:.6f} on one as the data comes")  # fmt: skip
    difference = max(abs(a - b) for a, b in zip(planned["losses"], alone["losses"], strict=True))
    log_prob_difference = max(
        float((a - b).abs().max())
        for a, b in zip(planned["answers"], alone["answers"], strict=True)
    )
    if not max(difference, log_prob_difference) < 1e-9:
        sys.exit(f"isochron: [own_loop] losses differ by {difference}, log-probabilities by "
                 f"{log_prob_difference}, must be below 1e-9")  # fmt: skip
    print("Losses and log-probabilities agree to rounding.")


if __name__ == "__main__":
    main()

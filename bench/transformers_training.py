"""Trains a model with transformers and torch as their users would: the rival of compare_training.py.

    transformers_training.py QUESTION.json      (under torchrun for several ranks)

QUESTION has model, rows (JSONL of tokenised rows), steps, lr, threads, and `layout`:
  packed   micro-batches as lists of rows per rank; their tokens one behind the other, with
           position_ids that restart, which transformers turns into block-diagonal attention
  padded   rows of a rank dealt in order, `padded` of them at a time, padded to the longest

Several ranks train under DistributedDataParallel. Prints {"loss": [..], "seconds": [..]} per step.
"""

import json
import os
import sys
import time

import torch
import torch.distributed
from transformers import AutoModelForCausalLM


def packed_input(rows):
    ids = [token for row in rows for token in row["input_ids"]]
    positions = [position for row in rows for position in range(len(row["input_ids"]))]
    labels = [label for row in rows for label in [*row["input_ids"][1:], -100]]
    return {"input_ids": torch.tensor([ids]), "position_ids": torch.tensor([positions])}, labels


def padded_input(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    pad = [longest - len(row["input_ids"]) for row in rows]
    ids = [row["input_ids"] + [0] * more for row, more in zip(rows, pad)]
    mask = [[1] * (longest - more) + [0] * more for more in pad]
    labels = [[*row["input_ids"][1:], -100] + [-100] * more for row, more in zip(rows, pad)]
    flat = [label for line in labels for label in line]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}, flat


def main():
    with open(sys.argv[1]) as file:
        question = json.load(file)
    torch.set_num_threads(question["threads"])
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    with open(question["rows"]) as file:
        rows = [json.loads(line) for line in file]
    num_trained = sum(len(row["input_ids"]) - 1 for row in rows)
    model = AutoModelForCausalLM.from_pretrained(question["model"], attn_implementation="sdpa")
    if size > 1:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=question["lr"], weight_decay=0.01,
                                  fused=True)  # fmt: skip

    if question["layout"] == "packed":
        inputs = [packed_input([rows[i] for i in batch]) for batch in question["packed"][rank]]
    else:
        mine, count = rows[rank::size], question["padded"]
        inputs = [padded_input(mine[i : i + count]) for i in range(0, len(mine), count)]

    losses, seconds = [], []
    for _ in range(question["steps"]):
        if size > 1:
            torch.distributed.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        total = 0.0
        for i, (arguments, labels) in enumerate(inputs):
            if size > 1:
                model.require_backward_grad_sync = i == len(inputs) - 1
            logits = model(**arguments, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1).float(), torch.tensor(labels), ignore_index=-100, reduction="sum"
            )
            loss = loss * size / num_trained  # DistributedDataParallel averages over the ranks
            loss.backward()
            total += loss.item() / size
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = torch.tensor([total], dtype=torch.float64)
        if size > 1:
            torch.distributed.all_reduce(mean)
        losses.append(mean.item())
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        print(json.dumps({"loss": losses, "seconds": seconds}), flush=True)
    if size > 1:
        # Without tearing down: DistributedDataParallel joins Gloo's thread while it holds the
        # interpreter's lock, which that thread may wait for to drop its last tensor.
        torch.distributed.barrier()
        os._exit(0)


if __name__ == "__main__":
    main()

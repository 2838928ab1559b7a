"""Measures training on the CPU: tokens per second beside transformers, and planned against real gain.

    compare_training.py --program build/isochron [--repeats 5] [--quick]

One rank: the same model, rows and micro-batches, trained by isochron and by transformers on packed
input, in turn. Two ranks: isochron balanced, isochron with the batch cut in the order of the data,
transformers with DistributedDataParallel on padded and on packed input. A time counts only if the
losses of all steps agree with transformers. Prints tables and writes
bench/results/training_<hardware>_<yyyymm>.md. Exits 1 if a target is missed.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from page import HERE, ROOT, Page, lognormal

sys.path.insert(0, str(ROOT / "python"))
from isochron.tiny.model import make_model  # noqa: E402

CONFIG = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4,
          "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32,
          "vocab_size": 8192}  # fmt: skip
CAPACITY = 4096
LR = 1e-3
LOSS_TOLERANCE = 2e-4  # relative, of every step: fp32 sums in another order, then AdamW
PADDED_ROWS = 4  # of a padded micro-batch


def write_rows(path, lengths):
    state = 1
    with open(path, "w") as file:
        for length in lengths:
            ids = []
            for _ in range(length):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                ids.append((state >> 33) % CONFIG["vocab_size"])
            print(json.dumps({"input_ids": ids, "loss_mask": [1] * length}), file=file)


class Trainings:
    """Runs both systems on one model and one file of rows; every step trains on all rows."""

    def __init__(self, program, folder, lengths, steps):
        self._program, self._folder, self._steps = program, pathlib.Path(folder), steps
        self._num_rows, self._num_tokens = len(lengths), sum(lengths)
        make_model(str(self._folder / "model"), config=CONFIG)
        write_rows(self._folder / "rows.jsonl", lengths)
        self._losses = None

    def _accept(self, losses, seconds):
        """Tokens per second of the median step after the first, if the losses are right."""
        self._losses = self._losses or losses
        for ours, first in zip(losses, self._losses, strict=True):
            if abs(ours - first) > LOSS_TOLERANCE * first:
                sys.exit(f"the losses differ: {losses} and {self._losses}")
        return self._num_tokens / statistics.median(seconds[1:])

    def transformers(self, ranks, threads, layout, packed=()):
        question = {"model": str(self._folder / "model"), "rows": str(self._folder / "rows.jsonl"),
                    "steps": self._steps, "lr": LR, "threads": threads, "layout": layout,
                    "packed": packed, "padded": PADDED_ROWS}  # fmt: skip
        path = self._folder / "question.json"
        path.write_text(json.dumps(question))
        command = [sys.executable, HERE / "transformers_training.py", path]
        if ranks > 1:
            command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone",
                       f"--nproc-per-node={ranks}", *command[1:]]  # fmt: skip
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        answer = json.loads(result.splitlines()[-1])
        return self._accept(answer["loss"], answer["seconds"])

    def isochron(self, ranks, threads, balance=True):
        """Tokens per second, and the plan of a step."""
        out = self._folder / f"run_{ranks}_{balance}"
        subprocess.run(
            [self._program, "train", ROOT / "recipes" / "sft_tiny.yaml", "--nproc", str(ranks),
             f"model.path={self._folder / 'model'}", f"data.train_files={self._folder / 'rows.jsonl'}",
             f"data.train_batch_size={self._num_rows}", f"data.max_token_len_per_gpu={CAPACITY}",
             f"data.max_length={CAPACITY}", f"optim.lr={LR}", "optim.lr_scheduler_type=constant",
             "optim.lr_warmup_steps=-1",
             f"trainer.total_training_steps={self._steps}", f"trainer.total_epochs={self._steps}",
             f"trainer.balance_batch={str(balance).lower()}", f"engine.threads={threads}",
             "trainer.resume_mode=disable", f"trainer.default_local_dir={out}"],
            stdout=subprocess.DEVNULL, check=True)  # fmt: skip
        data = [json.loads(line)["data"] for line in (out / "metrics.jsonl").read_text().splitlines()]
        speed = self._accept([step["train/loss"] for step in data],
                             [step["perf/step_ms"] / 1e3 for step in data])  # fmt: skip
        return speed, json.loads((out / "plans" / f"step_{self._steps}.json").read_text())


def microbatches_of(plan):
    """The rows of each micro-batch of each rank. The rows of a plan are in the order of its step."""
    ranks = [[] for _ in range(plan["ranks"])]
    for slot in plan["microbatches"]:
        for group in slot:
            ranks[group["ranks"][0]].append(group["sequences"])
    return ranks


def by_length(microbatches, plan_lengths, lengths):
    """Rows of the file that have the lengths of the plan's rows: a step may shuffle them."""
    free = {}
    for row, length in enumerate(lengths):
        free.setdefault(length, []).append(row)
    lengths_of = [entry["length"] if isinstance(entry, dict) else entry for entry in plan_lengths]
    return [[[free[lengths_of[i]].pop() for i in batch] for batch in rank] for rank in microbatches]


def spread(values):
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    repeats, steps, count = (1, 3, 16) if arguments.quick else (arguments.repeats, 3, 16)
    lengths = lognormal(count, 5.5, 1.1, CAPACITY, 1)
    page = Page()
    page.head("Training beside transformers", arguments.quick, "make bench-training")
    page.add(f"- Qwen3 shape {CONFIG}, fp32, one thread per rank; {count} rows, {sum(lengths)} tokens, "
             f"longest {max(lengths)}; at most {CAPACITY} tokens a micro-batch")  # fmt: skip
    page.add(f"- tokens per second, median (smallest to largest) of {repeats} runs of {steps} steps, "
             "the systems in turn; the losses of all steps agree")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(arguments.program, folder, lengths, steps)
        speeds = {name: [] for name in ("one", "one packed", "two", "two in order", "two padded",
                                        "two packed")}  # fmt: skip
        for _ in range(repeats):
            speed, plan = trainings.isochron(1, 1)
            speeds["one"].append(speed)
            packed = by_length(microbatches_of(plan), plan["lengths"], lengths)
            speeds["one packed"].append(trainings.transformers(1, 1, "packed", packed))
            speed, balanced = trainings.isochron(2, 1)
            speeds["two"].append(speed)
            speed, in_order = trainings.isochron(2, 1, balance=False)
            speeds["two in order"].append(speed)
            packed = by_length(microbatches_of(in_order), in_order["lengths"], lengths)
            speeds["two packed"].append(trainings.transformers(2, 1, "packed", packed))
            speeds["two padded"].append(trainings.transformers(2, 1, "padded"))

    median = {name: statistics.median(values) for name, values in speeds.items()}
    page.table("ranks", "system", "tokens/s", "isochron is times as fast", "target")
    ratio = median["one"] / median["one packed"]
    page.row(1, "isochron", spread(speeds["one"]), "", "")
    page.row(1, "transformers, packed", spread(speeds["one packed"]), f"{ratio:.2f}",
             f"1.1: {page.judge(ratio >= 1.1)}")  # fmt: skip
    page.row(2, "isochron", spread(speeds["two"]), "", "")
    for name, system in (("two in order", "isochron, batch cut in order"),
                         ("two packed", "transformers + DDP, packed, cut in order"),
                         ("two padded", f"transformers + DDP, padded, {PADDED_ROWS} rows at a time")):
        page.row(2, system, spread(speeds[name]), f"{median['two'] / median[name]:.2f}", "")
    planned = in_order["predicted_step_ns"] / balanced["predicted_step_ns"]
    measured = median["two"] / median["two in order"]
    share = (1 - 1 / measured) / (1 - 1 / planned)
    page.add()
    page.add(f"Time that balancing saves on two ranks: {100 - 100 / planned:.1f} % planned, "
             f"{100 - 100 / measured:.1f} % measured, {share:.2f} of it (to reach 0.85): "
             f"{page.judge(share >= 0.85)}")  # fmt: skip
    page.close("training", arguments.quick)
    return 0 if all(page.targets) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measures dynamic context parallelism against the best static size, planned and in real time.

    compare_context.py --program build/isochron [--lengths FOLDER] [--repeats 3] [--quick]

Planned: Mooncake's lengths (log-normal ones without the file) on 8 to 64 ranks, by the cost models
of real machines. A static size has to hold the longest sequence of every batch; the best one is the
one with the smallest sum over all batches. Every plan is accepted by `isochron check`.

Measured: the same lengths divided by 32, on 2 and 4 processes of this machine with a tiny model. A
time counts only if the losses of all steps are those of one rank with a large cap.

Prints tables and writes bench/results/context_<hardware>_<yyyymm>.md. Exits 1 if a target is missed.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from compare_training import CONFIG, LOSS_TOLERANCE, LR, make_model, write_rows
from page import HERE, ROOT, Page, lognormal, read_lengths

K = 1024
COSTS = ["qwen3-8b_h100", HERE / "cost" / "7b_h100.json", HERE / "cost" / "flexsp_7b.json"]
PLANNED = [(8, 16 * K, 64), (16, 16 * K, 256), (64, 16 * K, 512), (64, 8 * K, 512)]  # fmt: skip
MOST_BATCHES = 8
SHRINK = 32  # of the lengths, for a processor
MEASURED = [(2, 2048, 20), (2, 4096, 20), (4, 1536, 20)]  # ranks, tokens that a rank holds, rows
STEPS = 3  # the first of which is not counted


def powers_of_two(ranks):
    return [2**i for i in range(ranks.bit_length()) if 2**i <= ranks]


def name_of_cost(cost):
    return cost if isinstance(cost, str) else cost.stem


def planned_times(program, folder, lengths, context, cost, ranks, capacity, batch):
    """Predicted time of each batch in milliseconds; None if a batch has no plan."""
    path, plans = pathlib.Path(folder, "lengths.txt"), pathlib.Path(folder, "plans.jsonl")
    path.write_text("\n".join(map(str, lengths)) + "\n")
    subprocess.run([program, "plan", "--lengths", path, "--ranks", str(ranks), "--capacity", str(capacity),
                    "--context", context, "--cost", cost, "--batch", str(batch), "--json", plans],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # fmt: skip
    answers = [json.loads(line) for line in plans.read_text().splitlines()]
    if any(answer["status"] == "infeasible" for answer in answers):
        return None, {}
    subprocess.run([program, "check", plans], stdout=subprocess.DEVNULL, check=True)
    sizes = {}
    for group in (group for answer in answers for slot in answer["microbatches"] for group in slot):
        size = len(group["ranks"])
        sizes[size] = sizes.get(size, 0) + bool(group["sequences"])
    return [answer["predicted_step_ns"] / 1e6 for answer in answers], sizes


def compare_planned(page, program, lengths, is_quick):
    page.add()
    page.add("## Planned")
    page.table("cost", "ranks", "capacity", "batch", "best static: ms", "size", "dynamic: ms", "any: ms",
               "static / dynamic", "largest group", "target")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for cost in COSTS[:1] if is_quick else COSTS:
            for ranks, capacity, batch in PLANNED[:2] if is_quick else PLANNED:
                kept = [length for length in lengths if length <= ranks * capacity]
                kept = kept[: batch * min(MOST_BATCHES, len(kept) // batch)]
                ask = [program, folder, kept]
                question = [cost, ranks, capacity, batch]
                static = {}
                for size in powers_of_two(ranks):
                    times, _ = planned_times(*ask, f"static:{size}", *question)
                    if times:
                        static[size] = sum(times)
                best = min(static, key=static.get)
                times, sizes = planned_times(*ask, "dynamic", *question)
                anywhere, _ = planned_times(*ask, "dynamic:any", *question)
                ratio = static[best] / sum(times)
                page.row(name_of_cost(cost), ranks, capacity, batch, f"{static[best] / len(times):.1f}", best,
                         f"{sum(times) / len(times):.1f}", f"{sum(anywhere) / len(anywhere):.1f}",
                         f"{ratio:.2f}", max(sizes), f"1.00: {page.judge(ratio >= 1)}")  # fmt: skip


class Trainings:
    """Runs of one model on one file of rows; every step trains on all rows."""

    def __init__(self, program, folder, lengths):
        self._program, self._folder = program, pathlib.Path(folder)
        self._num_rows, self._num_tokens, self._longest = len(lengths), sum(lengths), max(lengths)
        make_model(str(self._folder / "model"), config=CONFIG)
        write_rows(self._folder / "rows.jsonl", lengths)
        self._losses = self._run("one", 1, [f"data.max_token_len_per_gpu={sum(lengths)}"])[0]

    def _run(self, name, ranks, overrides):
        out = self._folder / name
        subprocess.run(
            [self._program, "train", ROOT / "recipes" / "sft_tiny.yaml", "--nproc", str(ranks),
             f"model.path={self._folder / 'model'}", f"data.train_files={self._folder / 'rows.jsonl'}",
             f"data.train_batch_size={self._num_rows}", f"data.max_length={self._longest}", f"optim.lr={LR}",
             "optim.lr_scheduler_type=constant", "optim.lr_warmup_steps=-1",
             f"trainer.total_training_steps={STEPS}", f"trainer.total_epochs={STEPS}", "engine.threads=1",
             "trainer.resume_mode=disable", "checkpoint.save_contents=[model]",
             f"trainer.default_local_dir={out}", *overrides],
            stdout=subprocess.DEVNULL, check=True)  # fmt: skip
        data = [json.loads(line)["data"] for line in (out / "metrics.jsonl").read_text().splitlines()]
        plan = json.loads((out / "plans" / f"step_{STEPS}.json").read_text())
        return [step["train/loss"] for step in data], [step["perf/step_ms"] for step in data], plan

    def tokens_per_s(self, ranks, capacity, overrides):
        """Of the median step after the first, with the plan of a step, if the losses are right."""
        cap = f"data.max_token_len_per_gpu={capacity}"
        losses, times, plan = self._run("run", ranks, [cap, *overrides])
        for ours, first in zip(losses, self._losses, strict=True):
            if abs(ours - first) > LOSS_TOLERANCE * first:
                sys.exit(f"the losses differ: {losses} and {self._losses}")
        return self._num_tokens / statistics.median(times[1:]) * 1e3, plan


def measured_modes(ranks, capacity, longest):
    """Static sizes that hold the longest row, and the dynamic ones."""
    sizes = [size for size in powers_of_two(ranks) if longest <= size * capacity and ranks % size == 0]
    modes = {f"static {size}": [f"engine.context_parallel_size={size}"] for size in sizes}
    dynamic = "engine.dynamic_context_parallel=true"
    return {**modes, "dynamic": [dynamic],
            "dynamic, any": [dynamic, "engine.context_parallel_sizes=any"]}  # fmt: skip


def compare_measured(page, program, lengths, repeats, is_quick):
    page.add()
    page.add("## Measured")
    page.add(f"- Qwen3 shape {CONFIG}, fp32, one thread per process, all of them on this machine; "
             f"lengths divided by {SHRINK}")  # fmt: skip
    page.add(f"- tokens per second, median (smallest to largest) of {repeats} runs of {STEPS} steps, the "
             "modes in turn; the losses of all steps are those of one rank")  # fmt: skip
    page.table("ranks", "capacity", "rows, tokens, longest", "mode", "tokens/s", "dynamic is times as fast",
               "planned", "target")  # fmt: skip
    for ranks, capacity, count in MEASURED[:1] if is_quick else MEASURED:
        # Those that are as long as both ranks hold, cut to it: the tail is what this is about.
        rows = [min(max(2, length // SHRINK), ranks * capacity) for length in lengths[:count]]
        modes = measured_modes(ranks, capacity, max(rows))
        speeds, planned = {mode: [] for mode in modes}, {}
        with tempfile.TemporaryDirectory() as folder:
            trainings = Trainings(program, folder, rows)
            for _ in range(repeats):
                for mode, overrides in modes.items():
                    speed, plan = trainings.tokens_per_s(ranks, capacity, overrides)
                    speeds[mode].append(speed)
                    planned[mode] = plan["predicted_step_ns"]
        median = {mode: statistics.median(values) for mode, values in speeds.items()}
        best = max((mode for mode in modes if mode.startswith("static")), key=median.get)
        for mode, values in speeds.items():
            ratio = median["dynamic"] / median[mode]
            page.row(ranks, capacity, f"{len(rows)}, {sum(rows)}, {max(rows)}", mode,
                     f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})",
                     f"{ratio:.2f}", f"{planned[mode] / planned['dynamic']:.2f}",
                     f"best static, 1.00: {page.judge(ratio >= 1)}" if mode == best else "")  # fmt: skip


def mooncake_lengths(folder):
    path = folder / "mooncake_conversation.txt" if folder else None
    if path and path.exists():
        return read_lengths(path), "Mooncake's conversations"
    return lognormal(8192, 9.0, 1.0, 128 * K, 1), "log-normal lengths (no file of Mooncake's)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--lengths", type=lambda text: pathlib.Path(text) if text else None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    lengths, source = mooncake_lengths(arguments.lengths)
    page = Page()
    page.head("Dynamic context parallelism against the best static size", arguments.quick,
              "make bench-context")  # fmt: skip
    page.add(f"- lengths: {source}")
    compare_planned(page, arguments.program, lengths, arguments.quick)
    repeats = 1 if arguments.quick else arguments.repeats
    compare_measured(page, arguments.program, lengths, repeats, arguments.quick)
    page.close("context", arguments.quick)
    return 0 if all(page.targets) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What `make run` does: first_run.py PROGRAM RECIPES OUT

Makes a tiny Qwen3-shaped model and conversations with a long tail of lengths, and trains the model
three times on two ranks: with the batch cut in the order of the data, balanced, and with ranks that
share long rows, each of which then holds half as many tokens. Loads the result in transformers, and
writes one page that shows the runs side by side.

Everything is made new but the model and the data, which are kept for the next time.
"""

import json
import pathlib
import shutil
import subprocess
import sys

STEPS = 40
BATCH = 16
LONGEST = 4096  # tokens of a row, and of a micro-batch where nobody shares rows
MODEL = {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 4,
         "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 32}  # fmt: skip
DATA = ["--rows", str(STEPS * BATCH), "--val-rows", "64", "--median", "160", "--sigma", "1.2",
        "--max-length", str(LONGEST)]  # fmt: skip
WARM_UP = 2  # steps that are not counted: threads start, memory is taken for the first time

# In the order of the page: the name of a run, its recipe, what comes on top of it.
RUNS = {
    "unbalanced": ("sft_tiny.yaml", ["trainer.balance_batch=false"]),
    "balanced": ("sft_tiny.yaml", []),
    "dynamic": ("sft_tiny_dynamic.yaml", []),
}
LOSS_TOLERANCE = 2e-3  # between runs that differ in nothing but the order of their sums


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


def make_inputs(folder):
    """Model and tokenised rows, unless they are there: the index is written last."""
    if (folder / "val" / "index.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "isochron.tiny", folder, "--config", json.dumps(MODEL), *DATA)
    for part in ("train", "val"):
        run(sys.executable, "-m", "isochron.prepare", folder / f"{part}.jsonl", "--model",
            folder / "model", "--max-length", LONGEST, "-o", folder / part)  # fmt: skip


def train(program, recipe, overrides, inputs, out):
    shutil.rmtree(out, ignore_errors=True)
    print(f"\n{out.name}: {recipe} {' '.join(overrides)}", flush=True)
    run(program, "train", recipe, "--nproc", "2", f"model.path={inputs / 'model'}",
        f"data.train_files={inputs / 'train'}", f"data.val_files={inputs / 'val'}",
        f"data.train_batch_size={BATCH}", f"data.max_length={LONGEST}",
        f"data.max_token_len_per_gpu={LONGEST}", f"trainer.total_training_steps={STEPS}",
        f"trainer.default_local_dir={out}", *overrides)  # fmt: skip


def metric(out, name):
    """A metric of every step that has it."""
    lines = (out / "metrics.jsonl").read_text().splitlines()
    data = [json.loads(line)["data"] for line in lines]
    return [numbers[name] for numbers in data if name in numbers]


def check_export(out):
    """The saved model loads in transformers and has learned something."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = sorted(out.glob("global_step_*/huggingface"))[-1]
    model = AutoModelForCausalLM.from_pretrained(folder)
    logits = model(torch.arange(8)[None]).logits
    if not bool(torch.isfinite(logits).all()):
        sys.exit(f"isochron: [first_run] {folder} loads in transformers, its logits are not finite")
    print(f"{folder} loads in transformers.")


def check_losses(losses):
    """The loss falls, and is the same however the rows were spread over the ranks."""
    first, last = losses["balanced"][0], losses["balanced"][-1]
    if not last < 0.7 * first:
        sys.exit(f"isochron: [first_run] the loss went from {first:.3f} to {last:.3f}, it must fall")
    for name, values in losses.items():
        if abs(values[0] - first) > LOSS_TOLERANCE * first:
            sys.exit(f"isochron: [first_run] {name} begins with loss {values[0]}, balanced with {first}")


def most_tokens(out):
    """Tokens of the fullest micro-batch that a rank held, as planned."""
    most = 0
    for path in (out / "plans").glob("step_*.json"):
        plan = json.loads(path.read_text())
        for group in (group for slot in plan["microbatches"] for group in slot):
            size = len(group["ranks"])
            multiple = 2 * size if size > 1 else 1
            padded = [-(-plan["lengths"][row] // multiple) * multiple for row in group["sequences"]]
            most = max(most, sum(padded) // size)
    return most


def print_comparison(out, losses):
    seconds = {name: sum(metric(out / name, "perf/step_ms")[WARM_UP:]) / 1e3 for name in RUNS}
    slowest = seconds["unbalanced"]
    print(f"\n{'run':<12}{'time':>9}{'speed-up':>10}{'loss':>18}{'most tokens on a rank':>24}")
    for name in RUNS:
        loss = f"{losses[name][0]:.3f} -> {losses[name][-1]:.3f}"
        print(f"{name:<12}{seconds[name]:>7.1f} s{slowest / seconds[name]:>9.2f}x{loss:>18}"
              f"{most_tokens(out / name):>24}")  # fmt: skip


def main():
    program, recipes, out = (pathlib.Path(argument) for argument in sys.argv[1:])
    make_inputs(out / "inputs")
    for name, (recipe, overrides) in RUNS.items():
        train(program, recipes / recipe, overrides, out / "inputs", out / name)
    check_export(out / "dynamic")
    run(program, "report", *[out / name for name in RUNS], "-o", out / "report.html")
    losses = {name: metric(out / name, "train/loss") for name in RUNS}
    check_losses(losses)
    print_comparison(out, losses)
    print(f"\nOpen {out / 'report.html'} to see the runs side by side.")


if __name__ == "__main__":
    main()

"""What `make run` does: first_run.py PROGRAM RECIPE OUT

Makes a tiny Qwen3-shaped model and conversations with a long tail of lengths, trains the model on
two ranks, once balanced and once with the batch cut in the order of the data, loads the result in
transformers, and writes one page that shows both runs side by side.

Everything is made new but the model and the data, which are kept for the next time.
"""

import json
import pathlib
import shutil
import subprocess
import sys

STEPS = 40
BATCH = 16
LONGEST = 4096  # tokens of a row, and of a micro-batch
MODEL = {"hidden_size": 192, "intermediate_size": 512, "num_hidden_layers": 4,
         "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 32}  # fmt: skip
DATA = ["--rows", str(STEPS * BATCH), "--val-rows", "64", "--median", "160", "--sigma", "1.2",
        "--max-length", str(LONGEST)]  # fmt: skip
WARM_UP = 2  # steps that are not counted: threads start, memory is taken for the first time


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


def train(program, recipe, inputs, out, balance):
    shutil.rmtree(out, ignore_errors=True)
    run(program, "train", recipe, "--nproc", "2", f"model.path={inputs / 'model'}",
        f"data.train_files={inputs / 'train'}", f"data.val_files={inputs / 'val'}",
        f"data.train_batch_size={BATCH}", f"data.max_length={LONGEST}",
        f"data.max_token_len_per_gpu={LONGEST}", f"trainer.total_training_steps={STEPS}",
        f"trainer.default_local_dir={out}",
        f"trainer.balance_batch={'true' if balance else 'false'}")  # fmt: skip


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


def main():
    program, recipe, out = (pathlib.Path(argument) for argument in sys.argv[1:])
    make_inputs(out / "inputs")
    balanced, unbalanced = out / "balanced", out / "unbalanced"
    train(program, recipe, out / "inputs", balanced, True)
    train(program, recipe, out / "inputs", unbalanced, False)
    check_export(balanced)
    run(program, "report", unbalanced, balanced, "-o", out / "report.html")

    first, last = metric(balanced, "train/loss")[0], metric(balanced, "train/loss")[-1]
    if not last < 0.7 * first:
        sys.exit(f"isochron: [first_run] the loss went from {first:.3f} to {last:.3f}, it must fall")
    seconds = {
        name: sum(metric(out / name, "perf/step_ms")[WARM_UP:]) / 1e3
        for name in ("balanced", "unbalanced")
    }
    print(f"loss {first:.3f} -> {last:.3f} in {STEPS} steps")
    print(
        f"{seconds['unbalanced']:.1f} s in the order of the data, {seconds['balanced']:.1f} s balanced:"
        f" {seconds['unbalanced'] / seconds['balanced']:.2f} times as fast"
    )
    print(f"Open {out / 'report.html'} to see both runs.")


if __name__ == "__main__":
    main()

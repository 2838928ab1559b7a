"""Exits 0 if transformers loads each model folder and computes the logits that lie in it.

    python check_export.py FOLDER..

FOLDER/expected/logits.safetensors has `tokens`, `cu_seqlens` and the `logits` of each sequence.
"""

import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def difference(folder):
    model, report = AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, local_files_only=True
    )
    problems = {key: value for key, value in report.items() if value}
    if problems:
        raise SystemExit(f"{folder}: {problems}")
    if model.dtype != torch.float32:
        raise SystemExit(f"{folder}: loaded as {model.dtype}")
    expected = load_file(folder / "expected" / "logits.safetensors")
    starts = expected["cu_seqlens"].tolist()
    with torch.no_grad():
        logits = torch.cat(
            [
                model(input_ids=expected["tokens"][None, begin:end], use_cache=False).logits[0]
                for begin, end in zip(starts, starts[1:])
            ]
        )
    return (logits - expected["logits"]).abs().max().item()


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for folder in map(Path, sys.argv[1:]):
        largest = difference(folder)
        if not largest < 1e-5:
            raise SystemExit(f"{folder}: logits differ by {largest}")


if __name__ == "__main__":
    main()

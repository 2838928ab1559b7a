"""Tokens per second of a forward and backward: isochron's decoder and transformers, packed.

    python bench/compare_model.py --program build-bench/bench/model_bench

Both run the same random model in fp32 on the same tokens, in turns, and must agree on the loss.
transformers gets one row with position_ids, from which it builds a block-diagonal mask.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, Qwen3Config

MODELS = {  # hidden, layers, heads, kv heads, head dim, ffn, vocabulary
    "tiny": (256, 4, 8, 4, 32, 768, 4096),
    "small": (512, 8, 8, 4, 64, 1536, 16384),
    "qwen3-0.6b, 4 layers": (1024, 4, 16, 8, 128, 3072, 32768),
}
BATCHES = {
    "one of 2048": [2048],
    "long tail": [1100, 420, 230, 120, 80, 50, 30, 18],
    "32 of 64": [64] * 32,
}


def make_model(sizes):
    hidden, layers, heads, kv_heads, head_dim, ffn, vocabulary = sizes
    config = Qwen3Config(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=ffn,
        vocab_size=vocabulary,
        tie_word_embeddings=True,
    )
    return AutoModelForCausalLM.from_config(config).float().train()


def transformers_step(model, lengths, clock):
    tokens = torch.arange(sum(lengths)).remainder(1000)
    positions = torch.cat([torch.arange(n) for n in lengths])
    labels = torch.cat([tokens[1:], torch.tensor([-100])])
    labels[torch.tensor(lengths).cumsum(0) - 1] = -100
    begin = clock()
    logits = model(input_ids=tokens[None], position_ids=positions[None], use_cache=False).logits[0]
    loss = torch.nn.functional.cross_entropy(logits, labels, ignore_index=-100)
    loss.backward()
    model.zero_grad(set_to_none=True)
    return clock() - begin, loss.item()


def isochron_steps(program, folder, lengths, args):
    command = [program, folder, args.threads, args.repeats, args.recompute, *lengths]
    output = subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True, timeout=600
    )
    steps = [json.loads(line) for line in output.stdout.splitlines()]
    key = "processor_seconds" if args.processor_time else "seconds"
    return [step[key] for step in steps], steps[0]["loss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=6, help="the first is not counted")
    parser.add_argument("--recompute", default="none")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count the time of all threads instead, for a busy machine",
    )
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    clock = time.process_time if args.processor_time else time.perf_counter
    print("| model | batch | transformers packed, tokens/s | isochron, tokens/s | ratio |")
    print("|---|---|---|---|---|")
    for name in args.models:
        model = make_model(MODELS[name])
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            for batch, lengths in BATCHES.items():
                theirs = [transformers_step(model, lengths, clock) for _ in range(args.repeats)]
                ours, loss = isochron_steps(Path(args.program), folder, lengths, args)
                if abs(loss - theirs[0][1]) > 1e-4 * abs(loss):
                    raise SystemExit(f"losses differ: {loss} and {theirs[0][1]}")
                tokens = sum(lengths)
                slow = tokens / statistics.median(t for t, _ in theirs[1:])
                fast = tokens / statistics.median(ours[1:])
                print(f"| {name} | {batch} | {slow:.0f} | {fast:.0f} | {fast / slow:.2f} |")


if __name__ == "__main__":
    main()

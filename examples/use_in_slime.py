"""slime's schedule of a rollout by isochron: cap, counts and FLOPs at once.

    python examples/use_in_slime.py

Where slime is installed, `isochron.compat.slime.install()` puts the function in its place.
"""

from types import SimpleNamespace

from isochron.compat.slime import build_dp_schedule

LENGTHS = [6933, 3171, 6225, 7308, 3461, 347, 2137, 7925, 4204, 3996, 3333, 7538, 6436, 6814, 2500]
ARGS = SimpleNamespace(
    use_dynamic_batch_size=True,
    max_tokens_per_gpu=8192,
    micro_batch_size=None,
    balance_data=True,
    balance_by_flops=True,
    hidden_size=4096,
    num_attention_heads=32,
    kv_channels=128,
    num_query_groups=8,
    ffn_hidden_size=12288,
    vocab_size=151936,
    num_layers=36,
    num_experts=None,
)
RANKS = {"dp_size": 2, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}


def main() -> None:
    """The answer of slime, then that of the planner."""
    for mode in ("exact", "best"):
        partitions, micro_batches, counts, _ = build_dp_schedule(
            ARGS,
            RANKS,
            LENGTHS,
            global_batch_size=len(LENGTHS),
            rollout_indices=list(range(len(LENGTHS))),
            mode=mode,
        )
        tokens = [
            sum(LENGTHS[samples[place]] for place in places)
            for samples, batches in zip(partitions, micro_batches, strict=True)
            for places in batches
        ]
        print(f"{mode}: {counts[0]} micro-batches per rank, at most {max(tokens)} of 8192 tokens")


if __name__ == "__main__":
    main()

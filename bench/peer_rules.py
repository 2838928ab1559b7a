"""The step that each system would run, as slots (see step_clock.py).

megatron-core is the package itself; the others are the exact modes of isochron.compat, which tests hold
against the package (verl 0.9.1) or against golden answers (slime, Megatron's development branch).
"""

from types import SimpleNamespace

from isochron import _planner
from isochron.compat import megatron, slime, verl


class Failed(Exception):
    """The rule has no answer to this batch."""


def slots_of_ranks(microbatches_of_rank):
    """Micro-batches of single ranks, one behind the other; ranks that have none are idle."""
    count = max(len(microbatches) for microbatches in microbatches_of_rank)
    padded = [
        microbatches + [[]] * (count - len(microbatches)) for microbatches in microbatches_of_rank
    ]
    return [[list(rank[i]) for rank in padded] for i in range(count)]


def without_words(rule, *arguments):
    try:
        return rule(*arguments)
    except (AssertionError, IndexError, ValueError, RuntimeError) as error:
        raise Failed(f"{type(error).__name__}: {error}") from error


def verl_step(lengths, ranks, capacity, mode):
    """Samples onto ranks with equal counts, then micro-batches whose number all ranks agree on."""
    workloads = [24576 * length + length * length for length in lengths]
    parts = verl.get_seqlen_balanced_partitions(workloads, ranks, True, mode="exact")
    rule = {"exact": "v0_9_1", "exact_before_7553": "before_7553"}[mode]
    of_rank = [[lengths[i] for i in part] for part in parts]

    def micro_batches(count):
        return [
            _planner.verl_microbatches(
                rows, max_token_len=capacity, min_num_micro_batch=count, rule=rule
            )
            for rows in of_rank
        ]

    def agreed():
        # Ranks take the largest count, and try again with it until it is that of all of them.
        count = None
        while True:
            batches = micro_batches(count)
            counts = {len(each) for each in batches}
            if len(counts) == 1:
                return batches
            count = max(counts)

    batches = without_words(agreed)
    return slots_of_ranks(
        [[[part[i] for i in batch] for batch in each] for part, each in zip(parts, batches)]
    )


def slime_step(lengths, ranks, capacity, balance_by_flops):
    """One packing for all ranks, dealt by FLOPs of a 7B model."""
    args = SimpleNamespace(
        use_dynamic_batch_size=True, max_tokens_per_gpu=capacity, micro_batch_size=None,
        balance_data=True, balance_by_flops=balance_by_flops, num_experts=None, hidden_size=4096,
        num_attention_heads=32, kv_channels=128, num_query_groups=8, ffn_hidden_size=12288,
        vocab_size=151936, num_layers=36,
    )  # fmt: skip
    config = {
        "dp_size": ranks, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1,
    }  # fmt: skip
    partitions, places, _, _ = without_words(
        lambda: slime.build_dp_schedule(
            args, config, lengths, global_batch_size=len(lengths),
            rollout_indices=list(range(len(lengths))), mode="exact",
        )  # fmt: skip
    )
    return slots_of_ranks(
        [[[part[i] for i in each] for each in micro] for part, micro in zip(partitions, places)]
    )


def megatron_static_step(lengths, ranks, capacity):
    scheduler = megatron.DpBalancedScheduler(capacity, 1, ranks, None, mode="exact")
    return without_words(scheduler.get_groups_and_subsamples, list(enumerate(lengths)))


def megatron_dynamic_step(lengths, ranks, capacity):
    scheduler = megatron.DefaultDynamicCPScheduler(capacity, 1, ranks, None, mode="exact")
    return without_words(scheduler.get_groups_and_subsamples, list(enumerate(lengths)))


def megatron_core_step(lengths, ranks, capacity):
    """The scheduler of the package, which runs the samples of a rank one after the other."""
    from megatron.core.pipeline_parallel.hybrid_cp_schedule import BalancedCPScheduler

    scheduler = BalancedCPScheduler(capacity, SimpleNamespace(size=lambda: ranks))
    return without_words(
        lambda: scheduler.get_groups_and_subsamples(list(enumerate(lengths)), None)[1]
    )


def isochron_step(lengths, ranks, capacity, cost, context):
    plan = _planner.plan_step(lengths, ranks, capacity, cost=cost, context=context)
    assert plan.status in ("optimal", "feasible"), plan.reason
    assert _planner.check(plan) is None
    slots = []
    for groups in plan.microbatches:
        slot = [[] for _ in range(ranks)]
        for group in groups:
            for rank in group.ranks:
                slot[rank] = group.sequences
        slots.append(slot)
    return slots, plan

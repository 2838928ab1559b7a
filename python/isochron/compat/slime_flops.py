"""slime's estimate of the FLOPs of a forward pass, from the arguments of its command line."""

from typing import Any


def calculate_fwd_flops(seqlens: Any, args: Any) -> float:
    """Of all sequences: projections, causal attention, MLP or experts of every layer, and the head.

    Experts count as their top-k and the shared one. Latent attention is told by `q_lora_rank`,
    `kv_lora_rank` and the dimensions of its heads.
    """
    widths = _layers_of_width(args)
    flops = 0.0
    for length in seqlens:
        attention = _projections(length, args) + _causal_attention(length, args)
        output = 2 * length * args.hidden_size * args.hidden_size
        for width, num_layers in widths:
            mlp = 6 * length * args.hidden_size * width
            flops += (attention + output + mlp) * num_layers
        flops += 2 * length * args.hidden_size * args.vocab_size
    return flops


def costs_of(lengths: list[int], args: Any) -> list[float] | list[int]:
    """FLOPs where the arguments describe the model, else verl's workload of a 7B model."""
    if getattr(args, "hidden_size", None) is not None:
        return [calculate_fwd_flops([length], args) for length in lengths]
    return [24576 * length + length * length for length in lengths]


def _layers_of_width(args: Any) -> list[tuple[int, int]]:
    """(width of the MLP, layers that have it); dense ones first."""
    if getattr(args, "num_experts", None) is None:
        return [(args.ffn_hidden_size, args.num_layers)]
    shared = getattr(args, "moe_shared_expert_intermediate_size", None) or 0
    width = args.moe_ffn_hidden_size * args.moe_router_topk + shared
    frequency = getattr(args, "moe_layer_freq", 1)
    if not isinstance(frequency, list):  # every so many layers
        frequency = [int(layer % frequency == 0) for layer in range(args.num_layers)]
    num_moe = sum(1 for each in frequency if each > 0)
    pairs = [(args.ffn_hidden_size, len(frequency) - num_moe), (width, num_moe)]
    return [(width, count) for width, count in pairs if count > 0]


def _projections(length: int, args: Any) -> int:
    """Into queries, keys and values."""
    hidden, heads = args.hidden_size, args.num_attention_heads
    q_rank = getattr(args, "q_lora_rank", None)
    kv_rank = getattr(args, "kv_lora_rank", None)
    if q_rank is None:
        queries = 2 * length * hidden * heads * args.kv_channels
    else:
        head = args.qk_head_dim + args.qk_pos_emb_head_dim
        queries = 2 * length * q_rank * (hidden + heads * head)
    if kv_rank is None:
        return queries + 4 * length * hidden * args.num_query_groups * args.kv_channels
    head = args.qk_head_dim + args.v_head_dim
    latent = kv_rank * (hidden + heads * head) + hidden * args.qk_pos_emb_head_dim
    return queries + 2 * length * latent


def _causal_attention(length: int, args: Any) -> float:
    pairs = args.num_attention_heads * length * length
    positions = getattr(args, "qk_pos_emb_head_dim", None)
    scored = args.qk_head_dim + positions if positions else args.kv_channels
    return 2 * pairs * scored / 2 + pairs * (getattr(args, "v_head_dim", None) or args.kv_channels)

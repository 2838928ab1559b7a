"""Step plans for training loops of your own: micro-batches packed, sharded and put back in order.

    plan = isochron.plan_step(lengths, ranks=8, capacity=16384, context="dynamic")
    groups.prepare(plan)
    weights = token_weights(plan, batch["loss_mask"])
    for microbatch in microbatches_of(plan, rank):
        shard = shard_of(microbatch, device=device)
        input_ids = pack(batch["input_ids"], shard)
        labels = pack_next(batch["input_ids"], shard, fill=-100)
        losses = model(input_ids, labels, shard, groups.of(microbatch))
        (pack_next(weights, shard) * losses).sum().backward()

See docs/own_loop.md. Nothing but torch is needed; TensorDicts are understood where they come.
"""

from isochron.torch.agree import require_same_plan
from isochron.torch.collect import collect_rows, collect_tokens
from isochron.torch.gather import gather_shards
from isochron.torch.groups import ContextGroups
from isochron.torch.jagged import extend_left, last_tokens, shift_right
from isochron.torch.microbatch import Microbatch, microbatches_of, rows_of
from isochron.torch.pack import join_shards, pack, pack_next, unpack
from isochron.torch.padding import jagged_from_padded, padded_from_jagged, padded_like
from isochron.torch.restore import restore_order
from isochron.torch.shard import Shard, shard_of
from isochron.torch.weights import token_weights

__all__ = [
    "ContextGroups",
    "Microbatch",
    "Shard",
    "collect_rows",
    "collect_tokens",
    "extend_left",
    "gather_shards",
    "jagged_from_padded",
    "join_shards",
    "last_tokens",
    "microbatches_of",
    "pack",
    "pack_next",
    "padded_from_jagged",
    "padded_like",
    "require_same_plan",
    "restore_order",
    "rows_of",
    "shard_of",
    "shift_right",
    "token_weights",
    "unpack",
]

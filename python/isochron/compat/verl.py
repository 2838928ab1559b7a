"""verl's utils/seqlen_balancing.py: the same functions, by isochron's planner.

mode="best" (the default) packs under the token cap into the fewest micro-batches it finds and
balances them; ranks agree on the count and on every error in one all-reduce. mode="exact" gives
the answers of verl 0.9.1, mode="exact_before_7553" those of the releases before it, which break the
cap. All ranks of a group use the same mode.
"""

import copy
import functools
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from isochron import _planner
from isochron.compat.agreement import Agreement
from isochron.compat.modes import VerlMode, require_mode
from isochron.compat.partitions import (
    get_reverse_idx,
    get_seqlen_balanced_partitions,
    greedy_partition,
    karmarkar_karp,
)
from isochron.compat.patching import Patches
from isochron.compat.verl_agreement import agreement_of
from isochron.compat.verl_microbatches import MicrobatchQuestion, best_microbatches

__all__ = [
    "calculate_workload",
    "ceildiv",
    "get_group_balanced_partitions",
    "get_reverse_idx",
    "get_seqlen_balanced_partitions",
    "greedy_partition",
    "install",
    "karmarkar_karp",
    "log_seqlen_unbalance",
    "prepare_dynamic_batch",
    "rearrange_micro_batches",
    "restore_dynamic_batch",
    "roundup_divisible",
    "uninstall",
]

MODES = ("best", "exact", "exact_before_7553")


def calculate_workload(seqlen_list: Any) -> Any:
    """24576 s + s^2 of each length, in the type of the lengths."""
    return 24576 * seqlen_list + seqlen_list**2


def ceildiv(a: int, b: int) -> int:
    """A / b, rounded up."""
    return -(a // -b)


def roundup_divisible(a: int, b: int) -> int:
    """The smallest multiple of b that is not below a."""
    return ((a + b - 1) // b) * b


def log_seqlen_unbalance(
    seqlen_list: Any, partitions: list[list[int]], prefix: str
) -> dict[str, Any]:
    """Sums over parts before (contiguous parts of n // k items) and after balancing."""
    per_part = len(seqlen_list) // len(partitions)
    before = [
        sum(seqlen_list[first : first + per_part]) for first in range(0, len(seqlen_list), per_part)
    ]
    after = [sum([seqlen_list[item] for item in part]) for part in partitions]
    smallest, largest = min(before), max(before)
    return {
        f"{prefix}/min": smallest,
        f"{prefix}/max": largest,
        f"{prefix}/minmax_diff": largest - smallest,
        f"{prefix}/balanced_min": min(after),
        f"{prefix}/balanced_max": max(after),
        f"{prefix}/mean": sum(before) / len(partitions),
    }


def get_group_balanced_partitions(
    seqlen_list: Any, uid_list: Any, k_partitions: int, *, mode: VerlMode = "best"
) -> list[list[int]]:
    """Samples into parts of about equal workload, those of a run of equal uids in the same part.

    Every part has as many runs; the number of runs is a multiple of the parts.
    """
    assert len(seqlen_list) == len(uid_list), "seqlen_list and uid_list must have same length"
    groups: list[list[int]] = []
    uid_before = None
    for sample, uid in enumerate(uid_list):
        if not groups or uid != uid_before:
            groups.append([])
        groups[-1].append(sample)
        uid_before = uid
    assert len(groups) >= k_partitions, (
        f"Number of uid groups ({len(groups)}) must be >= k_partitions ({k_partitions}). "
        f"Consider reducing world_size or increasing batch_size."
    )
    workloads = [
        sum(int(calculate_workload(int(seqlen_list[sample]))) for sample in group)
        for group in groups
    ]
    parts = get_seqlen_balanced_partitions(workloads, k_partitions, equal_size=True, mode=mode)
    return [sorted(chain.from_iterable(groups[group] for group in part)) for part in parts]


def rearrange_micro_batches(
    batch: Any,
    max_token_len: int,
    dp_group: Any = None,
    num_batches_divided_by: int | None = None,
    same_micro_num_in_dp: bool = True,
    min_num_micro_batch: int | None = None,
    use_dynamic_bsz_balance: bool = True,
    force_group_size: int = 1,
    *,
    mode: VerlMode = "best",
) -> tuple[list[Any], list[list[int]]]:
    """The micro-batches of a TensorDict and the rows of each.

    "best" keeps the cap on real lengths whenever that is possible, with the fewest micro-batches it
    finds: a count that is the same over `dp_group`, a multiple of `num_batches_divided_by`, at
    least `min_num_micro_batch`, none of them empty. Where there is none every rank raises verl's
    error.
    """
    require_mode(mode, "rearrange_micro_batches", *MODES)
    from verl.utils.tensordict_utils import index_select_tensor_dict

    question = MicrobatchQuestion(
        max_token_len=max_token_len,
        num_batches_divided_by=num_batches_divided_by,
        min_num_micro_batch=min_num_micro_batch,
        use_dynamic_bsz_balance=use_dynamic_bsz_balance,
        force_group_size=force_group_size,
    )
    agreement = agreement_of(dp_group) if same_micro_num_in_dp else None
    if mode == "best":
        rows = best_microbatches(functools.partial(_lengths, batch), question, agreement)
    else:
        rows = _exact_microbatches(batch, question, agreement, mode)
    return [index_select_tensor_dict(batch, part) for part in rows], rows


def prepare_dynamic_batch(
    data: Any,
    max_token_len: int,
    dp_group: Any = None,
    num_batches_divided_by: int | None = None,
    same_micro_num_in_dp: bool = True,
    min_num_micro_batch: int | None = None,
    use_dynamic_bsz_balance: bool = True,
    *,
    mode: VerlMode = "best",
) -> tuple[list[Any], list[list[int]]]:
    """rearrange_micro_batches() of a DataProto: other columns follow, meta_info is copied."""
    from verl.protocol import DataProto

    batches, rows = rearrange_micro_batches(
        data.batch,
        max_token_len=max_token_len,
        dp_group=dp_group,
        num_batches_divided_by=num_batches_divided_by,
        same_micro_num_in_dp=same_micro_num_in_dp,
        min_num_micro_batch=min_num_micro_batch,
        use_dynamic_bsz_balance=use_dynamic_bsz_balance,
        mode=mode,
    )
    micro_batches = [
        DataProto.from_dict(
            dict(tensors),
            {key: column[part] for key, column in data.non_tensor_batch.items()},
            meta_info=copy.deepcopy(data.meta_info),
        )
        for tensors, part in zip(batches, rows, strict=True)
    ]
    return micro_batches, rows


def restore_dynamic_batch(data: Any, batch_idx_list: list[list[int]]) -> Any:
    """Rows that come micro-batch by micro-batch in the order of the batch; dense or jagged."""
    import torch

    indices = list(chain.from_iterable(batch_idx_list))
    batch_size = data.shape[0]
    assert len(indices) == batch_size, f"{len(indices)} vs. {batch_size}"
    places = torch.tensor(get_reverse_idx(indices), dtype=torch.long)
    if not data.is_nested:
        return data[places]
    rows = data.unbind()
    return torch.nested.as_nested_tensor([rows[i] for i in places], layout=torch.jagged)


def _lengths(batch: Any) -> np.ndarray[Any, Any]:
    """Real tokens of each row."""
    input_ids = batch["input_ids"]
    if input_ids.is_nested:
        return input_ids.offsets().diff().cpu().numpy()
    return batch["attention_mask"].sum(dim=1).cpu().numpy()


def _exact_microbatches(
    batch: Any, question: MicrobatchQuestion, agreement: Agreement | None, mode: VerlMode
) -> list[list[int]]:
    input_ids = batch["input_ids"]
    max_token_len = question.max_token_len
    # verl compares with the padded width of a dense batch, and prints the tensor of a nested one.
    if input_ids.is_nested:
        max_seq_len = max(input_ids.offsets().diff())
    else:
        max_seq_len = batch["attention_mask"].shape[-1]
    assert max_token_len >= max_seq_len, (
        f"max_token_len must be greater than the sequence length. Got {max_token_len=} "
        f"and {max_seq_len=}"
    )
    return _planner.verl_microbatches(
        _lengths(batch).astype(np.int64),
        all_reduce_max=agreement,
        max_token_len=max_token_len,
        num_batches_divided_by=question.num_batches_divided_by,
        min_num_micro_batch=question.min_num_micro_batch,
        use_dynamic_bsz_balance=question.use_dynamic_bsz_balance,
        force_group_size=question.force_group_size,
        rule="v0_9_1" if mode == "exact" else "before_7553",
    )


# The other functions of verl's module are as fast and as good as ours.
_REPLACING: list[Callable[..., Any]] = [
    karmarkar_karp,
    get_seqlen_balanced_partitions,
    get_group_balanced_partitions,
    rearrange_micro_batches,
    prepare_dynamic_batch,
]
_patches = Patches()


def install(mode: VerlMode = "best") -> None:
    """Puts these functions in the place of verl's, in every module that holds them.

    ValueError if the functions of this verl take other arguments than those of 0.9.1. A second call
    changes the mode.
    """
    require_mode(mode, "install", *MODES)
    from verl.utils import seqlen_balancing

    uninstall()
    _patches.install(seqlen_balancing, _REPLACING, mode)


def uninstall() -> None:
    """Puts verl's own functions back; nothing if they are there."""
    _patches.take_back()

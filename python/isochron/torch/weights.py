"""The weight of each token in the loss of a step."""

from typing import Literal

import torch
from torch import Tensor

from isochron import StepPlan
from isochron.torch.jagged import jagged, positions_in_rows, ragged, spread, take

Aggregation = Literal[
    "token-mean",
    "token-sum",
    "seq-mean-token-sum",
    "seq-mean-token-mean",
    "seq-mean-token-sum-norm",
]


def token_weights(
    plan: StepPlan,
    loss_mask: Tensor,
    aggregation: Aggregation = "token-mean",
    *,
    loss_scale_factor: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """W of each token, jagged as the mask: the loss of the step is the sum of w * l over all.

    One denominator for the whole batch is in the weights, so a rank adds up w * l of the tokens it
    holds, gradients are summed over ranks and micro-batches, and the result is the same for
    every plan. T is what the mask sums to, S how many rows there are, t what the mask sums to in a
    row, m the mask:

    - `token-mean`: m / T; `token-sum`: m
    - `seq-mean-token-sum`: m / S; `seq-mean-token-mean`: m / (S * t)
    - `seq-mean-token-sum-norm`: m / (S * loss_scale_factor)

    `loss_mask` holds the rows of the whole batch. A token is trained as what the tokens before it
    predict: the first of a row is predicted by none and weighs and counts nothing; `pack_next` puts
    the weights where the prediction is made. Rows that the plan dropped and padding rows count
    nowhere. A batch with nothing to train weighs 0 everywhere.
    """
    rows = ragged("[token_weights]", loss_mask)
    if len(rows.lengths) != len(plan.lengths):
        raise ValueError(
            f"[token_weights] the mask has {len(rows.lengths)} rows, must have {len(plan.lengths)}"
        )
    runs = torch.ones(len(rows.lengths), dtype=torch.float64)
    runs[torch.tensor(plan.dropped, dtype=torch.int64)] = 0
    position = positions_in_rows(rows.lengths)
    row = spread(torch.arange(len(rows.lengths)), rows.lengths)
    mask = take(rows.values, spread(rows.starts, rows.lengths) + position).cpu().double()
    mask = mask * (position > 0) * runs[row]

    trained_of_row = torch.zeros_like(runs).index_add_(0, row, mask)
    denominators = {
        "token-mean": trained_of_row.sum().expand_as(runs),
        "token-sum": torch.ones_like(runs),
        "seq-mean-token-sum": runs.sum().expand_as(runs),
        "seq-mean-token-mean": runs.sum() * trained_of_row,
        "seq-mean-token-sum-norm": runs.sum().expand_as(runs) * loss_scale_factor,
    }
    if aggregation not in denominators:
        raise ValueError(
            f"[token_weights] aggregation is {aggregation!r}, must be one of "
            f"{', '.join(denominators)}"
        )
    weights = torch.where(mask != 0, mask / denominators[aggregation][row], 0.0)
    return jagged(weights.to(loss_mask.device, dtype), rows.lengths)

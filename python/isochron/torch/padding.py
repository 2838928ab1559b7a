"""Padded rows to jagged ones and back. Dtype, device and gradients are kept."""

from typing import Literal

import torch
from torch import Tensor

from isochron.torch.jagged import jagged, ragged, take


def jagged_from_padded(padded: Tensor, attention_mask: Tensor) -> Tensor:
    """The tokens of `padded` [rows, width, ..] that `attention_mask` [rows, width] names.

    Padding may stand left, right, on both sides or between tokens.
    """
    if padded.shape[:2] != attention_mask.shape:
        raise ValueError(
            f"[jagged_from_padded] padded has the shape {list(padded.shape)}, must begin with "
            f"that of the attention mask, {list(attention_mask.shape)}"
        )
    mask = attention_mask.bool()
    return jagged(padded[mask], mask.sum(1).cpu())


def padded_like(field: Tensor, attention_mask: Tensor, *, fill: float = 0) -> Tensor:
    """The inverse of `jagged_from_padded`: tokens where the mask says, `fill` everywhere else."""
    rows = ragged("[padded_like]", field)
    mask = attention_mask.bool().cpu()
    counts = mask.sum(1)
    if counts.shape != rows.lengths.shape:
        raise ValueError(
            f"[padded_like] the attention mask has {len(counts)} rows, "
            f"must have {len(rows.lengths)}"
        )
    if bool((counts != rows.lengths).any()):
        row = int((counts != rows.lengths).nonzero()[0])
        raise ValueError(
            f"[padded_like] row {row} of the attention mask names {int(counts[row])} tokens, "
            f"must name {int(rows.lengths[row])}"
        )
    nth = mask.cumsum(1) - 1  # token of its row
    index = torch.where(mask, rows.starts[:, None] + nth, -1)
    tokens = take(rows.values, index.flatten(), fill)
    return tokens.view(*mask.shape, *tokens.shape[1:])


def padded_from_jagged(
    field: Tensor,
    *,
    width: int | None = None,
    side: Literal["left", "right"] = "right",
    fill: float = 0,
) -> Tensor:
    """Rows of `width` tokens (none: as wide as the longest) with `fill` on one side."""
    lengths = ragged("[padded_from_jagged]", field).lengths
    longest = int(lengths.max()) if len(lengths) else 0
    width = longest if width is None else width
    if width < longest:
        raise ValueError(f"[padded_from_jagged] width is {width}, must be at least {longest}")
    if side not in ("left", "right"):
        raise ValueError(f"[padded_from_jagged] side is {side!r}, must be 'left' or 'right'")
    column = torch.arange(width)
    if side == "left":
        column = column.flip(0)
    return padded_like(field, column < lengths[:, None], fill=fill)

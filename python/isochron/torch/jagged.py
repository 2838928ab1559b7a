"""Rows of unequal length: jagged tensors taken apart and put together.

A jagged tensor is a nested tensor of the layout `torch.jagged`: the values of all rows one behind
the other, and where each row starts. Everything here keeps dtype, device and gradients.
"""

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Ragged:
    """A jagged tensor in parts. Rows may have gaps between them."""

    values: Tensor  # tokens first
    starts: Tensor  # int64, on the host: where each row starts in `values`
    lengths: Tensor  # int64, on the host: its tokens
    token_dim: int  # of the tokens in the values of the tensor that this was made of


def ragged(where: str, field: Tensor) -> Ragged:
    """The parts of a jagged tensor; errors begin with `where`."""
    if not is_jagged(field):
        raise ValueError(
            f"{where} the field is {described(field)}, must be jagged: "
            "torch.nested.as_nested_tensor(rows, layout=torch.jagged) or jagged_from_padded()"
        )
    token_dim = next(i for i, size in enumerate(field.shape) if isinstance(size, torch.SymInt)) - 1
    offsets: Tensor = field.offsets().to("cpu", torch.int64)  # type: ignore[attr-defined]
    lengths: Tensor | None = field.lengths()  # type: ignore[attr-defined]  # None without gaps
    return Ragged(
        values=field.values().movedim(token_dim, 0),
        starts=offsets[:-1],
        lengths=offsets.diff() if lengths is None else lengths.to("cpu", torch.int64),
        token_dim=token_dim,
    )


def described(field: Tensor) -> str:
    """What a field is, for errors."""
    if is_jagged(field):
        return "a jagged tensor"
    if field.is_nested:  # has no shape to speak of
        return "a nested tensor of another layout"
    return f"a tensor of shape {list(field.shape)}"


def is_jagged(field: Tensor) -> bool:
    """Whether `field` has rows of unequal length in the layout that torch supports."""
    return field.is_nested and field.layout == torch.jagged


def jagged(values: Tensor, lengths: Sequence[int] | Tensor, token_dim: int = 0) -> Tensor:
    """Rows of `lengths` tokens out of `values`, which holds them one behind the other.

    Tokens are the first dim of `values`; the result has them where `token_dim` says, as `ragged`
    found them.
    """
    sizes = torch.as_tensor(lengths, dtype=torch.int64)
    offsets = torch.zeros(len(sizes) + 1, dtype=torch.int64)
    torch.cumsum(sizes, 0, out=offsets[1:])
    bounds = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    return torch.nested.nested_tensor_from_jagged(
        values.movedim(0, token_dim),
        offsets.to(values.device),
        jagged_dim=token_dim + 1,
        min_seqlen=bounds[0],
        max_seqlen=bounds[1],
    )


def take(values: Tensor, index: Tensor, fill: float = 0) -> Tensor:
    """`values[index]` along the first dim, and `fill` where the index is -1.

    `index` is on the host. Gradients go to the values that were taken.
    """
    places = (index >= 0).nonzero().squeeze(1)
    taken = values.index_select(0, index[places].to(values.device))
    if len(places) == len(index):
        return taken
    filled = values.new_full((len(index), *values.shape[1:]), fill)
    return filled.index_copy(0, places.to(values.device), taken)


def positions_in_rows(lengths: Tensor) -> Tensor:
    """0, 1, .. for each row of `lengths`, one behind the other."""
    return torch.arange(int(lengths.sum())) - spread(lengths.cumsum(0) - lengths, lengths)


def spread(numbers: Tensor, lengths: Tensor) -> Tensor:
    """The number of each row, once for each of its tokens."""
    return numbers.repeat_interleave(lengths)


def shift_right(field: Tensor, *, fill: float = 0) -> Tensor:
    """Moves what stands at a token to the next token of its row; the first of each gets `fill`.

    Models answer at token t for token t + 1: this puts the answer where the token is.
    """
    rows = ragged("[shift_right]", field)
    position = positions_in_rows(rows.lengths)
    before = spread(rows.starts, rows.lengths) + position - 1
    shifted = take(rows.values, torch.where(position > 0, before, -1), fill)
    return jagged(shifted, rows.lengths, rows.token_dim)


def last_tokens(field: Tensor, lengths: Sequence[int] | Tensor) -> Tensor:
    """The last `lengths[i]` tokens of each row: the answer, where a row is prompt and answer."""
    rows = ragged("[last_tokens]", field)
    wanted = _row_lengths("[last_tokens]", lengths, len(rows.lengths))
    _require_none("[last_tokens]", wanted > rows.lengths, wanted, rows.lengths, "at most")
    starts = rows.starts + rows.lengths - wanted
    last = take(rows.values, spread(starts, wanted) + positions_in_rows(wanted))
    return jagged(last, wanted, rows.token_dim)


def extend_left(field: Tensor, lengths: Sequence[int] | Tensor, *, fill: float = 0) -> Tensor:
    """Rows of `lengths[i]` tokens that end with those of `field` and begin with `fill`.

    What belongs to the answer alone (its mask, its advantages) gets the length of the sequence.
    """
    rows = ragged("[extend_left]", field)
    wanted = _row_lengths("[extend_left]", lengths, len(rows.lengths))
    _require_none("[extend_left]", wanted < rows.lengths, wanted, rows.lengths, "at least")
    position = positions_in_rows(wanted) - spread(wanted - rows.lengths, wanted)
    index = torch.where(position >= 0, spread(rows.starts, wanted) + position, -1)
    return jagged(take(rows.values, index, fill), wanted, rows.token_dim)


def _row_lengths(where: str, lengths: Sequence[int] | Tensor, num_rows: int) -> Tensor:
    result = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    if result.shape != (num_rows,):
        raise ValueError(
            f"{where} lengths has the shape {list(result.shape)}, must be [{num_rows}]: "
            "one for each row"
        )
    _require_none(where, result < 0, result, torch.zeros_like(result), "at least")
    return result


def _require_none(where: str, wrong: Tensor, given: Tensor, limit: Tensor, relation: str) -> None:
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"{where} lengths[{row}] is {int(given[row])}, must be {relation} {int(limit[row])}"
        )

"""Rows of a batch to the packed tokens of a shard, and back to rows."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from isochron.torch.fields import BatchT, combine_fields
from isochron.torch.gather import Gradient, gather_shards
from isochron.torch.jagged import Ragged, described, jagged, positions_in_rows, ragged, spread, take
from isochron.torch.microbatch import Microbatch
from isochron.torch.shard import Shard, shard_of


def pack(
    batch: BatchT, shard: Shard, *, fill: float = 0, rows: Sequence[int] | None = None
) -> BatchT:
    """What the shard holds of a batch: a tensor, a mapping of fields or a TensorDict.

    A jagged field becomes its T tokens, with `fill` for padding; a field with one entry a row
    becomes those of the micro-batch's rows, in its order, with 0 (None in a list) for padding rows.
    Dims, dtype, device and gradients are kept; a TensorDict comes back without a batch size.

    `batch` holds the whole batch, or the rows whose ids are `rows` (see `rows_of`). Raises
    ValueError if a row is missing or has not as many tokens as the plan says.
    """
    place = _Places.of("pack", shard.microbatch, rows)

    def pack_field(where: str, parts: list[Tensor]) -> Tensor:
        if parts[0].is_nested:
            return _pack_tokens(where, parts[0], shard.source, place, fill)
        _require_rows(where, len(parts[0]) if parts[0].dim() else 0, place.num_rows)
        return take(parts[0], place.of_sequence)

    def pack_list(where: str, parts: list[list[Any]]) -> list[Any]:
        _require_rows(where, len(parts[0]), place.num_rows)
        return [parts[0][row] if row >= 0 else None for row in place.of_sequence.tolist()]

    return combine_fields("pack", [batch], pack_field, pack_list)


def pack_next(
    batch: BatchT, shard: Shard, *, fill: float = 0, rows: Sequence[int] | None = None
) -> BatchT:
    """Like `pack` for jagged fields alone, but each token gets what the next of its sequence has.

    That one may be on another rank. Last tokens and padding get `fill`. Of token ids these are the
    labels, of a loss mask or of weights those of the labels.
    """
    place = _Places.of("pack_next", shard.microbatch, rows)

    def pack_field(where: str, parts: list[Tensor]) -> Tensor:
        return _pack_tokens(where, parts[0], shard.target, place, fill)

    return combine_fields("pack_next", [batch], pack_field, _reject_list)


def unpack(
    packed: BatchT,
    shard: Shard,
    group: dist.ProcessGroup | None = None,
    *,
    gradient: Gradient = "own",
) -> BatchT:
    """The whole sequences of the micro-batch out of what each rank computed for its T tokens.

    `packed` is a tensor [T, ..], a mapping of such or a TensorDict; they come back jagged, in the
    order of `microbatch.sequences`, padding rows included. In a context group of several ranks
    all members call this with the same names, and `group` is theirs; `gradient` says which
    gradient a shard gets (see `gather_shards`).
    """
    microbatch = shard.microbatch
    if microbatch.context_size > 1 and group is None:
        raise ValueError(
            f"[unpack] the micro-batch is shared by {microbatch.context_size} ranks, must get "
            "their process group"
        )

    def unpack_field(where: str, parts: list[Tensor]) -> Tensor:
        _require_tokens(where, parts[0], len(shard.source))
        if group is None or microbatch.context_size == 1:
            return join_shards(parts, microbatch)
        return join_shards(gather_shards(parts[0], group, gradient=gradient), microbatch)

    return combine_fields("unpack", [packed], unpack_field, _reject_list, len(microbatch.sequences))


def join_shards(parts: Sequence[Tensor] | Tensor, microbatch: Microbatch) -> Tensor:
    """The whole sequences, jagged, out of the packed tokens of every rank of the context group."""
    if len(parts) != microbatch.context_size:
        raise ValueError(
            f"[join_shards] there are {len(parts)} parts, must be {microbatch.context_size}: "
            "one for each rank of the group"
        )
    sources = []
    for context_rank, part in enumerate(parts):
        sources.append(shard_of(microbatch, context_rank=context_rank).source)
        _require_tokens(f"[join_shards] part {context_rank}:", part, len(sources[-1]))
    source = torch.cat(sources)
    places = (source >= 0).nonzero().squeeze(1)
    place_of_token = torch.empty_like(places)
    place_of_token[source[places]] = places
    return jagged(take(torch.cat(tuple(parts)), place_of_token), microbatch.lengths)


@dataclasses.dataclass(frozen=True)
class _Places:
    """Where the sequences of a micro-batch stand in a batch."""

    microbatch: Microbatch
    num_rows: int  # of the batch
    of_sequence: Tensor  # int64; -1 for padding rows, which are in no batch

    @classmethod
    def of(cls, name: str, microbatch: Microbatch, rows: Sequence[int] | None) -> "_Places":
        held = range(microbatch.num_rows) if rows is None else rows
        place_of = {int(row): place for place, row in enumerate(held)}
        for sequence in microbatch.sequences:
            if sequence < microbatch.num_rows and sequence not in place_of:
                raise ValueError(f"[{name}] the micro-batch has row {sequence}, which rows lacks")
        places = [place_of.get(sequence, -1) for sequence in microbatch.sequences]
        return cls(microbatch, len(held), torch.tensor(places, dtype=torch.int64))


def _pack_tokens(
    where: str, field: Tensor, token_of_place: Tensor, place: _Places, fill: float
) -> Tensor:
    """The tokens of the group's sequences that `token_of_place` names, `fill` where it is -1."""
    tokens = ragged(where, field)
    _require_rows(where, len(tokens.lengths), place.num_rows)
    index = _token_index(where, tokens, place)
    index = torch.where(token_of_place >= 0, index[token_of_place], -1)
    return take(tokens.values, index, fill).movedim(0, tokens.token_dim)


def _token_index(where: str, tokens: Ragged, place: _Places) -> Tensor:
    """Where each token of the micro-batch's sequences stands in the values of the field."""
    lengths = torch.tensor(place.microbatch.lengths, dtype=torch.int64)
    is_padding = place.of_sequence < 0
    given = torch.where(is_padding, lengths, take(tokens.lengths, place.of_sequence))
    if bool((given != lengths).any()):
        i = int((given != lengths).nonzero()[0])
        raise ValueError(
            f"{where} row {place.microbatch.sequences[i]} has {int(given[i])} tokens, the plan has "
            f"{int(lengths[i])}"
        )
    index = spread(take(tokens.starts, place.of_sequence), lengths) + positions_in_rows(lengths)
    return torch.where(spread(is_padding, lengths), -1, index)


def _require_rows(where: str, given: int, num_rows: int) -> None:
    if given != num_rows:
        raise ValueError(f"{where} the field has {given} rows, must have {num_rows}")


def _require_tokens(where: str, part: Tensor, num_tokens: int) -> None:
    if part.is_nested or part.dim() == 0 or len(part) != num_tokens:
        raise ValueError(
            f"{where} packed is {described(part)}, must begin with the {num_tokens} tokens of "
            "the shard"
        )


def _reject_list(where: str, parts: list[list[Any]]) -> list[Any]:
    raise ValueError(f"{where} the field is a list of {len(parts[0])}, must be a tensor")

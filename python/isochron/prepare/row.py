"""One row of the input into one row of tokens: conversation, turns, media, length."""

import dataclasses
from typing import Any

import numpy as np

from isochron.prepare.conversation import conversation_of
from isochron.prepare.media import (
    MediaPositions,
    MediaTemplate,
    MediaTokens,
    load_config,
    load_processor,
)
from isochron.prepare.options import PrepareOptions
from isochron.prepare.rendering import TextTemplate, describe_tokenizer, load_tokenizer
from isochron.prepare.source import RowError
from isochron.prepare.turns import TurnRenderer

MISMATCH_HINT = "; --ignore-input-ids-mismatch keeps the tokens of the messages one by one"


@dataclasses.dataclass(frozen=True)
class TokenRow:
    """A row as it is stored."""

    input_ids: np.ndarray  # int32 [tokens]
    loss_mask: np.ndarray  # uint8 [tokens]
    position_ids: np.ndarray | None = None  # int32 [tokens] or [4, tokens]; None: 0, 1, 2, ..
    media: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    group: str | None = None
    mismatch: str = ""
    num_without_prompt: int = 0

    @property
    def num_trained(self) -> int:
        """Tokens that are targets: the first token of a row never is."""
        return int(self.loss_mask[1:].sum())


def kept_range(num_tokens: int, max_length: int, truncation: str) -> tuple[int, int]:
    """First and last + 1 of the tokens that stay. Raises RowError if they all must and cannot."""
    if num_tokens <= max_length:
        return 0, num_tokens
    if truncation == "left":
        return num_tokens - max_length, num_tokens
    if truncation == "right":
        return 0, max_length
    raise RowError(
        f"has {num_tokens} tokens, max_length is {max_length}; --truncation left or right cuts it"
    )


class RowMaker:
    """Makes rows with the tokenizer, or the processor, of one model folder."""

    def __init__(self, options: PrepareOptions) -> None:
        self._options = options
        self._tokens: MediaTokens | None = None
        self._positions: MediaPositions | None = None
        if options.keep_media:
            processor = load_processor(options.model)
            config = load_config(options.model)
            template: Any = MediaTemplate(processor, options.drop_media_keys)
            self._tokens = MediaTokens(processor, config)
            self._positions = MediaPositions(config)
            self._describe = (processor.tokenizer, options.model, processor.chat_template)
        else:
            tokenizer = load_tokenizer(options.model)
            template = TextTemplate(tokenizer)
            self._describe = (tokenizer, options.model, tokenizer.chat_template)
        self._turns = TurnRenderer(template, options.apply_chat_template_kwargs)

    def description(self) -> dict[str, Any]:
        """Where the tokens come from."""
        return describe_tokenizer(*self._describe)

    def row(self, columns: dict[str, Any]) -> TokenRow:
        """The row of these columns. Raises RowError, or MediaError for media that are not kept."""
        options = self._options
        conversation = conversation_of(columns, options)
        turns = self._turns.turns(conversation)
        if turns.mismatch and not options.ignore_input_ids_mismatch:
            raise RowError(turns.mismatch + MISMATCH_HINT)
        ids = turns.rendering.ids
        if len(ids) == 0:
            raise RowError("has no tokens: the chat template renders nothing")

        start, stop = kept_range(len(ids), options.max_length, options.truncation)
        positions = None if start == 0 else np.arange(len(ids), dtype=np.int32)
        media: dict[str, np.ndarray] = {}
        if conversation.has_media:
            assert self._tokens is not None
            assert self._positions is not None
            in_space = self._positions.positions(turns.rendering)
            positions = positions if in_space is None else in_space
            _check_cut(self._tokens.mask(turns.rendering), len(ids), start, stop)
            media = {
                name: values[start:stop] for name, values in turns.rendering.per_token.items()
            } | turns.rendering.media
            media = {
                name: value
                for name, value in media.items()
                if name.split(".")[0] not in options.drop_media_keys
            }
        return TokenRow(
            input_ids=ids[start:stop],
            loss_mask=turns.loss_mask[start:stop],
            position_ids=None if positions is None else positions[..., start:stop],
            media=media,
            group=conversation.group,
            mismatch=turns.mismatch,
            num_without_prompt=turns.num_without_prompt,
        )


def _check_cut(is_media: np.ndarray | None, num_tokens: int, start: int, stop: int) -> None:
    """Raises RowError if a token that stands for media would go: its media would stay."""
    if stop - start == num_tokens:
        return
    too_long = f"has {num_tokens} tokens, max_length is {stop - start}, and the cut "
    if is_media is None:
        raise RowError(
            too_long + "may take media tokens: the processor does not say which they are"
        )
    num_lost = int(is_media[:start].sum() + is_media[stop:].sum())
    if num_lost > 0:
        raise RowError(too_long + f"would take {num_lost} media tokens")

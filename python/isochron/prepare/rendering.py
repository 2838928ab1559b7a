"""Messages through a chat template into tokens: what a tokenizer or a processor makes of them."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from isochron.console import InputError, WorldError, one_line, quiet_transformers
from isochron.prepare.conversation import Message


@dataclasses.dataclass(frozen=True)
class Rendering:
    """Tokens, what a processor says of each of them, and the media beside them."""

    ids: np.ndarray  # int32 [tokens]
    per_token: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # [tokens] each
    media: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # any shape

    def part(self, start: int, stop: int | None = None) -> "Rendering":
        """Tokens from `start` to `stop`, with what is said of them, without media."""
        return Rendering(
            self.ids[start:stop],
            {name: values[start:stop] for name, values in self.per_token.items()},
        )


def join(parts: Sequence[Rendering]) -> Rendering:
    """One after the other; keeps what is said of the tokens of every part."""
    names = set.intersection(*(set(part.per_token) for part in parts))
    return Rendering(
        np.concatenate([part.ids for part in parts]),
        {name: np.concatenate([part.per_token[name] for part in parts]) for name in sorted(names)},
    )


class RejectedError(Exception):
    """The template does not take these messages; the message says why."""


class Template(Protocol):
    """A chat template with its tokenizer."""

    def render(
        self,
        messages: Sequence[Message],
        tools: list[dict[str, Any]] | None,
        kwargs: dict[str, Any],
    ) -> Rendering:
        """The tokens of `messages`. Raises RejectedError if the template does not take them."""
        ...

    def text_content(self, text: str) -> Any:
        """`text` as the content of a message."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens."""
        ...


class TextTemplate:
    """A tokenizer and its chat template."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def render(
        self,
        messages: Sequence[Message],
        tools: list[dict[str, Any]] | None,
        kwargs: dict[str, Any],
    ) -> Rendering:
        try:
            output = self._tokenizer.apply_chat_template(
                list(messages), tools=tools, tokenize=True, return_dict=True, **kwargs
            )
        except Exception as error:  # a template is a program, and may fail in any way
            raise RejectedError(one_line(error)) from error
        return Rendering(np.asarray(output["input_ids"], dtype=np.int32).reshape(-1))

    def text_content(self, text: str) -> Any:
        return text

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids)


def load_tokenizer(folder: str) -> Any:
    """The tokenizer of a model folder, which must have a chat template."""
    check_model_folder(folder)
    quiet_transformers()
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # whatever transformers raises, the folder is at fault
        raise InputError(f"{folder} has no usable tokenizer: {one_line(error)}") from error
    if not tokenizer.chat_template:
        raise InputError(
            f"{folder} has no chat template: chat_template.jinja, or chat_template in "
            "tokenizer_config.json"
        )
    return tokenizer


def check_model_folder(folder: str) -> None:
    """Raises WorldError unless `folder` is one."""
    if not os.path.isdir(folder):
        raise WorldError(f"{folder}: no such folder; model must be a Hugging Face folder")


def describe_tokenizer(tokenizer: Any, folder: str, template: Any) -> dict[str, Any]:
    """What is stored with the data of where its tokens come from."""
    text = template if isinstance(template, str) else repr(sorted(template.items()))
    return {
        "tokenizer": {"model": folder, "class": type(tokenizer).__name__, "size": len(tokenizer)},
        "chat_template": text,
        "chat_template_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }

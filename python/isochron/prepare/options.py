"""What `python -m isochron.prepare` can be asked: one row per option, under verl's names.

The fields of PrepareOptions are the flags of the command (`messages_key` is `--messages-key`) and,
except those that cannot change the result, the `options` of every shard and of index.json.
"""

import argparse
import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

from isochron.console import InputError, Parser

TRUNCATIONS = ("error", "left", "right")
ON_ERRORS = ("error", "skip")

# Arguments that rendering itself passes to apply_chat_template.
RESERVED_KWARGS = frozenset(
    {
        "conversation",
        "tools",
        "add_generation_prompt",
        "continue_final_message",
        "tokenize",
        "return_dict",
        "return_tensors",
        "return_assistant_tokens_mask",
        "padding",
        "truncation",
        "max_length",
    }
)


def _row(default: Any, meaning: str, parse: Callable[[str], Any] = str, **more: Any) -> Any:
    if isinstance(default, dict):
        return dataclasses.field(
            default_factory=lambda: dict(default),
            metadata={"help": meaning, "parse": parse, **more},
        )
    return dataclasses.field(default=default, metadata={"help": meaning, "parse": parse, **more})


def parse_optional_bool(text: str) -> bool | None:
    """true, false or null, as YAML and JSON write them."""
    values = {"true": True, "false": False, "null": None}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} must be true, false or null")
    return values[text.lower()]


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} must be a JSON object")
    return value


def parse_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


@dataclasses.dataclass(frozen=True)
class PrepareOptions:
    """Options of prepare(); checked on construction, which raises InputError."""

    files: tuple[str, ...]
    model: str
    output: str
    messages_key: str = _row("messages", "column with the list of messages")
    tools_key: str = _row("tools", "column with the tools: a list, or JSON text of one")
    enable_thinking_key: str = _row("enable_thinking", "column that sets enable_thinking per row")
    enable_thinking_default: bool | None = _row(
        None,
        "enable_thinking where the column says nothing; null leaves it to the template",
        parse_optional_bool,
        metavar="true|false|null",
    )
    image_key: str = _row("images", "column with the images of a row")
    video_key: str = _row("videos", "column with the videos of a row")
    group_key: str | None = _row(None, "column that groups rows; stored as `group`")
    apply_chat_template_kwargs: dict[str, Any] = _row(
        {}, "arguments for the chat template, a JSON object", parse_object, metavar="JSON"
    )
    ignore_input_ids_mismatch: bool = _row(
        False,
        "warn once, rather than fail, where rendering message by message differs from "
        "rendering the whole conversation",
    )
    max_length: int = _row(1024, "most tokens of a row", int)
    truncation: str = _row(
        "error",
        "what happens to a longer row: error, left (keeps the tail), right (keeps the head)",
        choices=TRUNCATIONS,
    )
    max_samples: int = _row(-1, "use the first N rows; -1: all", int)
    keep_media: bool = _row(False, "store what the model's processor makes of images and videos")
    drop_media_keys: tuple[str, ...] = _row(
        (), "outputs of the processor that are not stored, with commas between them", parse_names
    )
    on_error: str = _row(
        "error",
        "what happens to a row that cannot be used: error, skip (listed in index.json)",
        choices=ON_ERRORS,
    )
    shard_tokens: int = _row(2**27, "a shard ends before it would hold more tokens", int)
    num_workers: int = _row(1, "processes that tokenise; the output is the same", int)
    overwrite: bool = _row(False, "replace an output folder that exists")

    def __post_init__(self) -> None:
        for name in ("max_length", "shard_tokens", "num_workers"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, must be at least 1")
        if self.max_length > 2**31 - 1:
            raise InputError(f"max_length is {self.max_length}, must be at most {2**31 - 1}")
        if self.max_samples != -1 and self.max_samples < 1:
            raise InputError(f"max_samples is {self.max_samples}, must be -1 or at least 1")
        for name, allowed in (("truncation", TRUNCATIONS), ("on_error", ON_ERRORS)):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}, must be one of {', '.join(allowed)}"
                )
        for name in sorted(RESERVED_KWARGS & self.apply_chat_template_kwargs.keys()):
            raise InputError(f"apply_chat_template_kwargs has {name!r}, which prepare itself sets")
        if self.drop_media_keys and not self.keep_media:
            raise InputError("drop_media_keys needs keep_media")

    def columns(self) -> list[str]:
        """The columns that are read where a file has them."""
        names = [
            self.messages_key,
            self.tools_key,
            self.enable_thinking_key,
            self.image_key,
            self.video_key,
        ]
        if self.group_key is not None:
            names.append(self.group_key)
        if len(set(names)) < len(names):
            raise InputError(f"two keys name the same column: {', '.join(names)}")
        return names

    def recorded(self) -> dict[str, Any]:
        """What is stored with the data: all that can change it."""
        apart = ("files", "model", "output", "num_workers", "overwrite")
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in apart
        }


def parse_options(arguments: Sequence[str]) -> PrepareOptions:
    """The options that a command line asks for. Raises InputError."""
    parser = Parser(
        prog="python -m isochron.prepare",
        description="Turns conversations (parquet or JSONL) into tokenised safetensors shards.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="parquet or JSONL, told by content"
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="FOLDER",
        help="Hugging Face folder with the tokenizer and the chat template",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="folder to make")
    for field in dataclasses.fields(PrepareOptions):
        if "help" not in field.metadata:
            continue
        flag = "--" + field.name.replace("_", "-")
        details = dict(field.metadata)
        parse, meaning = details.pop("parse"), details.pop("help")
        if field.type is bool:
            parser.add_argument(flag, action="store_true", help=meaning)
            continue
        default = {} if field.default is dataclasses.MISSING else field.default
        shown = {None: "null", (): "none"}.get(default, default) if default != {} else "{}"
        parser.add_argument(
            flag, type=parse, default=default, help=f"{meaning} [{shown}]", **details
        )
    values = vars(parser.parse_args(arguments))
    return PrepareOptions(**{**values, "files": tuple(values["files"])})

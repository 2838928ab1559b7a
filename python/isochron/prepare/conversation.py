"""A row of the input as a conversation: checked, with placeholders replaced by media.

String content is split on the literals `<image>` and `<video>`; the n-th of them takes the n-th
image or video of the row. A row whose media columns are missing or null is text, and keeps them.
"""

import dataclasses
import json
import re
from typing import Any

from isochron.console import InputError
from isochron.prepare.options import PrepareOptions
from isochron.prepare.source import RowError, type_name

Message = dict[str, Any]

MEDIA_TYPES = ("image", "video", "image_url", "video_url", "audio", "input_audio")


class MediaError(InputError):
    """There are media and nobody asked to keep them: a matter of options, not of one row."""


@dataclasses.dataclass(frozen=True)
class Conversation:
    """What a chat template takes."""

    messages: list[Message]
    tools: list[dict[str, Any]] | None = None
    enable_thinking: bool | None = None
    group: str | None = None
    has_media: bool = False


def conversation_of(columns: dict[str, Any], options: PrepareOptions) -> Conversation:
    """The conversation of a row. Raises RowError, or MediaError for media that are not kept."""
    messages = _checked_messages(columns.get(options.messages_key))
    media = {
        "image": _checked_media(columns, options.image_key),
        "video": _checked_media(columns, options.video_key),
    }
    _refuse_media(messages, media, options)
    if options.keep_media:
        messages = _with_segments(messages, media)
    return Conversation(
        messages=messages,
        tools=_checked_tools(columns.get(options.tools_key)),
        enable_thinking=_checked_thinking(columns.get(options.enable_thinking_key), options),
        group=_checked_group(columns, options.group_key),
        has_media=any(
            _media_segment(segment) for message in messages for segment in _segments(message)
        ),
    )


def _checked_messages(value: Any) -> list[Message]:
    if not isinstance(value, list):
        raise RowError(f"messages is {type_name(value)}, must be a list of {{role, content}}")
    if not value:
        raise RowError("messages is empty")
    return [_checked_message(index, message) for index, message in enumerate(value)]


def _checked_message(index: int, message: Any) -> Message:
    if not isinstance(message, dict):
        raise RowError(f"messages[{index}] is {type_name(message)}, must be {{role, content}}")
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise RowError(f"messages[{index}].role is {json.dumps(role)}, must be a string")
    content = message.get("content")
    if isinstance(content, list):
        for segment in content:
            if not isinstance(segment, dict) or not isinstance(segment.get("type"), str):
                raise RowError(f"messages[{index}].content has a segment without a type")
    elif content is None:
        if not message.get("tool_calls"):
            raise RowError(
                f"messages[{index}].content is missing, must be there without tool_calls"
            )
    elif not isinstance(content, str):
        raise RowError(
            f"messages[{index}].content is {type_name(content)}, must be a string or a "
            "list of segments"
        )
    # Templates ask whether a key is there: a key that says nothing must not be.
    return {
        name: field for name, field in message.items() if field is not None or name == "content"
    }


def _checked_tools(value: Any) -> list[dict[str, Any]] | None:
    if isinstance(value, str):
        value = _parsed_tool(value) if value.strip() else None
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise RowError(f"tools is {type_name(value)}, must be a list or JSON text of one")
    tools = [_parsed_tool(tool) if isinstance(tool, str) else tool for tool in value]
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise RowError(f"tools[{index}] is {type_name(tool)}, must be an object")
    return tools


def _parsed_tool(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise RowError(f"tools is not JSON: {error.msg} at column {error.colno}") from error


def _checked_thinking(value: Any, options: PrepareOptions) -> bool | None:
    if value is None:
        return options.enable_thinking_default
    if value in (0, 1) and isinstance(value, bool | int):
        return bool(value)
    raise RowError(f"{options.enable_thinking_key} is {value!r}, must be true, false or null")


def _checked_group(columns: dict[str, Any], key: str | None) -> str | None:
    if key is None:
        return None
    value = columns.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RowError(f"{key} is {type_name(value)}, must be a string or an integer")
    return str(value)


def _checked_media(columns: dict[str, Any], key: str) -> list[Any] | None:
    """The media items of a row, None if it has no such column."""
    value = columns.get(key)
    if value is not None and not isinstance(value, list):
        raise RowError(f"{key} is {type_name(value)}, must be a list")
    return value


def _refuse_media(
    messages: list[Message], media: dict[str, list[Any] | None], options: PrepareOptions
) -> None:
    if options.keep_media:
        return
    for kind, key in (("image", options.image_key), ("video", options.video_key)):
        if media[kind]:
            raise MediaError(
                f"column {key!r} holds media; --keep-media stores them beside the rows"
            )
    for index, message in enumerate(messages):
        for segment in _segments(message):
            if _media_segment(segment):
                raise MediaError(
                    f"messages[{index}].content has a segment of type "
                    f"{segment['type']!r}; --keep-media stores media beside the rows"
                )


def _segments(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _media_segment(segment: dict[str, Any]) -> bool:
    return segment["type"] in MEDIA_TYPES


def _with_segments(messages: list[Message], media: dict[str, list[Any] | None]) -> list[Message]:
    """The messages as a processor takes them: every content is a list of segments."""
    taken = {"image": 0, "video": 0}
    marks = [kind for kind, items in media.items() if items is not None]
    result = []
    for message in messages:
        if isinstance(message.get("content"), str):
            message = {**message, "content": _split(message["content"], media, marks, taken)}
        result.append(message)
    for kind, items in media.items():
        if items is not None and taken[kind] != len(items):
            raise RowError(f"has {taken[kind]} placeholders <{kind}> for {len(items)} {kind}s")
    return result


def _split(
    content: str, media: dict[str, list[Any] | None], marks: list[str], taken: dict[str, int]
) -> list[dict[str, Any]]:
    if not marks:
        return [{"type": "text", "text": content}]
    segments: list[dict[str, Any]] = []
    for part in re.split("(" + "|".join(f"<{kind}>" for kind in marks) + ")", content):
        kind = part[1:-1]
        if part == f"<{kind}>" and kind in marks:
            items = media[kind] or []
            if taken[kind] < len(items):
                segments.append({"type": kind, kind: items[taken[kind]]})
            taken[kind] += 1
        elif part:
            segments.append({"type": "text", "text": part})
    return segments or [{"type": "text", "text": ""}]

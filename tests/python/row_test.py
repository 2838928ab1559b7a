"""One row: what is accepted, how it is cut."""

import pathlib
from typing import Any

import numpy as np
import pytest

from chat_templates import (
    CHATML,
    DEFAULT_SYSTEM,
    LAST_THOUGHT,
    THINKING,
    save_word_model,
    say,
    words_of,
)
from isochron.console import InputError
from isochron.prepare.options import PrepareOptions, parse_options
from isochron.prepare.row import RowMaker, TokenRow, kept_range
from isochron.prepare.source import RowError


@pytest.fixture
def make(tmp_path: pathlib.Path):
    """Makes one row of columns, under a template and options."""

    def make_row(columns: dict[str, Any], template: str = CHATML, **options: Any) -> TokenRow:
        model = save_word_model(tmp_path / "model", template)
        return RowMaker(PrepareOptions((), str(model), "out", **options)).row(columns)

    return make_row


def test_truncation_cuts_ids_mask_and_positions_together(make: Any):
    columns = {"messages": say("hi", "hello")}  # 12 tokens
    whole = make(columns)
    assert whole.position_ids is None
    left = make(columns, max_length=5, truncation="left")
    assert left.input_ids.tolist() == whole.input_ids[-5:].tolist()
    assert left.loss_mask.tolist() == whole.loss_mask[-5:].tolist() == [0, 0, 1, 1, 1]
    assert left.position_ids.tolist() == [7, 8, 9, 10, 11]
    right = make(columns, max_length=10, truncation="right")
    assert right.input_ids.tolist() == whole.input_ids[:10].tolist()
    assert right.loss_mask.tolist() == whole.loss_mask[:10].tolist()
    assert right.position_ids is None  # 0 .. 9
    with pytest.raises(
        RowError, match="has 12 tokens, max_length is 11; --truncation left or right"
    ):
        make(columns, max_length=11)
    assert len(make(columns, max_length=12).input_ids) == 12


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("max_length", [1, 2, 6, 7, 8])
def test_what_stays_is_a_head_or_a_tail_and_as_long_as_it_may_be(length: int, max_length: int):
    assert kept_range(length, max_length, "right") == (0, min(length, max_length))
    assert kept_range(length, max_length, "left") == (length - min(length, max_length), length)


def test_a_row_of_one_token_has_no_target(make: Any):
    row = make({"messages": say("hi")}, "{{ messages[0].content }}", ignore_input_ids_mismatch=True)
    assert (row.input_ids.tolist(), row.num_trained) == ([11], 0)
    cut = make({"messages": say("hi", "hello")}, max_length=1, truncation="left")
    assert (cut.loss_mask.tolist(), cut.num_trained) == ([1], 0)  # the first token is no target


def test_a_template_that_renders_nothing_is_an_error(make: Any):
    with pytest.raises(RowError, match="has no tokens: the chat template renders nothing"):
        make({"messages": say("hi")}, "{# nothing #}")


def test_a_mismatch_is_an_error_that_names_the_way_out(make: Any):
    columns = {"messages": say("hi", "hello")}
    with pytest.raises(RowError, match="differs: .*; --ignore-input-ids-mismatch keeps"):
        make(columns, LAST_THOUGHT)
    row = make(columns, LAST_THOUGHT, ignore_input_ids_mismatch=True)
    assert "<think>" not in words_of(row.input_ids)  # the messages one by one win
    assert row.mismatch


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        (None, "messages is null, must be a list"),
        ("hi", "messages is a string, must be a list"),
        ([], "messages is empty"),
        (["hi"], r"messages\[0\] is a string, must be {role, content}"),
        ([{"content": "hi"}], r"messages\[0\].role is null, must be a string"),
        ([{"role": 3, "content": "hi"}], r"messages\[0\].role is 3, must be a string"),
        ([{"role": "", "content": "hi"}], r'messages\[0\].role is "", must be a string'),
        ([{"role": "user"}], r"messages\[0\].content is missing"),
        ([{"role": "user", "content": None}], r"messages\[0\].content is missing"),
        ([{"role": "user", "content": 7}], r"messages\[0\].content is a number"),
        (
            [{"role": "user", "content": ["hi"]}],
            r"messages\[0\].content has a segment without a type",
        ),
    ],
)
def test_messages_of_the_wrong_shape_are_errors(make: Any, messages: Any, error: str):
    with pytest.raises(RowError, match=error):
        make({"messages": messages})


def test_text_that_is_no_unicode_is_an_error(make: Any):
    with pytest.raises(RowError, match="is rejected by the chat template"):
        make({"messages": say("\ud800")})


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "add"}, {"name": "mul"}],
        '[{"name": "add"}, {"name": "mul"}]',
        ['{"name": "add"}', '{"name": "mul"}'],
    ],
)
def test_tools_are_a_list_or_json_text(make: Any, tools: Any):
    row = make({"messages": say("hi"), "tools": tools}, DEFAULT_SYSTEM)
    assert words_of(row.input_ids).startswith(
        "<|im_start|> system / helpful tools: add mul <|im_end|>"
    )


@pytest.mark.parametrize("tools", [None, [], "", "[]", "null"])
def test_no_tools_are_no_tools(make: Any, tools: Any):
    row = make({"messages": say("hi"), "tools": tools}, DEFAULT_SYSTEM)
    assert words_of(row.input_ids).startswith("<|im_start|> system / helpful <|im_end|>")


@pytest.mark.parametrize(
    ("tools", "error"),
    [
        ("[", "tools is not JSON"),
        ("{}", "tools is an object, must be a list"),
        (3, "tools is a number, must be a list"),
        ([3], r"tools\[0\] is a number, must be an object"),
    ],
)
def test_tools_of_the_wrong_type_are_errors(make: Any, tools: Any, error: str):
    with pytest.raises(RowError, match=error):
        make({"messages": say("hi"), "tools": tools})


def test_thinking_comes_from_the_row_then_the_default(make: Any):
    def thinks(columns: dict[str, Any], **options: Any) -> bool:
        row = make({"messages": say("hi", "hello"), **columns}, THINKING, **options)
        return "<think>" not in words_of(row.input_ids)

    assert thinks({})
    assert thinks({"enable_thinking": None})
    assert not thinks({"enable_thinking": False})
    assert not thinks({"enable_thinking": 0})
    assert not thinks({}, enable_thinking_default=False)
    assert thinks({"enable_thinking": True}, enable_thinking_default=False)
    assert not thinks({"on": False}, enable_thinking_key="on")
    for wrong in ("none", "true", 2, 1.0, []):
        with pytest.raises(RowError, match="enable_thinking is .*, must be true, false or null"):
            thinks({"enable_thinking": wrong})


def test_a_key_that_says_nothing_is_not_there_for_the_template(make: Any):
    template = (
        "{%- for m in messages %}{{ 'call:' if 'tool_calls' in m else m.content }}{%- endfor %}"
    )
    row = make({"messages": [{"role": "user", "content": "hi", "tool_calls": None}]}, template)
    assert words_of(row.input_ids) == "hi"


def test_a_group_is_a_string_or_an_integer(make: Any):
    columns = {"messages": say("hi"), "task": 7}
    assert make(columns, group_key="task").group == "7"
    assert make(columns).group is None
    for wrong in (None, 1.5, True):
        with pytest.raises(RowError, match="task is .*, must be a string or an integer"):
            make({**columns, "task": wrong}, group_key="task")


def test_rows_are_stored_as_the_data_format_wants(make: Any):
    row = make({"messages": say("hi", "hello")}, max_length=5, truncation="left")
    assert (row.input_ids.dtype, row.loss_mask.dtype, row.position_ids.dtype) == (
        np.int32,
        np.uint8,
        np.int32,
    )


def test_options_have_the_names_and_defaults_of_verl_but_null_thinking():
    options = parse_options(["a", "--model", "m", "-o", "o"])
    assert options == PrepareOptions(("a",), "m", "o")
    assert options.recorded() == {
        "messages_key": "messages",
        "tools_key": "tools",
        "enable_thinking_key": "enable_thinking",
        "enable_thinking_default": None,
        "image_key": "images",
        "video_key": "videos",
        "group_key": None,
        "apply_chat_template_kwargs": {},
        "ignore_input_ids_mismatch": False,
        "max_length": 1024,
        "truncation": "error",
        "max_samples": -1,
        "keep_media": False,
        "drop_media_keys": (),
        "on_error": "error",
        "shard_tokens": 2**27,
    }
    assert parse_options(
        [
            "a",
            "b",
            "--model",
            "m",
            "-o",
            "o",
            "--messages-key",
            "c",
            "--enable-thinking-default",
            "false",
            "--max-length",
            "7",
            "--apply-chat-template-kwargs",
            '{"a":1}',
            "--truncation",
            "left",
            "--keep-media",
            "--drop-media-keys",
            "x,y",
            "--num-workers",
            "3",
        ]
    ) == PrepareOptions(
        ("a", "b"),
        "m",
        "o",
        messages_key="c",
        enable_thinking_default=False,
        max_length=7,
        apply_chat_template_kwargs={"a": 1},
        truncation="left",
        keep_media=True,
        drop_media_keys=("x", "y"),
        num_workers=3,
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("--max-length 0", "max_length is 0, must be at least 1"),
        ("--max-length 2147483648", "max_length is 2147483648, must be at most 2147483647"),
        ("--max-samples 0", "max_samples is 0, must be -1 or at least 1"),
        ("--num-workers 0", "num_workers is 0, must be at least 1"),
        ("--shard-tokens -5", "shard_tokens is -5, must be at least 1"),
        ("--truncation middle", "argument --truncation: invalid choice: 'middle'"),
        ("--enable-thinking-default none", "'none' must be true, false or null"),
        ("--apply-chat-template-kwargs [1]", "must be a JSON object"),
        ("--apply-chat-template-kwargs {", "is not JSON"),
        ('--apply-chat-template-kwargs {"tools":1}', "has 'tools', which prepare itself sets"),
        ("--drop-media-keys x", "drop_media_keys needs keep_media"),
        ("--max-len 7", "unrecognized arguments: --max-len 7"),
    ],
)
def test_options_that_make_no_sense_are_errors(arguments: str, error: str):
    with pytest.raises(InputError, match=error):
        parse_options(["a", "--model", "m", "-o", "o", *arguments.split()])


def test_two_keys_for_one_column_are_an_error():
    with pytest.raises(InputError, match="two keys name the same column"):
        PrepareOptions((), "m", "o", tools_key="messages").columns()

"""Which tokens a conversation has, and which of them are trained."""

import random
from typing import Any

import numpy as np
import pytest

from chat_templates import (
    ALTERNATING,
    CHATML,
    DEFAULT_SYSTEM,
    LAST_THOUGHT,
    NEEDS_USER,
    THINKING,
    say,
    word_tokenizer,
    words_of,
)
from isochron.prepare.conversation import Conversation
from isochron.prepare.rendering import TextTemplate
from isochron.prepare.source import RowError
from isochron.prepare.turns import TurnRenderer, Turns


def turns_of(
    template: str,
    messages: list[dict[str, Any]],
    kwargs: dict[str, Any] | None = None,
    **conversation: Any,
) -> Turns:
    renderer = TurnRenderer(TextTemplate(word_tokenizer(template)), kwargs or {})
    return renderer.turns(Conversation(messages, **conversation))


def text_of(turns: Turns) -> str:
    assert turns.mismatch == ""
    return words_of(turns.rendering.ids)


def trained_words(turns: Turns) -> str:
    return words_of(turns.rendering.ids[turns.loss_mask == 1])


def test_ids_and_mask_by_hand():
    turns = turns_of(CHATML, say("hi", "hello", "bye", "ciao"))
    # <|im_start|> user \n hi <|im_end|> \n  <|im_start|> assistant \n hello <|im_end|> \n  ..
    assert turns.rendering.ids.tolist() == [
        3,
        7,
        5,
        11,
        4,
        5,
        3,
        8,
        5,
        12,
        4,
        5,
        3,
        7,
        5,
        13,
        4,
        5,
        3,
        8,
        5,
        14,
        4,
        5,
    ]
    assert turns.loss_mask.tolist() == [
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
        1,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        1,
        1,
        1,
    ]
    assert turns.rendering.ids.dtype == np.int32
    assert turns.loss_mask.dtype == np.uint8
    assert (turns.mismatch, turns.num_without_prompt) == ("", 0)


def test_a_default_system_prompt_stands_once():
    turns = turns_of(DEFAULT_SYSTEM, say("hi", "hello", "bye", "ciao"))
    assert text_of(turns) == (
        "<|im_start|> system / helpful <|im_end|> / <|im_start|> user / hi <|im_end|> / "
        "<|im_start|> assistant / hello <|im_end|> / <|im_start|> user / bye <|im_end|> / "
        "<|im_start|> assistant / ciao <|im_end|> /"
    )
    assert trained_words(turns) == "hello <|im_end|> / ciao <|im_end|> /"


def test_a_system_message_replaces_the_default_one():
    turns = turns_of(DEFAULT_SYSTEM, say("brief", "hi", "hello", first="system"))
    assert text_of(turns) == (
        "<|im_start|> system / brief <|im_end|> / <|im_start|> user / hi <|im_end|> / "
        "<|im_start|> assistant / hello <|im_end|> /"
    )
    assert trained_words(turns) == "hello <|im_end|> /"


def test_a_system_message_in_the_middle_keeps_all_its_tokens():
    messages = [*say("hi", "hello"), {"role": "system", "content": "brief"}, *say("bye", "ciao")]
    turns = turns_of(DEFAULT_SYSTEM, messages)
    assert "hello <|im_end|> / <|im_start|> system / brief <|im_end|> /" in text_of(turns)
    assert trained_words(turns) == "hello <|im_end|> / ciao <|im_end|> /"


def test_tools_are_rendered_with_the_first_message_alone():
    calls = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"name": "add"}]},
        {"role": "tool", "content": "result:"},
        {"role": "assistant", "content": "bye"},
    ]
    turns = turns_of(DEFAULT_SYSTEM, calls, tools=[{"name": "add"}, {"name": "mul"}])
    assert text_of(turns) == (
        "<|im_start|> system / helpful tools: add mul <|im_end|> / <|im_start|> user / hi "
        "<|im_end|> / <|im_start|> assistant / call: add <|im_end|> / <|im_start|> tool / result: "
        "<|im_end|> / <|im_start|> assistant / bye <|im_end|> /"
    )
    assert trained_words(turns) == "call: add <|im_end|> / bye <|im_end|> /"


def test_a_template_that_rejects_a_lone_answer_gets_a_user_in_front():
    turns = turns_of(ALTERNATING, say("hi", "hello", "bye", "ciao"))
    assert text_of(turns) == "<s> [INST] hi [/INST] hello </s> [INST] bye [/INST] ciao </s>"
    assert trained_words(turns) == "hello </s> ciao </s>"


def test_the_system_prompt_is_not_taken_twice_from_behind_a_dummy_user():
    turns = turns_of(NEEDS_USER, say("hi", "hello"))
    assert text_of(turns) == (
        "<s> <|im_start|> user / hi <|im_end|> / <|im_start|> assistant / hello <|im_end|> /"
    )
    assert trained_words(turns) == "hello <|im_end|> /"


def test_a_system_message_that_must_be_first_gets_its_user_behind():
    turns = turns_of(NEEDS_USER, say("brief", "hi", "hello", first="system"))
    assert text_of(turns) == (
        "<s> <|im_start|> system / brief <|im_end|> / <|im_start|> user / hi "
        "<|im_end|> / <|im_start|> assistant / hello <|im_end|> /"
    )


def test_a_conversation_may_open_with_the_assistant():
    turns = turns_of(DEFAULT_SYSTEM, say("hello", "hi", first="assistant"))
    assert text_of(turns) == (
        "<|im_start|> system / helpful <|im_end|> / <|im_start|> assistant / hello <|im_end|> / "
        "<|im_start|> user / hi <|im_end|> /"
    )


def test_the_system_prompt_in_front_of_an_opening_answer_is_not_trained():
    turns = turns_of(DEFAULT_SYSTEM, say("hello", "hi", "bye", first="assistant"))
    assert trained_words(turns) == "hello <|im_end|> / bye <|im_end|> /"
    assert turns.num_without_prompt == 0


def test_thinking_belongs_to_the_generation_prompt_where_it_is_switched_off():
    messages = say("hi", "hello")
    on = turns_of(THINKING, messages, enable_thinking=True)
    off = turns_of(THINKING, messages, enable_thinking=False)
    assert text_of(on) == text_of(turns_of(THINKING, messages))
    assert text_of(off).endswith("assistant / <think> </think> / hello <|im_end|> /")
    assert trained_words(on) == trained_words(off) == "hello <|im_end|> /"


def test_template_arguments_reach_the_probes_and_a_row_overrides_them():
    messages = say("hi", "hello")
    off = turns_of(THINKING, messages, {"enable_thinking": False})
    assert trained_words(off) == "hello <|im_end|> /"
    assert "<think>" in text_of(off)
    on = turns_of(THINKING, messages, {"enable_thinking": False}, enable_thinking=True)
    assert "<think>" not in text_of(on)


def test_a_difference_to_the_whole_conversation_is_told_with_its_place():
    turns = turns_of(LAST_THOUGHT, say("hi", "hello", "bye", "ciao"))
    assert turns.mismatch.startswith(
        "token 21 (messages[3], assistant) differs: message by message it reads 'ciao"
    )
    assert "in the whole conversation '<think>" in turns.mismatch
    assert words_of(turns.rendering.ids).endswith("assistant / ciao <|im_end|> /")


def test_a_difference_of_equal_length_is_a_difference():
    template = "{%- for m in messages %}{{ m.content if loop.last else 'ciao' }} {% endfor %}"
    turns = turns_of(template, say("hi", "hello"))
    assert turns.mismatch.startswith("token 0 (messages[0], user) differs")


def test_a_whole_conversation_that_only_goes_on_longer_is_a_difference():
    turns = turns_of(
        CHATML + "{%- if messages | length > 1 %}{{ 'bye' }}{%- endif %}", say("hi", "hello")
    )
    assert turns.mismatch.startswith("token 12 (messages[1], assistant) differs")


def test_an_answer_without_the_generation_prompt_is_counted():
    template = CHATML.replace("<|im_start|>assistant\\n", "<|im_start|>assistant\\n<think>\\n")
    turns = turns_of(template, say("hi", "hello", "bye", "ciao"))
    assert turns.num_without_prompt == 2
    assert trained_words(turns) == "/ /"


def test_what_the_template_rejects_is_an_error_that_quotes_it():
    with pytest.raises(RowError, match="is rejected by the chat template: roles must alternate"):
        turns_of(ALTERNATING, say("hello", "hi", first="assistant"))
    with pytest.raises(RowError, match=r"messages\[1\] \(tool\) is rejected.*: nobody asked"):
        turns_of(
            "{%- if messages | length < 3 and messages[-1].role == 'tool' %}"
            "{{ raise_exception('nobody asked') }}{%- endif %}" + CHATML,
            [*say("hi"), {"role": "tool", "content": "result:"}, *say("bye")],
        )
    with pytest.raises(RowError, match="rejects an empty user message: say something"):
        turns_of(
            "{%- for message in messages if not message.content %}"
            "{{ raise_exception('say something') }}{%- endfor %}" + CHATML,
            say("hi", "hello"),
        )


def reference(
    tokenizer: Any, messages: list[dict[str, Any]], tools: Any, kwargs: dict[str, Any]
) -> tuple[list[int], list[int], list[int]]:
    """SPEC A.3, steps 2 to 6, read again: ids, mask and the ids of the whole conversation."""

    def render(some: list[dict[str, Any]], some_tools: Any = None, **more: Any) -> list[int]:
        text = tokenizer.apply_chat_template(
            some, tools=some_tools, tokenize=False, **kwargs, **more
        )
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    empty = {"role": "user", "content": ""}
    answered = [empty, {"role": "assistant", "content": ""}]
    first = render([empty])
    try:
        second = render([empty, empty])
        user = second[len(first) :]
    except Exception:
        user = render([*answered, empty])[len(render(answered)) :]
    system_prompt = first[: len(first) - len(user)]
    prompt = render([empty], add_generation_prompt=True)[len(first) :]
    ids, mask = [], []
    for number, message in enumerate(messages):
        with_tools = tools if number == 0 else None
        try:
            mine = render([message], with_tools)
        except Exception:
            if number == 0 and message["role"] == "system":
                mine = render([message, empty], with_tools)[: -len(user)]
            else:
                mine = system_prompt + render([empty, message], with_tools)[len(first) :]
        if number > 0 and message["role"] != "system":
            mine = mine[len(system_prompt) :]
        trained = message["role"] == "assistant"
        ids += mine
        mask += [int(trained and place >= len(prompt)) for place in range(len(mine))]
    return ids, mask, render(messages, tools)


def random_conversation(generator: random.Random, has_system: bool) -> list[dict[str, str]]:
    words = ["hi", "hello", "bye", "ciao", "brief", "helpful", "\n", "unheard"]

    def content() -> str:
        return " ".join(generator.choice(words) for _ in range(generator.randrange(1, 8)))

    messages = [{"role": "system", "content": content()}] if has_system else []
    for turn in range(generator.randrange(1, 9)):
        messages.append({"role": ("user", "assistant")[turn % 2], "content": content()})
    return messages


@pytest.mark.parametrize(
    "template",
    [CHATML, DEFAULT_SYSTEM, ALTERNATING, NEEDS_USER, THINKING],
    ids=["chatml", "default_system", "alternating", "needs_user", "thinking"],
)
def test_random_conversations_agree_with_the_algorithm_read_again(template: str):
    tokenizer = word_tokenizer(template)
    renderer = TurnRenderer(TextTemplate(tokenizer), {})
    for seed in range(100):
        generator = random.Random(seed)
        has_system = template != ALTERNATING and generator.random() < 0.5
        messages = random_conversation(generator, has_system)
        thinking = generator.choice([None, True, False])
        tools = [{"name": "add"}] if generator.random() < 0.3 else None
        turns = renderer.turns(Conversation(messages, tools, thinking))
        ids, mask, whole = reference(
            tokenizer, messages, tools, {} if thinking is None else {"enable_thinking": thinking}
        )
        assert turns.rendering.ids.tolist() == ids == whole, f"seed {seed}"
        assert turns.loss_mask.tolist() == mask, f"seed {seed}"
        assert turns.mismatch == "", f"seed {seed}"


def test_random_conversations_that_differ_are_all_found():
    tokenizer = word_tokenizer(LAST_THOUGHT)
    renderer = TurnRenderer(TextTemplate(tokenizer), {})
    num_different = 0
    for seed in range(100):
        messages = random_conversation(random.Random(seed), False)
        turns = renderer.turns(Conversation(messages))
        ids, _, whole = reference(tokenizer, messages, None, {})
        assert turns.rendering.ids.tolist() == ids
        assert bool(turns.mismatch) == (ids != whole), f"seed {seed}"
        num_different += ids != whole
    assert 20 < num_different < 80

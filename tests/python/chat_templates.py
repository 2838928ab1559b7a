"""Chat templates of the kinds that models have, and a tokenizer whose ids can be read."""

import json
import pathlib
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

# The id of a token is its place in this list.
WORDS = [
    "<unk>",
    "<s>",
    "</s>",
    "<|im_start|>",
    "<|im_end|>",
    "\n",  # 0 .. 5
    "system",
    "user",
    "assistant",
    "tool",  # 6 .. 9
    "helpful",
    "hi",
    "hello",
    "bye",
    "ciao",
    "brief",  # 10 .. 15
    "[INST]",
    "[/INST]",
    "<think>",
    "</think>",
    "tools:",
    "add",
    "mul",
    "call:",
    "result:",  # .. 24
]

ROLE_AND_CONTENT = "'<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n'"
GENERATION = "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"

# Nothing but the messages.
CHATML = "{%- for message in messages %}{{ " + ROLE_AND_CONTENT + " }}{%- endfor %}" + GENERATION

# A system prompt of its own where the conversation has none, as Qwen2.5; tools go into it.
DEFAULT_SYSTEM = (
    "{%- if messages[0].role == 'system' %}{%- set system = messages[0].content %}"
    "{%- else %}{%- set system = 'helpful' %}{%- endif %}"
    "{{ '<|im_start|>system\\n' + system }}"
    "{%- if tools %}{{ ' tools:' }}"
    "{%- for tool in tools %}{{ ' ' + tool.name }}{%- endfor %}{%- endif %}"
    "{{ '<|im_end|>\\n' }}"
    "{%- for message in messages %}"
    "{%- if not (loop.first and message.role == 'system') %}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content %}{{ message.content }}{%- endif %}"
    "{%- if message.tool_calls %}{{ ' call:' }}{%- for call in message.tool_calls %}"
    "{{ ' ' + call.name }}{%- endfor %}{%- endif %}"
    "{{ '<|im_end|>\\n' }}{%- endif %}{%- endfor %}" + GENERATION
)

# Roles alternate and the user begins, as Mistral: neither a lone answer nor two questions.
ALTERNATING = (
    "{{ bos_token }}"
    "{%- for message in messages %}"
    "{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{%- endif %}"
    "{%- if message.role == 'user' %}{{ '[INST] ' + message.content + ' [/INST]' }}"
    "{%- elif message.role == 'assistant' %}{{ ' ' + message.content + ' </s>' }}"
    "{%- else %}{{ raise_exception('only user and assistant') }}{%- endif %}{%- endfor %}"
)

# A conversation needs a user, and a system message must be first, as Qwen3.5; starts with BOS.
NEEDS_USER = (
    "{%- if not messages | selectattr('role', 'equalto', 'user') | list %}"
    "{{ raise_exception('no user query') }}{%- endif %}{{ bos_token }}"
    "{%- for message in messages %}"
    "{%- if message.role == 'system' and not loop.first %}"
    "{{ raise_exception('system must be first') }}{%- endif %}"
    "{{ " + ROLE_AND_CONTENT + " }}{%- endfor %}" + GENERATION
)

# Thinking that can be switched off, as many hybrid models: an empty thought opens the answer.
THINKING = (
    "{%- for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' and enable_thinking is defined and not enable_thinking %}"
    "{{ '<think> </think>\\n' }}{%- endif %}"
    "{{ message.content + '<|im_end|>\\n' }}{%- endfor %}"
    + GENERATION
    + "{%- if add_generation_prompt and enable_thinking is defined and not enable_thinking %}"
    "{{ '<think> </think>\\n' }}{%- endif %}"
)

# An empty thought for the last answer alone, and only after a user, as Qwen3: message by message
# it is never there.
LAST_THOUGHT = (
    "{%- for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' and loop.last and not loop.first %}"
    "{{ '<think> </think>\\n' }}{%- endif %}"
    "{{ message.content + '<|im_end|>\\n' }}{%- endfor %}" + GENERATION
)


def word_tokenizer(chat_template: str) -> Any:
    """One token per word of WORDS, and one per line break."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Split(" ", "removed")]
    )
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<s>", "</s>"])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    fast.chat_template = chat_template
    return fast


def words_of(ids: Any) -> str:
    """Tokens of word_tokenizer as text, with / for a line break."""
    return " ".join(WORDS[int(number)].replace("\n", "/") for number in ids)


def save_word_model(folder: pathlib.Path, chat_template: str = CHATML) -> pathlib.Path:
    """A model folder that has a tokenizer and nothing else."""
    word_tokenizer(chat_template).save_pretrained(folder)
    return folder


def write_jsonl(path: pathlib.Path, rows: list[Any]) -> pathlib.Path:
    """`rows`, one JSON text a line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def say(*contents: str, first: str = "user") -> list[dict[str, str]]:
    """Messages by turns: user, assistant, user, .. after a system message if that is `first`."""
    roles = ["system"] if first == "system" else []
    start = 1 if first == "assistant" else 0
    roles += [("user", "assistant")[(start + i) % 2] for i in range(len(contents))]
    return [
        {"role": role, "content": content} for role, content in zip(roles, contents, strict=False)
    ]

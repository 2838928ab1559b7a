"""A real tokenizer without training: one token per byte, ChatML around the messages."""

from typing import Any

END_OF_TEXT = "<|endoftext|>"
START, END = "<|im_start|>", "<|im_end|>"

# Every message alone and the conversation as a whole render to the same tokens.
CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def byte_tokenizer(
    chat_template: str = CHAT_TEMPLATE, more_tokens: tuple[str, ...] = (), **options: Any
) -> Any:
    """A tokenizer of 256 bytes and the special tokens of ChatML, then `more_tokens`.

    `options` go to PreTrainedTokenizerFast.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(
        models.BPE(vocab={token: i for i, token in enumerate(alphabet)}, merges=[])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END_OF_TEXT, START, END, *more_tokens])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=END_OF_TEXT, **options
    )
    fast.chat_template = chat_template
    return fast

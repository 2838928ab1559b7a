"""A tiny random model as a Hugging Face folder: configuration, weights, tokenizer."""

import os
from typing import Any

from isochron.console import InputError, one_line, quiet_transformers
from isochron.tiny.tokenizer import byte_tokenizer

MODEL_TYPES = ("qwen3", "qwen2", "llama", "mistral")
DTYPES = ("float32", "bfloat16", "float16")

# What every one of the types calls by the same name.
SHAPE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 32768,
}


def make_model(
    folder: str,
    model_type: str = "qwen3",
    seed: int = 0,
    dtype: str = "float32",
    config: dict[str, Any] | None = None,
) -> None:
    """Writes a random model of `model_type` with its tokenizer into `folder`.

    `config` replaces or adds fields of config.json. Equal arguments give equal weights. Raises
    InputError if transformers does not take the configuration.
    """
    if model_type not in MODEL_TYPES:
        raise InputError(f"model_type is {model_type!r}, must be one of {', '.join(MODEL_TYPES)}")
    if dtype not in DTYPES:
        raise InputError(f"dtype is {dtype!r}, must be one of {', '.join(DTYPES)}")
    quiet_transformers()
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # a model this small is written at once
    tokenizer = byte_tokenizer()
    fields = {
        **SHAPE,
        "vocab_size": len(tokenizer),
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
        **({"sliding_window": None} if model_type == "mistral" else {}),
        **(config or {}),
    }
    if model_type == "qwen2":  # its heads always share the hidden size
        fields.pop("head_dim", None)
    try:
        shape = AutoConfig.for_model(model_type, **fields)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = AutoModelForCausalLM.from_config(shape, dtype=getattr(torch, dtype))
    except Exception as error:  # whatever transformers raises, the configuration is at fault
        raise InputError(f"config is not one of a {model_type}: {one_line(error)}") from error
    os.makedirs(folder, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

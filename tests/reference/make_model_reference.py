"""Writes tiny random models and what transformers computes with them, for the tests of the engine.

    python make_model_reference.py FOLDER

FOLDER/<case>/ is a model folder as transformers saves it; beside the weights, reference.safetensors
has `tokens` and `lengths` of a few sequences, the `logits` of each run alone, the mean `loss` over
all next tokens, and `gradient.<name>` of every parameter, all in fp32 on the CPU.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

LENGTHS = [7, 1, 40, 2, 90, 13]  # past the context of 64 for the rope types that scale
SIZES = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.15,
    "rms_norm_eps": 1e-5,
}
ROPE = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
}
YARN_VARIANTS = {
    "yarn_attention_factor": {"attention_factor": 0.7},
    "yarn_mscale": {"mscale": 0.707, "mscale_all_dim": 1.1, "truncate": False},
    "yarn_betas": {"beta_fast": 16.0, "beta_slow": 2.0},
}
FAMILIES = {
    "llama": (LlamaConfig, {}),
    "mistral": (MistralConfig, {"sliding_window": None}),
    "qwen2": (Qwen2Config, {"num_attention_heads": 6, "head_dim": None}),
    "qwen3": (Qwen3Config, {}),
}
SHAPES = {
    "tied": {"tie_word_embeddings": True},
    "mha": {"num_key_value_heads": 6},
    "mqa": {"num_key_value_heads": 1},
    "wide_head": {"head_dim": 14},
}


def cases():
    """Yields (name, configuration)."""

    def make(family, rope, **changes):
        kind, own = FAMILIES[family]
        fields = {**SIZES, **own, **changes}
        if fields["head_dim"] is None:  # qwen2 has no such field
            del fields["head_dim"]
        return kind(rope_parameters={**rope, "rope_theta": 1000.0}, **fields)

    for family in FAMILIES:
        for rope, parameters in ROPE.items():
            yield f"{family}_{rope}", make(family, parameters)
        for shape, changes in SHAPES.items():
            if shape == "wide_head" and family == "qwen2":
                continue
            yield f"{family}_{shape}", make(family, ROPE["default"], **changes)
    for variant, changes in YARN_VARIANTS.items():
        yield variant, make("llama", {**ROPE["yarn"], **changes})
    bias = {"attention_bias": True}
    yield "llama_bias", make("llama", ROPE["default"], mlp_bias=True, **bias)
    # Token 3 occurs among the inputs, and its embedding must not learn from that.
    yield "llama_padding", make("llama", ROPE["default"], pad_token_id=3)
    yield "qwen3_padding_tied", make(
        "qwen3", ROPE["default"], pad_token_id=3, tie_word_embeddings=True
    )
    yield "qwen3_bias", make("qwen3", ROPE["default"], **bias)


def randomise(model, generator):
    """Norms and biases that differ from one and zero, so that a mistake in them shows."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight") or name.endswith("layernorm.weight"):
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
            elif name.endswith(".bias"):
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))


def logits_alone(model, config, tokens):
    """Logits of one sequence. The rotary embedding is made anew: `dynamic` remembers others."""
    model.model.rotary_emb = type(model.model.rotary_emb)(config=config)
    return model(input_ids=tokens[None], use_cache=False).logits[0]


def write_case(folder, config, seed):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    randomise(model, generator)
    model.save_pretrained(folder)

    tokens = [torch.randint(config.vocab_size, (n,), generator=generator) for n in LENGTHS]
    logits = [logits_alone(model, config, row) for row in tokens]
    losses = [
        torch.nn.functional.cross_entropy(row[:-1], ids[1:], reduction="sum")
        for row, ids in zip(logits, tokens)
        if len(ids) > 1
    ]
    loss = sum(losses) / sum(n - 1 for n in LENGTHS)
    loss.backward()
    reference = {
        "tokens": torch.cat(tokens),
        "lengths": torch.tensor(LENGTHS),
        "logits": torch.cat(logits).detach(),
        "loss": loss.detach()[None],
    }
    for name, parameter in model.named_parameters():
        reference[f"gradient.{name}"] = parameter.grad.contiguous()
    save_file(reference, folder / "reference.safetensors")


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    stamp = folder / "made_by.json"
    versions = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "script": Path(__file__).read_text(),
    }
    if stamp.exists() and json.loads(stamp.read_text()) == versions:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = []
    for seed, (name, config) in enumerate(cases()):
        write_case(folder / name, config, seed)
        names.append(name)
    stamp.write_text(json.dumps(versions))
    print(f"{len(names)} models in {folder}")


if __name__ == "__main__":
    main()

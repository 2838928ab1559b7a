"""Tiny models and conversations: real folders, learnable, repeatable."""

import json
import pathlib
import statistics

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from conftest import Run, error_of
from isochron.console import InputError
from isochron.prepare.command import prepare
from isochron.prepare.options import PrepareOptions
from isochron.tiny.conversations import conversations, write_conversations
from isochron.tiny.model import MODEL_TYPES, make_model


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_model_folder_loads_and_runs(tmp_path: pathlib.Path, model_type: str):
    make_model(str(tmp_path), model_type, config={"num_hidden_layers": 3})
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert (model.config.model_type, model.config.num_hidden_layers) == (model_type, 3)
    assert model.dtype == torch.float32
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "caf\u00e9"}], return_tensors="pt", return_dict=True
    )["input_ids"]
    assert tokenizer.decode(ids[0]) == "<|im_start|>user\ncaf\u00e9<|im_end|>\n"
    logits = model(ids).logits
    assert logits.shape == (1, ids.shape[1], len(tokenizer))
    assert torch.isfinite(logits).all()


def test_equal_seeds_give_equal_weights(tmp_path: pathlib.Path):
    state = torch.random.get_rng_state()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make_model(str(tmp_path / name), seed=seed)
    assert torch.equal(torch.random.get_rng_state(), state)  # of others is left alone
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_a_model_can_be_stored_in_half_precision_and_with_tied_weights(tmp_path: pathlib.Path):
    make_model(str(tmp_path), dtype="bfloat16", config={"tie_word_embeddings": True})
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["dtype"], config["tie_word_embeddings"]) == ("bfloat16", True)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert model.dtype == torch.bfloat16
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_a_configuration_that_makes_no_model_is_an_error(tmp_path: pathlib.Path):
    with pytest.raises(
        InputError, match="model_type is 'gpt2', must be one of qwen3, qwen2, llama"
    ):
        make_model(str(tmp_path), "gpt2")
    with pytest.raises(InputError, match="dtype is 'int8', must be one of float32"):
        make_model(str(tmp_path), dtype="int8")
    with pytest.raises(InputError, match="config is not one of a qwen3"):
        make_model(str(tmp_path), config={"hidden_size": "wide"})


def test_lengths_have_a_long_tail_below_the_maximum(tmp_path: pathlib.Path):
    make_model(str(tmp_path / "model"))
    write_conversations(
        str(tmp_path / "a.jsonl"), rows=1000, seed=3, max_length=1024, median=160.0, sigma=0.8
    )
    prepare(
        PrepareOptions(
            (str(tmp_path / "a.jsonl"),),
            str(tmp_path / "model"),
            str(tmp_path / "out"),
            max_length=1024,
        )
    )
    lengths = np.diff(load_file(tmp_path / "out" / "rows-00000.safetensors")["offsets"])
    assert len(lengths) == 1000
    assert 110 < statistics.median(lengths) < 180
    assert lengths.max() > 900
    assert 30 < lengths.min() < 100
    assert (lengths > 480).sum() > 30


@pytest.mark.parametrize("max_length", [96, 100, 257, 5000])
def test_no_conversation_exceeds_the_maximum(max_length: int):
    for seed in range(20):
        for row in conversations(20, seed, max_length, median=float(max_length), sigma=1.5):
            tokens = sum(
                len(message["role"]) + len(message["content"]) + 4 for message in row["messages"]
            )
            assert tokens <= max_length, (seed, row)


def test_answers_follow_from_questions():
    for row in conversations(300, 7, 2000, median=200.0, sigma=0.8):
        for question, answer in zip(row["messages"][::2], row["messages"][1::2], strict=True):
            task, *words = question["content"].split()
            items = answer["content"].split()
            if task == "count":
                number, _, start, _, step = words
                expected = [str(int(start) + int(step) * i) for i in range(int(number))]
            else:
                expected = {"repeat": lambda w: [w[0]] * int(w[1]), "copy": list, "sort": sorted}[
                    task
                ](words)
            assert items == expected, question


def test_equal_arguments_give_equal_conversations():
    first, again, other = (
        list(conversations(20, seed, 500, median=100.0, sigma=0.8)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"rows": 0}, "rows is 0, must be at least 1"),
        ({"max_length": 95}, "max_length is 95, must be at least 96"),
        ({"median": 0.0}, "median is 0.0, must be positive"),
        ({"sigma": float("nan")}, "sigma is nan, must not be negative"),
    ],
)
def test_conversations_that_cannot_be_are_errors(changed: dict, error: str):
    arguments = {"rows": 1, "seed": 0, "max_length": 500, "median": 100.0, "sigma": 0.8, **changed}
    with pytest.raises(InputError, match=error):
        list(conversations(**arguments))


@pytest.fixture
def one_thread():
    """Threads of torch that wait for each other crawl on a machine that is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_the_loss_of_a_tiny_model_falls_to_a_third_within_fifty_steps(
    tmp_path: pathlib.Path, run: Run
):
    result = run("tiny", tmp_path, "--rows", 400, "--val-rows", 8, "--max-length", 512)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == [
        str(tmp_path / name) for name in ("model", "train.jsonl", "val.jsonl")
    ]
    prepare(
        PrepareOptions(
            (str(tmp_path / "train.jsonl"),), str(tmp_path / "model"), str(tmp_path / "out")
        )
    )
    shard = load_file(tmp_path / "out" / "rows-00000.safetensors")
    rows = list(
        zip(
            *(np.split(shard[name], shard["offsets"][1:-1]) for name in ("input_ids", "loss_mask")),
            strict=True,
        )
    )
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    torch.manual_seed(0)
    losses = []
    for step in range(50):
        batch = [rows[(8 * step + i) % len(rows)] for i in range(8)]
        longest = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids, _ in batch])
        mask = torch.tensor([[*mask, *[0] * (longest - len(mask))] for _, mask in batch])
        logits = model(ids).logits[:, :-1]
        losses_T = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), ids[:, 1:], reduction="none"
        )
        loss = (losses_T * mask[:, 1:]).sum() / mask[:, 1:].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert 5.0 < losses[0] < 6.0  # log 259
    assert statistics.mean(losses[-5:]) < losses[0] / 3


def test_errors_are_one_line(tmp_path: pathlib.Path, run: Run):
    result = run("tiny", tmp_path, "--model-type", "gpt2")
    assert result.returncode == 2
    assert error_of(result).startswith("isochron: [tiny] argument --model-type: invalid choice")

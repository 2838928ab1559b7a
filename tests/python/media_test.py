"""Images beside rows, with a real processor: patches of 14 x 14, merged 2 x 2 into a token."""

import io
import json
import os
import pathlib
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file
from transformers import PaddleOCRVLConfig, PaddleOCRVLModel, PaddleOCRVLProcessor
from transformers.models.paddleocr_vl.image_processing_pil_paddleocr_vl import (
    PaddleOCRVLImageProcessorPil,
)

from chat_templates import say, write_jsonl
from conftest import Run, error_of
from isochron.console import InputError
from isochron.prepare.command import prepare
from isochron.prepare.media import MediaTemplate
from isochron.prepare.options import PrepareOptions
from isochron.prepare.row import RowMaker
from isochron.prepare.source import RowError
from isochron.tiny.tokenizer import byte_tokenizer

IMAGE = "<|image_pad|>"
TEMPLATE = (
    "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content is string %}{{ message.content }}{%- else %}"
    "{%- for segment in message.content %}{{ '" + IMAGE + "' if segment.type == 'image' else "
    "segment.text }}{%- endfor %}{%- endif %}{{ '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    tokenizer = byte_tokenizer(TEMPLATE, (IMAGE,), extra_special_tokens={"image_token": IMAGE})
    images = PaddleOCRVLImageProcessorPil(size={"shortest_edge": 28 * 28, "longest_edge": 84 * 84})
    PaddleOCRVLProcessor(images, tokenizer, chat_template=TEMPLATE).save_pretrained(folder)
    tiny = {"num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 8}
    PaddleOCRVLConfig(
        text_config={
            **tiny,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "head_dim": 8,
            "vocab_size": len(tokenizer),
        },
        vision_config={**tiny, "num_attention_heads": 1},
        image_token_id=tokenizer.image_token_id,
    ).save_pretrained(folder)
    return str(folder)


def image_bytes(height: int, width: int) -> bytes:
    pixels = np.random.default_rng(height * width).integers(0, 256, (height, width, 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "png")
    return content.getvalue()


# 56 x 84 pixels are 4 x 6 patches and 2 x 3 tokens; 28 x 28 pixels one token.
LARGE, SMALL = image_bytes(56, 84), image_bytes(28, 28)


def columns(*images: bytes, question: str = "see <image>") -> dict[str, Any]:
    return {"messages": say(question, "ok"), "images": [{"bytes": image} for image in images]}


def maker(model: str, **options: Any) -> RowMaker:
    return RowMaker(PrepareOptions((), model, "out", keep_media=True, **options))


def test_every_output_of_the_processor_is_kept(model: str):
    row = maker(model).row(columns(LARGE))
    length = len(row.input_ids)
    assert {name: value.shape for name, value in row.media.items()} == {
        "pixel_values": (24, 3, 14, 14),
        "image_grid_thw": (1, 3),
        "attention_mask": (length,),
        "mm_token_type_ids": (length,),
    }
    assert row.media["image_grid_thw"].tolist() == [[1, 4, 6]]
    image_id = byte_tokenizer(TEMPLATE, (IMAGE,)).convert_tokens_to_ids(IMAGE)
    assert (row.media["mm_token_type_ids"] == 1).sum() == 6
    assert ((row.input_ids == image_id) == (row.media["mm_token_type_ids"] == 1)).all()
    assert row.num_trained == len("ok") + 2


def test_positions_have_four_rows(model: str):
    row = maker(model).row(columns(LARGE))
    assert row.position_ids.shape == (4, len(row.input_ids))
    assert row.position_ids[0].tolist() == list(range(len(row.input_ids)))
    is_image = row.media["mm_token_type_ids"] == 1
    first = int(np.flatnonzero(is_image)[0])
    assert (row.position_ids[1:, is_image] - first).tolist() == [
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1],
        [0, 1, 2, 0, 1, 2],
    ]  # time, height, width
    after = first + 6
    assert row.position_ids[1:, after].tolist() == [first + 3] * 3  # one more than the largest
    with torch.device("meta"):
        reference = PaddleOCRVLModel(PaddleOCRVLConfig.from_pretrained(model))
    expected, _ = reference.get_rope_index(
        torch.from_numpy(row.input_ids.astype(np.int64))[None],
        torch.from_numpy(row.media["mm_token_type_ids"])[None],
        torch.from_numpy(row.media["image_grid_thw"]),
    )
    assert (row.position_ids[1:] == expected[:, 0].numpy()).all()


def test_images_of_several_messages_and_sizes_are_kept_together(model: str):
    messages = say("<image> and <image>", "ok", "<image>", "no")
    row = maker(model).row(
        {"messages": messages, "images": [{"bytes": content} for content in (LARGE, SMALL, SMALL)]}
    )
    assert row.media["image_grid_thw"].tolist() == [[1, 4, 6], [1, 2, 2], [1, 2, 2]]
    assert row.media["pixel_values"].shape == (24 + 4 + 4, 3, 14, 14)
    assert (row.media["mm_token_type_ids"] == 1).sum() == 6 + 1 + 1
    assert row.mismatch == ""


def test_outputs_are_dropped_by_name_and_only_from_what_is_stored(model: str):
    kept = maker(model).row(columns(LARGE))
    row = maker(model, drop_media_keys=("mm_token_type_ids", "attention_mask")).row(columns(LARGE))
    assert set(row.media) == {"pixel_values", "image_grid_thw"}
    assert (row.position_ids == kept.position_ids).all()


def test_a_cut_through_media_tokens_is_an_error(model: str):
    length = len(maker(model).row(columns(LARGE, question="<image> text")).input_ids)
    for truncation, question in (("left", "<image> text"), ("right", "text <image>")):
        with pytest.raises(
            RowError,
            match=f"has {length} tokens, max_length is 10, and the cut would "
            "take [1-6] media tokens",
        ):
            maker(model, max_length=10, truncation=truncation).row(
                columns(LARGE, question=question)
            )


def test_a_cut_beside_media_tokens_cuts_everything_that_goes_by_token(model: str):
    whole = maker(model).row(columns(LARGE, question="a long text before <image>"))
    length = len(whole.input_ids)
    cut = maker(model, max_length=length - 4, truncation="left").row(
        columns(LARGE, question="a long text before <image>")
    )
    assert cut.input_ids.tolist() == whole.input_ids[4:].tolist()
    assert cut.loss_mask.tolist() == whole.loss_mask[4:].tolist()
    assert cut.position_ids.tolist() == whole.position_ids[:, 4:].tolist()
    assert cut.media["mm_token_type_ids"].tolist() == whole.media["mm_token_type_ids"][4:].tolist()
    assert cut.media["pixel_values"].shape == whole.media["pixel_values"].shape


def test_placeholders_must_match_the_images(model: str):
    with pytest.raises(RowError, match="has 1 placeholders <image> for 2 images"):
        maker(model).row(columns(LARGE, SMALL))
    with pytest.raises(RowError, match="has 2 placeholders <image> for 1 images"):
        maker(model).row(columns(SMALL, question="<image><image>"))
    with pytest.raises(RowError, match="has 1 placeholders <image> for 0 images"):
        maker(model).row(columns())
    with pytest.raises(RowError, match="images is a string, must be a list"):
        maker(model).row({"messages": say("<image>"), "images": "a.png"})


def test_a_row_without_media_is_text_and_keeps_its_words(model: str):
    for more in ({}, {"images": None}):
        row = maker(model).row({"messages": say("see <image>", "ok"), **more})
        assert (
            byte_tokenizer()
            .decode(row.input_ids[:30].tolist())
            .startswith("<|im_start|>user\nsee <image><|im_end|>")
        )
        assert (row.media, row.position_ids) == ({}, None)


@pytest.mark.parametrize("kind", ["path", "path_of_object", "segment"])
def test_images_come_from_files_too(tmp_path: pathlib.Path, model: str, kind: str):
    path = tmp_path / "a.png"
    path.write_bytes(LARGE)
    row = {
        "path": {"messages": say("see <image>", "ok"), "images": [str(path)]},
        "path_of_object": {"messages": say("see <image>", "ok"), "images": [{"path": str(path)}]},
        "segment": {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "see "},
                        {"type": "image", "path": str(path)},
                    ],
                },
                *say("", "ok")[1:],
            ]
        },
    }[kind]
    made, expected = maker(model).row(row), maker(model).row(columns(LARGE))
    assert made.input_ids.tolist() == expected.input_ids.tolist()
    assert (made.media["pixel_values"] == expected.media["pixel_values"]).all()


def test_an_image_that_cannot_be_read_is_an_error(tmp_path: pathlib.Path, model: str):
    with pytest.raises(RowError, match="has bytes that are no image"):
        maker(model).row(columns(b"nonsense"))
    with pytest.raises(RowError, match="is rejected by the chat template: .*nowhere.png"):
        maker(model).row({"messages": say("<image>"), "images": [str(tmp_path / "nowhere.png")]})
    with pytest.raises(RowError, match="has an item of type image with neither bytes nor a path"):
        maker(model).row({"messages": say("<image>"), "images": [{"colour": "red"}]})


class ListingProcessor:
    """Says things that no shipped processor says: lists of arrays, and words."""

    def __init__(self) -> None:
        self.tokenizer = byte_tokenizer()

    def apply_chat_template(self, messages: Any, **_: Any) -> dict[str, Any]:
        return {
            "input_ids": torch.ones(1, 3, dtype=torch.int64),
            "tiles": [torch.zeros(2, 2), torch.zeros(3)],
            "notes": ["portrait"],
        }


def test_lists_are_kept_item_by_item_and_words_are_refused():
    messages = [{"role": "user", "content": [{"type": "text", "text": ""}]}]
    with pytest.raises(
        RowError,
        match="has an output 'notes' of the processor that is not numbers; "
        "--drop-media-keys leaves it out",
    ):
        MediaTemplate(ListingProcessor()).render(messages, None, {})
    rendering = MediaTemplate(ListingProcessor(), ("notes",)).render(messages, None, {})
    assert {name: value.shape for name, value in rendering.media.items()} == {
        "tiles.0": (2, 2),
        "tiles.1": (3,),
    }


def test_shards_of_mixed_rows_read_back(tmp_path: pathlib.Path, model: str):
    rows = [
        {"messages": say("plain", "ok"), "images": None},
        columns(LARGE),
        columns(SMALL),
        {"messages": say("plain", "ok"), "images": None},
    ]
    table = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), table)
    for workers in (1, 2):
        out = tmp_path / f"{workers}"
        index = prepare(
            PrepareOptions(
                (str(table),),
                model,
                str(out),
                keep_media=True,
                num_workers=workers,
                shard_tokens=200,
            )
        )
        assert (index["rows"], index["rows_with_media"]) == (4, 2)
        assert [shard.get("media") for shard in index["shards"]] == ["media/rows-00000.safetensors"]
        assert sorted(os.listdir(out)) == ["index.json", "media", "rows-00000.safetensors"]
        shard = load_file(out / "rows-00000.safetensors")
        offsets = shard["offsets"]
        assert shard["position_ids"].shape == (4, offsets[-1])
        assert (shard["position_ids"][:, : offsets[1]] == np.arange(offsets[1])).all()
        media = load_file(out / "media" / "rows-00000.safetensors")
        names = ("attention_mask", "image_grid_thw", "mm_token_type_ids", "pixel_values")
        assert sorted(media) == [f"{row}.{name}" for row in (1, 2) for name in names]
        expected = maker(model).row(rows[1])
        for name in names:
            assert (media[f"1.{name}"] == expected.media[name]).all()
        with safe_open(out / "media" / "rows-00000.safetensors", "numpy") as opened:
            assert json.loads(opened.metadata()["isochron"]) == {"rows": "rows-00000.safetensors"}


def test_a_shard_of_text_alone_has_neither_media_nor_positions(tmp_path: pathlib.Path, model: str):
    file = write_jsonl(tmp_path / "a.jsonl", [{"messages": say("plain", "ok")}])
    index = prepare(PrepareOptions((str(file),), model, str(tmp_path / "out"), keep_media=True))
    assert "media" not in index["shards"][0]
    assert "position_ids" not in load_file(tmp_path / "out" / "rows-00000.safetensors")


@pytest.mark.parametrize("arguments", [[], ["--on-error", "skip"]])
def test_media_are_refused_unless_asked_for(
    tmp_path: pathlib.Path, model: str, run: Run, arguments: list[str]
):
    file = write_jsonl(
        tmp_path / "a.jsonl",
        [
            {"messages": say("hi", "ok"), "images": []},
            {"messages": say("<image>"), "images": ["a.png"]},
        ],
    )
    result = run("prepare", file, "--model", model, "-o", tmp_path / "out", *arguments)
    assert result.returncode == 2
    assert error_of(result) == (
        f"isochron: [prepare] {file} row 1 (line 2): column 'images' holds "
        "media; --keep-media stores them beside the rows"
    )
    file = write_jsonl(
        tmp_path / "b.jsonl",
        [
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "a.png"}}],
                    }
                ]
            }
        ],
    )
    result = run("prepare", file, "--model", model, "-o", tmp_path / "out", *arguments)
    assert error_of(result).endswith(
        "messages[0].content has a segment of type 'image_url'; "
        "--keep-media stores media beside the rows"
    )


def test_keeping_media_needs_a_processor(tmp_path: pathlib.Path):
    byte_tokenizer().save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match="model has no (usable processor|processor for media)"):
        maker(str(tmp_path / "model"))

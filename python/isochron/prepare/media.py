"""Images and videos: a model's own processor renders them, and all that it says is kept.

Two things about a row with media are not in the processor's output. Which of its tokens stand for
media comes from `mm_token_type_ids`, or from the token ids that processor and configuration name.
The positions of models that count in time, height and width (Qwen2-VL and its kin) come from the
model's own `get_rope_index`, called on a model without weights.
"""

import inspect
import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from isochron.console import InputError, WorldError, one_line, quiet_transformers
from isochron.prepare.conversation import Message
from isochron.prepare.rendering import RejectedError, Rendering, check_model_folder
from isochron.prepare.source import RowError

MEDIA_TOKEN_NAMES = (
    "image_token_id",
    "video_token_id",
    "audio_token_id",
    "image_token_index",
    "video_token_index",
    "audio_token_index",
)


class MediaTemplate:
    """A processor and its chat template."""

    def __init__(self, processor: Any, dropped: Sequence[str] = ()) -> None:
        """Outputs named in `dropped` will not be stored, so they need not be numbers."""
        self._processor = processor
        self._dropped = dropped
        # What these say is about media, even where it happens to have the shape of the tokens.
        parts = (
            getattr(processor, name, None)
            for name in ("image_processor", "video_processor", "feature_extractor")
        )
        self._media_names = {
            name for part in parts for name in getattr(part, "model_input_names", [])
        }

    def render(
        self,
        messages: Sequence[Message],
        tools: list[dict[str, Any]] | None,
        kwargs: dict[str, Any],
    ) -> Rendering:
        loaded = [_with_loaded_media(message) for message in messages]
        try:
            output = self._processor.apply_chat_template(
                loaded, tools=tools, tokenize=True, return_dict=True, return_tensors="pt", **kwargs
            )
        except Exception as error:  # a template is a program, and may fail in any way
            raise RejectedError(one_line(error)) from error
        ids = output["input_ids"]
        per_token, media = {}, {}
        for name, value in output.items():
            if name == "input_ids" or (name in self._dropped and not _is_numeric(value)):
                continue
            for full_name, array in _arrays(name, value).items():
                if array.shape == tuple(ids.shape) and name not in self._media_names:
                    per_token[full_name] = array[0]
                else:
                    media[full_name] = array
        return Rendering(ids[0].numpy().astype(np.int32), per_token, media)

    def text_content(self, text: str) -> Any:
        return [{"type": "text", "text": text}]

    def decode(self, ids: Sequence[int]) -> str:
        return self._processor.tokenizer.decode(ids)


def load_processor(folder: str) -> Any:
    """The processor of a model folder, which must have a chat template and take media."""
    check_model_folder(folder)
    quiet_transformers()
    from transformers import AutoProcessor

    try:
        processor = AutoProcessor.from_pretrained(folder, local_files_only=True)
    except ImportError as error:
        raise WorldError(f"the processor of {folder} needs a package: {one_line(error)}") from error
    except Exception as error:  # whatever transformers raises, the folder is at fault
        raise InputError(f"{folder} has no usable processor: {one_line(error)}") from error
    if not hasattr(processor, "tokenizer"):
        raise InputError(f"{folder} has no processor for media, which --keep-media needs")
    if not processor.chat_template:
        raise InputError(f"the processor of {folder} has no chat template")
    return processor


class MediaTokens:
    """Which tokens stand for media."""

    def __init__(self, processor: Any, config: Any) -> None:
        named = (
            getattr(owner, name, None)
            for owner in (processor, config)
            for name in MEDIA_TOKEN_NAMES
        )
        self._ids = sorted({token for token in named if isinstance(token, int)})

    def mask(self, rendering: Rendering) -> np.ndarray | None:
        """True [tokens] where a token stands for media; None if nothing says so."""
        if "mm_token_type_ids" in rendering.per_token:
            return rendering.per_token["mm_token_type_ids"] != 0
        return np.isin(rendering.ids, self._ids) if self._ids else None


class MediaPositions:
    """Positions of rows with media, for models that count in more than one direction."""

    def __init__(self, config: Any) -> None:
        """`config` is the model's configuration, or None."""
        self._model = None
        if config is None:
            return
        import torch
        from transformers import MODEL_MAPPING, AutoModel

        if hasattr(MODEL_MAPPING.get(type(config), None), "get_rope_index"):
            with torch.device("meta"):
                self._model = AutoModel.from_config(config)

    def positions(self, rendering: Rendering) -> np.ndarray | None:
        """int32 [4, tokens]: in the text, in time, height and width; None if the model has none."""
        if self._model is None:
            return None
        import torch

        outputs = {
            name: torch.from_numpy(values)[None] for name, values in rendering.per_token.items()
        }
        outputs |= {name: torch.from_numpy(value) for name, value in rendering.media.items()}
        outputs["input_ids"] = torch.from_numpy(rendering.ids.astype(np.int64))[None]
        taken = inspect.signature(self._model.get_rope_index).parameters
        try:
            in_space, _ = self._model.get_rope_index(
                **{name: value for name, value in outputs.items() if name in taken}
            )
        except Exception as error:  # the model's own code, on data it may not expect
            raise RowError(f"has no positions: {one_line(error)}") from error
        in_text = torch.arange(len(rendering.ids))[None]
        return torch.cat([in_text, in_space[:, 0]]).numpy().astype(np.int32)


def load_config(folder: str) -> Any:
    """The configuration of a model folder, None if it has none."""
    if not os.path.exists(os.path.join(folder, "config.json")):
        return None
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # whatever transformers raises, the folder is at fault
        raise InputError(f"{folder} has no usable config.json: {one_line(error)}") from error


def _with_loaded_media(message: Message) -> Message:
    if not isinstance(message.get("content"), list):
        return message
    return {**message, "content": [_loaded(segment) for segment in message["content"]]}


def _loaded(segment: dict[str, Any]) -> dict[str, Any]:
    """A segment with what a processor takes: text, a path or address, or an open image.

    Data sets write an item as a path, as {"path"|"image"|"video"|"url": path}, or as {"bytes": ..}.
    """
    kind = segment["type"]
    item = segment.get(kind)
    if not isinstance(item, dict):
        return dict(segment)
    if item.get("bytes") is not None:
        return {**segment, kind: _opened(item["bytes"])}
    for name in ("path", kind, "url"):
        if isinstance(item.get(name), str):
            return {**segment, kind: item[name]}
    raise RowError(f"has an item of type {kind} with neither bytes nor a path: {sorted(item)}")


def _opened(content: Any) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise WorldError("images as bytes need the package pillow") from error
    try:
        return Image.open(io.BytesIO(content)).convert("RGB")
    except Exception as error:  # whatever pillow raises, the bytes are at fault
        raise RowError(f"has bytes that are no image: {one_line(error)}") from error


def _is_numeric(value: Any) -> bool:
    try:
        return bool(_arrays("", value))
    except RowError:
        return False


def _arrays(name: str, value: Any) -> dict[str, np.ndarray]:
    """An output of a processor as arrays: one, or one per item of a list, `name.0`, `name.1`, .."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.to(torch.float32) if value.dtype == torch.bfloat16 else value  # exact
        return {name: value.contiguous().numpy()}
    if isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor | list):
        arrays: dict[str, np.ndarray] = {}
        for index, item in enumerate(value):
            arrays |= _arrays(f"{name}.{index}", item)
        return arrays
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise RowError(
            f"has an output {name!r} of the processor that is not numbers; "
            "--drop-media-keys leaves it out"
        )
    return {name: np.ascontiguousarray(array)}

"""Megatron's parallel state and what slime reads beside it: arguments, a model, rollout data."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from megatron.core import mpu
from megatron.core.model_parallel_config import ModelParallelConfig


@contextmanager
def parallel_state(**sizes: int) -> Iterator[None]:
    """Over the processes of torch.distributed. Its groups live as long as those: make few."""
    mpu.initialize_model_parallel(**sizes)
    try:
        yield
    finally:
        mpu.destroy_model_parallel()


@contextmanager
def virtual_stages(count: int | None) -> Iterator[None]:
    """Of the parallel state, also without a pipeline."""
    mpu.set_virtual_pipeline_model_parallel_world_size(count)
    try:
        yield
    finally:
        mpu.set_virtual_pipeline_model_parallel_world_size(None)


def args_of(**options: Any) -> SimpleNamespace:
    defaults = {
        "use_dynamic_batch_size": True,
        "max_tokens_per_gpu": None,
        "micro_batch_size": None,
        "global_batch_size": None,
    }
    return SimpleNamespace(**{**defaults, **options})


def model_of(group: int | None) -> list[SimpleNamespace]:
    config = ModelParallelConfig(microbatch_group_size_per_vp_stage=group)
    return [SimpleNamespace(module=SimpleNamespace(config=config))]  # wrapped, as Megatron's are


def data_of(lengths: list[int], **more: Any) -> dict[str, Any]:
    return {
        "total_lengths": lengths,
        "tokens": [[sample] * length for sample, length in enumerate(lengths)],
        **more,
    }

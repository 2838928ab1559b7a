"""isochron: LLM post-training where every rank finishes at the same time.

The planner turns the lengths of a batch into who runs what, with whom, in which order:

    >>> import isochron
    >>> plan = isochron.plan_step([7258, 7812, 8030, 2606], ranks=2, capacity=16384)
    >>> [group.sequences for group in plan.groups_of_rank(0)]
    [[0, 1]]

Names and options are those of C++ and of the JSON documents. Lengths are lists, numpy arrays or 1-D
tensors. An answer that does not exist is a `status` and a `reason`; a question that cannot be asked
is a ValueError. Nothing here imports torch, and the planner itself only on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isochron import layouts
    from isochron._planner import *
    from isochron._planner import pad_rows as pad
else:

    def __getattr__(name: str) -> Any:
        """A name of the planner, whose extension is loaded when it is first asked for."""
        if name not in __all__:
            raise AttributeError(f"module 'isochron' has no attribute '{name}'")
        if name == "layouts":
            return importlib.import_module("isochron.layouts")
        try:
            planner = importlib.import_module("isochron._planner")
        except ModuleNotFoundError as error:
            if error.name != "isochron._planner":
                raise
            raise ImportError(
                f"[isochron] {name} needs the extension isochron._planner, which is not built: "
                "pip install . or make wheel"
            ) from error
        return getattr(planner, {"pad": "pad_rows"}.get(name, name))


__version__ = "0.1.0"

__all__ = [
    "Balance",
    "Batch",
    "Capacity",
    "ContextCost",
    "ContextGroup",
    "ContextLink",
    "CostModel",
    "Hardware",
    "LoadSpread",
    "ModelShape",
    "PackedLayout",
    "Packing",
    "PaddedMinibatch",
    "PaddedRows",
    "RankSchedule",
    "StepPlan",
    "Timeline",
    "activation_bytes_per_token",
    "analytic_cost",
    "auto_capacity",
    "backward_flops",
    "balance",
    "balanced_partitions",
    "check",
    "cost_names",
    "cost_preset",
    "count_bound",
    "find_hardware",
    "forward_flops",
    "hardware_names",
    "hardware_preset",
    "karmarkar_karp",
    "layouts",
    "load_spread",
    "logits_bytes",
    "long_tailed_lengths",
    "mfu",
    "microbatch_count",
    "model_flops",
    "model_names",
    "model_preset",
    "model_shape_from_config",
    "naive_plan",
    "num_padding_rows",
    "num_parameters",
    "pack",
    "pad",
    "parse_batch",
    "plan_hash",
    "plan_step",
    "report",
    "required_multiple",
    "schedule_ranks",
    "sequence_costs",
    "simulate",
    "state_bytes",
    "verl_plan",
]


def __dir__() -> list[str]:
    """The names of the planner are there before it is loaded."""
    return sorted({*globals(), *__all__})

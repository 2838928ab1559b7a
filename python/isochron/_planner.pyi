"""The planner of isochron, in C++. Use it through the package isochron."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy
import numpy.typing
from numpy.typing import NDArray

import isochron.arrays


class Batch:
    """
    The sequences of a batch: lengths, and where given extra costs and prompt groups.
    """

    def __init__(self, lengths: isochron.arrays.IntegerArray, *, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None) -> None: ...

    @property
    def lengths(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Tokens of each sequence."""

    @property
    def extra_cost_ns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Of each sequence; empty if not given."""

    @property
    def groups(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """
        The prompt group of each sequence, numbered by first occurrence; empty if not given.
        """

    @property
    def group_names(self) -> list[str]:
        """Of each group number."""

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def parse_batch(text: str) -> Batch:
    """
    Reads lengths: a JSON array, CSV with a column `length` (and `group`, `extra_cost_ns`), or one integer a line.
    """

def long_tailed_lengths(count: int, seed: int = 0) -> numpy.typing.NDArray[numpy.int64]:
    """Lengths for demonstrations, equal on every machine."""

class Hardware:
    """A device and how it is connected. 1 GB is 1e9 bytes."""

    def __init__(self, *, name: str = '', peak_flops: float = 0, hbm_bytes: int = 0, hbm_gb_per_s: float = 0, devices_per_node: int = 1, node_gb_per_s: float = 0, network_gb_per_s: float = 0) -> None: ...

    @property
    def name(self) -> str:
        """What the device is called."""

    @property
    def peak_flops(self) -> float:
        """bf16, dense; 0: unknown."""

    @property
    def hbm_bytes(self) -> int:
        """Memory of a device."""

    @property
    def hbm_gb_per_s(self) -> float:
        """Of that memory."""

    @property
    def devices_per_node(self) -> int:
        """Devices of a node."""

    @property
    def node_gb_per_s(self) -> float:
        """Inside a node, one direction."""

    @property
    def network_gb_per_s(self) -> float:
        """Across nodes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def find_hardware(device_name: str) -> Hardware | None:
    """
    The preset for a device that calls itself so: "NVIDIA H100 80GB HBM3" -> h100; None for an unknown one.
    """

def hardware_preset(name: str) -> Hardware:
    """
    A preset by its own name, in any case. ValueError, with the nearest, for another.
    """

def hardware_names() -> list[str]:
    """The names of all presets."""

class ModelShape:
    """
    The sizes of a decoder with grouped-query attention and SwiGLU, dense or with experts: what parameters, FLOPs and memory are counted from.
    """

    def __init__(self, *, name: str = '', hidden: int = 0, layers: int = 0, heads: int = 0, kv_heads: int = 0, head_dim: int = 0, ffn: int = 0, vocabulary: int = 0, tied_head: bool = False, qkv_bias: bool = False, output_bias: bool = False, mlp_bias: bool = False, qk_norm: bool = False, sparse_layers: int = 0, num_experts: int = 0, experts_per_token: int = 0, moe_ffn: int = 0, shared_ffn: int = 0) -> None: ...

    @property
    def name(self) -> str:
        """What the model is called."""

    @property
    def hidden(self) -> int:
        """Width of the model."""

    @property
    def layers(self) -> int:
        """Layers."""

    @property
    def heads(self) -> int:
        """Query heads."""

    @property
    def kv_heads(self) -> int:
        """Key and value heads."""

    @property
    def head_dim(self) -> int:
        """Dimension of a head."""

    @property
    def ffn(self) -> int:
        """Width of a dense MLP."""

    @property
    def vocabulary(self) -> int:
        """Tokens of the vocabulary."""

    @property
    def tied_head(self) -> bool:
        """The output head is the embedding."""

    @property
    def qkv_bias(self) -> bool:
        """A bias on query, key and value."""

    @property
    def output_bias(self) -> bool:
        """A bias after attention."""

    @property
    def mlp_bias(self) -> bool:
        """A bias on a dense MLP."""

    @property
    def qk_norm(self) -> bool:
        """A norm over each query and key head."""

    @property
    def sparse_layers(self) -> int:
        """Layers with experts."""

    @property
    def num_experts(self) -> int:
        """In a sparse layer."""

    @property
    def experts_per_token(self) -> int:
        """Top-k."""

    @property
    def moe_ffn(self) -> int:
        """Width of an expert."""

    @property
    def shared_ffn(self) -> int:
        """Width of what every token passes."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def model_preset(name: str) -> ModelShape:
    """
    A shape by name, in any case. ValueError, with the nearest, for another.
    """

def model_names() -> list[str]:
    """The names of all presets."""

def model_shape_from_config(json_text: str) -> ModelShape:
    """The shape that the text of a Hugging Face config.json describes."""

def num_parameters(shape: ModelShape) -> int:
    """
    All parameters, exact: embedding, head unless tied, norms, biases, every expert.
    """

class ContextLink:
    """What connects the ranks of one block of the machine."""

    def __init__(self, *, max_ranks: int = 1, gb_per_s: float = 0, latency_us: float = 0) -> None: ...

    @property
    def max_ranks(self) -> int:
        """Ranks of a block."""

    @property
    def gb_per_s(self) -> float:
        """1 GB/s is 1 byte/ns."""

    @property
    def latency_us(self) -> float:
        """Per micro-batch: all layers, forward and backward."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

class ContextCost:
    """One way to exchange keys and values, and its price."""

    def __init__(self, *, kind: Literal['all_gather_kv', 'all_to_all', 'none'] = 'none', bytes_per_token: float = 0, divides: int = 0, links: Sequence[ContextLink] = ..., overlap: float = 0) -> None: ...

    @property
    def kind(self, /) -> Literal['all_gather_kv', 'all_to_all', 'none']:
        """How ranks see each other's keys and values."""

    @property
    def bytes_per_token(self) -> float:
        """Moved per token: forward and backward, all layers."""

    @property
    def divides(self) -> int:
        """all_to_all: the group size divides this; 0: any size."""

    @property
    def links(self) -> list[ContextLink]:
        """Ascending by max_ranks."""

    @property
    def overlap(self) -> float:
        """Share of the traffic that is hidden behind compute."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

class CostModel:
    """
    What sequences cost, in nanoseconds on one rank, forward and backward through all layers.
    """

    def __init__(self, *, name: str = '', quadratic_ns: float = 0, linear_ns: float = 0, microbatch_ns: float = 0, forward_share: float = 0.3333333333333333, context: Sequence[ContextCost] = ..., activation_bytes_per_token: float = 0) -> None: ...

    @property
    def name(self) -> str:
        """What the model is called."""

    @property
    def quadratic_ns(self) -> float:
        """Per token squared."""

    @property
    def linear_ns(self) -> float:
        """Per token."""

    @property
    def microbatch_ns(self) -> float:
        """Fixed, per micro-batch."""

    @property
    def forward_share(self) -> float:
        """Of any cost, for pipelines and forward-only passes."""

    @property
    def context(self) -> list[ContextCost]:
        """
        Ways to exchange keys and values; a group uses the cheapest that it may.
        """

    @property
    def activation_bytes_per_token(self) -> float:
        """Kept for the backward, on one rank."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def to_json(self) -> str:
        """JSON with the names of the fields."""

    @staticmethod
    def from_json(json_text: str) -> CostModel:
        """
        Reads what to_json() writes; fields may be missing. ValueError for anything else.
        """

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

def cost_preset(name: str) -> CostModel:
    """
    A model by name, in any case: verl, or MODEL_HARDWARE as in "qwen3-8b_h100".
    """

def cost_names() -> list[str]:
    """The names of all presets."""

def sequence_costs(cost: CostModel | str, lengths: isochron.arrays.IntegerArray | Batch, *, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None) -> numpy.typing.NDArray[numpy.int64]:
    """
    What each sequence costs on one rank: quadratic_ns * s * s + linear_ns * s + its extra cost.
    """

def analytic_cost(shape: ModelShape, hardware: Hardware, *, tensor_parallel: int = 1, recompute: Literal['none', 'selective', 'full'] = 'none', keep_gathered_kv: bool = False) -> CostModel:
    """
    A cost model from formulas: the FLOPs of the shape at half of the peak, 5 ms a micro-batch, both exchanges over the links of the hardware.

    Options:
        tensor_parallel: devices that make one rank
        recompute: what the backward computes again
        keep_gathered_kv: keep gathered keys and values for the backward
    """

def forward_flops(shape: ModelShape, lengths: isochron.arrays.IntegerArray, *, exact: bool = False) -> float:
    """
    FLOPs of the forward of a packed causal batch; exact: L (L + 1) / 2 pairs of tokens instead of L^2 / 2.
    """

def backward_flops(shape: ModelShape, lengths: isochron.arrays.IntegerArray, *, exact: bool = False) -> float:
    """Twice the forward."""

def model_flops(shape: ModelShape, lengths: isochron.arrays.IntegerArray) -> float:
    """Forward and backward with half squares: what train/mfu means."""

def verl_flops(shape: ModelShape, lengths: isochron.arrays.IntegerArray) -> float:
    """Forward and backward by verl's count; for comparison."""

def mfu(flops: float, seconds: float, hardware: Hardware | None, devices: int) -> float | None:
    """
    Model FLOPs utilization: the share of the peak of all devices; None if unknown.
    """

def activation_bytes_per_token(shape: ModelShape, recompute: Literal['none', 'selective', 'full'] = 'none') -> int:
    """
    Bytes that the layers keep for the backward of one token, on one device.
    """

def state_bytes(parameters: int, optimizer_shards: int = 1) -> int:
    """Bytes of weights, gradients and optimizer on one device."""

def logits_bytes(shape: ModelShape, tokens: int, tensor_parallel: int = 1) -> int:
    """Bytes of the output head for so many tokens at a time."""

class Capacity:
    """
    Where the memory of the fullest device goes, in bytes, and the tokens that the rest is for.
    """

    @property
    def tokens(self) -> int:
        """Of a micro-batch, on each rank: the capacity."""

    @property
    def device_bytes(self) -> int:
        """All there is."""

    @property
    def reserve_bytes(self) -> int:
        """A tenth, for what nobody plans."""

    @property
    def state_bytes(self) -> int:
        """Weights, gradients, optimizer."""

    @property
    def logits_bytes(self) -> int:
        """Of one chunk of the loss."""

    @property
    def activation_bytes(self) -> int:
        """What is left."""

    @property
    def activation_bytes_per_token(self) -> int:
        """Of the capacity: all micro-batches in flight."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def auto_capacity(shape: ModelShape, hardware: Hardware, *, ranks: int = 1, tensor_parallel: int = 1, stages: int = 1, virtual: int = 1, group: int = 1, shares: Sequence[float] = (), recompute: Literal['none', 'selective', 'full'] = 'none', keeps_activations: bool = True, loss_chunk: int = 2048) -> Capacity:
    """
    The capacity with which a training step fits into the memory of a device, however the slots are filled.
    """

class ContextGroup:
    """Ranks that run some sequences together, in one slot."""

    @property
    def ranks(self) -> list[int]:
        """Consecutive and ascending."""

    @property
    def sequences(self) -> list[int]:
        """Ascending; none: a placeholder of one rank."""

    @property
    def exchange(self, /) -> Literal['all_gather_kv', 'all_to_all', 'none'] | None:
        """Given if the cost model offers several."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

class StepPlan:
    """
    Who runs what, with whom, in which order: a step as data, with all that was asked, so that it can be checked, simulated, executed and drawn alone.
    """

    @property
    def status(self, /) -> Literal['optimal', 'feasible', 'infeasible', 'unknown']:
        """Whether this is proved the best, or that there is no answer."""

    @property
    def reason(self) -> str:
        """Why there is no answer, in words; empty otherwise."""

    @property
    def ranks(self) -> int:
        """Data x context parallel ranks."""

    @property
    def capacity(self) -> int:
        """Padded tokens of a micro-batch that one rank may hold."""

    @property
    def pipeline(self, /) -> dict[str, Any]:
        """stages, virtual, group, transfer_ns and shares."""

    @property
    def rank_speed(self) -> list[float]:
        """1: as fast as the cost model says; empty: all 1."""

    @property
    def options(self, /) -> dict[str, Any]:
        """
        What was asked, with every default filled in, under the keys of the document.
        """

    @property
    def cost(self) -> CostModel:
        """The cost model."""

    @property
    def batch(self) -> Batch:
        """The sequences that were planned."""

    @property
    def first_sequence(self) -> int:
        """Of the batch, in the data set it was cut from."""

    @property
    def padding_rows(self) -> int:
        """Synthetic sequences of 2 tokens, with the ids after the last."""

    @property
    def predicted_step_ns(self) -> int:
        """When the last rank is done."""

    @property
    def lower_bound_ns(self) -> int:
        """No plan under the same options takes less."""

    @property
    def imbalance(self) -> float:
        """Busiest rank over mean."""

    @property
    def lengths(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Tokens of each sequence, without padding rows."""

    @property
    def peak_activation_bytes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Of each rank, on its fullest stage."""

    @property
    def microbatches(self) -> list[list[ContextGroup]]:
        """
        The slots in the order of running; of each the groups that run in it, by rank. A list made anew each time.
        """

    @property
    def oversized(self) -> list[int]:
        """Over the capacity, each alone."""

    @property
    def dropped(self) -> list[int]:
        """In no group."""

    def groups_of_rank(self, rank: int) -> list[ContextGroup]:
        """The groups that a rank runs, in the order of running."""

    @property
    def hash(self) -> str:
        """
        16 hex digits over all the rest: equal on every machine where the plan is.
        """

    def to_json(self) -> str:
        """
        The document that the command line writes: all that was asked and answered.
        """

    def check(self) -> str | None:
        """The first rule that the result breaks, in words; None if it is valid."""

    @staticmethod
    def from_json(json_text: str) -> StepPlan:
        """
        Reads what to_json() and the command line write. Checks the form; what a plan means is checked by check(). ValueError for anything else.
        """

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

    def _repr_html_(self) -> str:
        """The report as a frame that needs nothing else."""

    def show(self) -> None:
        """
        Shows the report: inline in a notebook, elsewhere as a page whose path is printed.
        """

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def plan_hash(plan: StepPlan) -> int:
    """FNV-1a, 64 bits, over the bytes of the document."""

class Balance:
    """Which rank has which sequences."""

    @property
    def status(self, /) -> Literal['optimal', 'feasible', 'infeasible', 'unknown']:
        """Whether this is proved the best, or that there is no answer."""

    @property
    def reason(self) -> str:
        """Why there is no answer, in words; empty otherwise."""

    @property
    def max_cost(self) -> int:
        """Of the most loaded rank; with mini-batches the sum over them."""

    @property
    def mean_cost(self) -> float:
        """Of a rank."""

    @property
    def lower_bound(self) -> int:
        """No valid assignment has a smaller max_cost."""

    @property
    def sequences_of_rank(self) -> list[list[int]]:
        """
        The sequences of each rank, mini-batch by mini-batch; a list made anew each time.
        """

    @property
    def costs(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Of each sequence: what was balanced."""

    def to_json(self) -> str:
        """
        The document that the command line writes: all that was asked and answered.
        """

    def check(self) -> str | None:
        """The first rule that the result breaks, in words; None if it is valid."""

    def __repr__(self) -> str: ...

def balance(lengths: isochron.arrays.IntegerArray | Batch | None, ranks: int, *, costs: isochron.arrays.IntegerArray | None = None, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None, cost: CostModel | str | None = None, equal_count: bool = False, keep_groups: Literal['none', 'rank'] = 'none', minibatch: int = 0, capacity: int = 0, order: Literal['index', 'small_ends'] = 'index', max_work: int | None = None) -> Balance:
    """
    Assigns every sequence to a rank so that the largest sum of costs is as small as possible.

    Never worse than Karmarkar-Karp or longest-first. No assignment under the capacity is an outcome (status, reason); ValueError for a question that cannot be asked.

    Args:
        lengths: tokens of each sequence, or a Batch
        extra_cost_ns: of each sequence, on top of what its length costs
        groups: of each sequence an integer or a text, equal where sequences share a prompt
        costs: of each sequence, instead of a cost model
        cost: a CostModel or the name of a preset; verl's workload if None

    Options:
        equal_count: sequences per rank differ by at most one
        keep_groups: rank: sequences of a group on the same rank
        minibatch: balance each block of this many rows; 0: all rows
        capacity: tokens that a rank may hold in a mini-batch; 0: no limit
        order: sequences inside a rank: by index, or small at both ends
        max_work: search limit, in exchanges weighed; not given: grows with the batch
    """

def karmarkar_karp(values: isochron.arrays.NumberArray, parts: int, sizes: Literal['equal', 'free']) -> list[list[int]]:
    """
    Divides the items into sets of about equal sums by largest differencing, bit for bit as verl and slime do.

    The sets come in descending order of (sum, number of items, first item), items in the order in which the method joined them. Sums are formed in the type of the values: integers, float32 or float64.
    """

def balanced_partitions(values: isochron.arrays.NumberArray, parts: int, sizes: Literal['equal', 'free']) -> list[list[int]]:
    """
    The sets of karmarkar_karp() in the same order, the items of each ascending: verl's get_seqlen_balanced_partitions.
    """

class LoadSpread:
    """Sums over ranks before and after balancing: verl's global_seqlen/*."""

    def __init__(self, *, min: int = 0, max: int = 0, minmax_diff: int = 0, balanced_min: int = 0, balanced_max: int = 0, mean: float = 0) -> None: ...

    @property
    def min(self) -> int:
        """Before: the input order cut into contiguous parts."""

    @property
    def max(self) -> int:
        """Before."""

    @property
    def minmax_diff(self) -> int:
        """Before."""

    @property
    def balanced_min(self) -> int:
        """After."""

    @property
    def balanced_max(self) -> int:
        """After."""

    @property
    def mean(self) -> float:
        """Of a rank."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def load_spread(values: isochron.arrays.IntegerArray, sequences_of_rank: Sequence[Sequence[int]]) -> LoadSpread:
    """The spread of values (lengths or costs) over the ranks."""

class Packing:
    """Sequences in micro-batches under a capacity."""

    @property
    def status(self, /) -> Literal['optimal', 'feasible', 'infeasible', 'unknown']:
        """Whether this is proved the best, or that there is no answer."""

    @property
    def reason(self) -> str:
        """Why there is no answer, in words; empty otherwise."""

    @property
    def lower_bound(self) -> int:
        """No valid packing has fewer micro-batches."""

    @property
    def max_cost(self) -> int:
        """Of a micro-batch."""

    @property
    def max_cost_bound(self) -> int:
        """No packing of as many micro-batches has a smaller max_cost."""

    @property
    def microbatches(self) -> list[list[int]]:
        """
        The sequences of each micro-batch, ascending; empty ones, if the counts need any, last. A list made anew each time.
        """

    @property
    def oversized(self) -> list[int]:
        """Each alone, over the capacity."""

    @property
    def dropped(self) -> list[int]:
        """In no micro-batch."""

    @property
    def costs(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Of each sequence."""

    def to_json(self) -> str:
        """
        The document that the command line writes: all that was asked and answered.
        """

    def check(self) -> str | None:
        """The first rule that the result breaks, in words; None if it is valid."""

    def __repr__(self) -> str: ...

class RankSchedule:
    """The micro-batches of all ranks of a step, from one packing."""

    @property
    def status(self, /) -> Literal['optimal', 'feasible', 'infeasible', 'unknown']:
        """Whether this is proved the best, or that there is no answer."""

    @property
    def reason(self) -> str:
        """Why there is no answer, in words; empty otherwise."""

    @property
    def packing(self) -> Packing:
        """
        Of all ranks, before they were dealt; also says why there is no schedule.
        """

    @property
    def microbatches_of_rank(self, /) -> list[list[int]]:
        """
        Places in packing.microbatches, equally many for each rank, in the order of running.
        """

    @property
    def max_cost(self) -> int:
        """Of a rank."""

    @property
    def lower_bound(self) -> int:
        """No schedule of these sequences has a smaller max_cost."""

    def __repr__(self) -> str: ...

def microbatch_count(lengths: isochron.arrays.IntegerArray, capacity: int) -> int:
    """
    How many micro-batches first-fit decreasing needs: cheap, so that ranks can agree on a count before they pack. pack() with that count always succeeds.
    """

def volume_bound(lengths: isochron.arrays.IntegerArray, capacity: int) -> int:
    """All tokens over the capacity, rounded up."""

def l2_bound(lengths: isochron.arrays.IntegerArray, capacity: int) -> int:
    """Martello and Toth's L2 bound on the number of micro-batches."""

def dual_feasible_bound(lengths: isochron.arrays.IntegerArray, capacity: int) -> int:
    """Fekete and Schepers' dual feasible functions."""

def count_bound(lengths: isochron.arrays.IntegerArray, capacity: int) -> int:
    """The best of the three bounds."""

def pack(lengths: isochron.arrays.IntegerArray | Batch, *, costs: isochron.arrays.IntegerArray | None = None, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None, cost: CostModel | str | None = None, capacity: int, multiple: int = 1, min_count: int = 0, count: int | None = None, max_sequences: int = 0, oversize: Literal['error', 'alone'] = 'error', short: Literal['empty', 'error', 'drop'] = 'empty', keep_groups: Literal['none', 'microbatch'] = 'none', order: Literal['index', 'small_ends'] = 'index', max_work: int | None = None) -> Packing:
    """
    Packs whole sequences into the fewest micro-batches that the options allow, then makes their largest cost as small as possible, then the spread.

    A length above the capacity is an outcome, decided by `oversize`; ValueError for a question that cannot be asked.

    Args:
        lengths: tokens of each sequence, or a Batch
        extra_cost_ns: of each sequence, on top of what its length costs
        groups: of each sequence an integer or a text, equal where sequences share a prompt
        costs: of each sequence, instead of a cost model
        cost: a CostModel or the name of a preset; verl's workload if None

    Options:
        capacity: tokens that one micro-batch may hold; required
        multiple: the number of micro-batches is a multiple of this
        min_count: at least this many micro-batches
        count: exactly this many micro-batches
        max_sequences: sequences that one micro-batch may hold; 0: no limit
        oversize: a sequence longer than the capacity
        short: fewer sequences than micro-batches
        keep_groups: microbatch: sequences of a group in the same micro-batch
        order: micro-batches by first sequence, or small at both ends
        max_work: search limit, in exchanges weighed; not given: grows with the batch
    """

def schedule_ranks(lengths: isochron.arrays.IntegerArray | Batch, ranks: int, *, costs: isochron.arrays.IntegerArray | None = None, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None, cost: CostModel | str | None = None, capacity: int, multiple: int = 1, min_count: int = 0, count: int | None = None, max_sequences: int = 0, oversize: Literal['error', 'alone'] = 'error', short: Literal['empty', 'error', 'drop'] = 'empty', keep_groups: Literal['none', 'microbatch'] = 'none', order: Literal['index', 'small_ends'] = 'index', max_work: int | None = None) -> RankSchedule:
    """
    The micro-batches of all ranks of a data-parallel step, from one packing: under the capacity, the same number on each rank, aligned, and balanced by cost.

    Counts speak of one rank.

    Args:
        lengths: tokens of each sequence, or a Batch
        extra_cost_ns: of each sequence, on top of what its length costs
        groups: of each sequence an integer or a text, equal where sequences share a prompt
        costs: of each sequence, instead of a cost model
        cost: a CostModel or the name of a preset; verl's workload if None

    Options:
        capacity: tokens that one micro-batch may hold; required
        multiple: the number of micro-batches is a multiple of this
        min_count: at least this many micro-batches
        count: exactly this many micro-batches
        max_sequences: sequences that one micro-batch may hold; 0: no limit
        oversize: a sequence longer than the capacity
        short: fewer sequences than micro-batches
        keep_groups: microbatch: sequences of a group in the same micro-batch
        order: micro-batches by first sequence, or small at both ends
        max_work: search limit, in exchanges weighed; not given: grows with the batch
    """

def verl_microbatches(lengths: isochron.arrays.IntegerArray, *, all_reduce_max: Callable[[list[int]], Sequence[int]] | None = None, max_token_len: int, num_batches_divided_by: int | None = None, min_num_micro_batch: int | None = None, use_dynamic_bsz_balance: bool = True, force_group_size: int = 1, max_seq_len: int | None = None, rule: Literal['v0_9_1', 'before_7553'] = 'v0_9_1') -> list[list[int]]:
    """
    verl's rearrange_micro_batches on lengths, answer for answer and error for error.

    all_reduce_max is called exactly where verl calls its all-reduces: it takes the numbers of this rank and returns the largest of each over the ranks. AssertionError and ValueError where verl raises them, with its texts.

    Options:
        max_token_len: tokens of one micro-batch; required
        num_batches_divided_by: the number of micro-batches is a multiple of this
        min_num_micro_batch: at least this many micro-batches
        use_dynamic_bsz_balance: small micro-batches first and last; otherwise descending
        force_group_size: so many consecutive sequences stay together
        max_seq_len: width of a padded batch, which max_token_len must reach; none: longest sequence
        rule: the version of verl whose answers are given
    """

def verl_workload(length: int) -> int:
    """24576 s + s^2: what a sequence costs in verl's unit."""

def verl_seqlen_unbalance(values: isochron.arrays.IntegerArray, partitions: Sequence[Sequence[int]]) -> LoadSpread:
    """
    verl's log_seqlen_unbalance; load_spread() cuts the input into as many parts as ranks.
    """

class SlimeShape:
    """What slime's estimate of FLOPs knows of a model."""

    def __init__(self, *, hidden_size: int = 0, num_attention_heads: int = 0, kv_channels: int = 0, num_query_groups: int = 0, ffn_hidden_size: int = 0, vocab_size: int = 0, num_layers: int = 0) -> None: ...

    @property
    def hidden_size(self) -> int:
        """Width of the model."""

    @property
    def num_attention_heads(self) -> int:
        """Query heads."""

    @property
    def kv_channels(self) -> int:
        """Dimension of a head."""

    @property
    def num_query_groups(self) -> int:
        """KV heads."""

    @property
    def ffn_hidden_size(self) -> int:
        """Width of the MLP."""

    @property
    def vocab_size(self) -> int:
        """Tokens of the vocabulary."""

    @property
    def num_layers(self) -> int:
        """Layers."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def slime_forward_flops(length: int, shape: SlimeShape) -> float:
    """slime's calculate_fwd_flops of one sample of a dense model."""

class SlimeSchedule:
    """What slime's build_dp_schedule returns."""

    @property
    def partitions(self) -> list[list[int]]:
        """Samples of each rank, in the order of running."""

    @property
    def micro_batch_indices(self) -> list[list[list[int]]]:
        """
        Of each rank, each micro-batch of all steps: positions in the rank's samples.
        """

    @property
    def num_microbatches(self) -> list[int]:
        """Of a rank in each step."""

    @property
    def global_batch_sizes(self) -> list[int]:
        """Rollouts of each step."""

    def __eq__(self, other: object, /) -> bool: ...

def slime_schedule(lengths: isochron.arrays.IntegerArray, rollouts: isochron.arrays.IntegerArray, shape: SlimeShape, *, global_batch_size: int, dp_size: int = 1, cp_size: int = 1, vpp_size: int = 1, microbatch_group_size_per_vp_stage: int = 1, use_dynamic_batch_size: bool = False, max_tokens_per_gpu: int | None = None, micro_batch_size: int | None = None, balance_data: bool = False, balance_by_flops: bool = False) -> SlimeSchedule:
    """
    slime's build_dp_schedule, answer for answer and error for error. rollouts[i] is the rollout of sample i.

    Options:
        global_batch_size: rollouts of a step; required
        dp_size: data-parallel ranks
        cp_size: context-parallel ranks
        vpp_size: virtual pipeline stages
        microbatch_group_size_per_vp_stage: a rank's micro-batches are a multiple of this if vpp_size > 1
        use_dynamic_batch_size: micro-batches by tokens; otherwise of micro_batch_size samples
        max_tokens_per_gpu: tokens of a micro-batch per rank
        micro_batch_size: samples of a micro-batch
        balance_data: micro-batches onto ranks by FLOPs
        balance_by_flops: samples into micro-batches by FLOPs; may exceed max_tokens_per_gpu
    """

def slime_first_fit_pack(lengths: isochron.arrays.IntegerArray, max_tokens: int) -> list[list[int]]:
    """
    slime's first_fit_pack: in input order, each sample to the first bin with room.
    """

def slime_expand_bins(bins: Sequence[Sequence[int]], target: int, lengths: isochron.arrays.IntegerArray) -> list[list[int]]:
    """
    slime's expand_bins_by_splitting: cuts the bin with the most tokens in two until there are `target` bins.
    """

def slime_min_microbatches(lengths: isochron.arrays.IntegerArray, max_tokens: int) -> int:
    """
    slime's get_minimum_num_micro_batch_size: the number of first-fit bins.
    """

def slime_capped_partitions(lengths: isochron.arrays.IntegerArray, count: int, max_tokens: int) -> list[list[int]]:
    """
    slime's _get_capped_partitions: first fit into exactly `count` bins, some perhaps empty.
    """

class PaddedMinibatch:
    """Positions begin to end - 1 of PaddedRows.rows."""

    @property
    def begin(self) -> int:
        """First position."""

    @property
    def end(self) -> int:
        """Behind the last position."""

    @property
    def num_real(self) -> int:
        """What every denominator counts."""

    @property
    def is_run(self) -> bool:
        """Not without a real row, on any rank."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

class PaddedRows:
    """Rows whose number divides."""

    @property
    def status(self, /) -> Literal['optimal', 'feasible', 'infeasible', 'unknown']:
        """Whether this is proved the best, or that there is no answer."""

    @property
    def reason(self) -> str:
        """Why there is no answer, in words; empty otherwise."""

    @property
    def num_real(self) -> int:
        """Rows of the input."""

    @property
    def num_padding(self) -> int:
        """Rows that were added."""

    @property
    def minibatches(self) -> list[PaddedMinibatch]:
        """In order."""

    @property
    def rows(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """
        The row at each position: real rows 0 to n - 1 in order, padding rows n and up between them.
        """

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def pad_rows(num_rows: int, *, pad: Literal['uneven', 'rows', 'error'] = 'uneven', multiple: int = 1, minibatch: int = 0) -> PaddedRows:
    """
    Makes the number of rows a multiple, by the policy `pad`.

    `rows` adds the fewest padding rows and spreads them evenly, `uneven` leaves the rows as they are, `error` is infeasible unless they divide.

    Options:
        pad: rows that do not divide: uneven, rows or error
        multiple: the number of rows is a multiple of this
        minibatch: rows of a mini-batch; 0: all rows are one
    """

def required_multiple(step: int, *, actor_ranks: int = 1, actor_ppo_mini_batch_size: int = 1, rollout_n: int = 1, critic_ppo_mini_batch_size: int | None = None, critic_ranks: int | None = None, critic_warmup: int = 0) -> int:
    """
    The smallest number whose multiples divide into the ranks and mini-batches of every model that trains at `step`.

    Options:
        actor_ranks: data-parallel ranks of the actor
        actor_ppo_mini_batch_size: prompts of a mini-batch of the actor
        rollout_n: rows of a prompt
        critic_ppo_mini_batch_size: prompts of a mini-batch of the critic; none: no critic
        critic_ranks: data-parallel ranks of the critic; none: those of the actor
        critic_warmup: steps before the actor trains
    """

def num_padding_rows(num_rows: int, multiple: int) -> int:
    """
    The fewest rows to add so that `multiple` divides the sum; none to no rows.
    """

def num_real_between(num_real: int, num_rows: int, begin: int, end: int) -> int:
    """How many of the positions begin to end - 1 hold a real row."""

class ColumnSchema:
    """
    A column of the rows: its name, its type, and the extent of each dimension, a number or a length of the row.
    """

    def __init__(self, name: str, type: Literal['boolean', 'uint8', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64', 'text', 'mapping'], shape: Sequence[int | Literal['prompt', 'response', 'sequence']] = ()) -> None: ...

    @property
    def name(self) -> str:
        """Of the column."""

    @property
    def type(self, /) -> Literal['boolean', 'uint8', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64', 'text', 'mapping']:
        """Of its numbers."""

    @property
    def shape(self, /) -> list[int | Literal['prompt', 'response', 'sequence']]:
        """None: one number a row."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def verl_columns() -> list[ColumnSchema]:
    """The columns that verl's rows have in common."""

class PaddingColumn:
    """A column of a padding row."""

    @property
    def name(self) -> str:
        """Of the column."""

    @property
    def type(self, /) -> Literal['boolean', 'uint8', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64', 'text', 'mapping']:
        """Of its numbers."""

    @property
    def shape(self) -> list[int]:
        """Of its numbers."""

    @property
    def text(self) -> str:
        """Of a column of texts."""

    @property
    def values(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Row-major; whole numbers, whatever the type."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

class PaddingTag:
    """What the store keeps beside the columns."""

    def __init__(self, *, is_padding: bool = True, prompt_len: int = 1, response_len: int = 1, seq_len: int = 2) -> None: ...

    @property
    def is_padding(self) -> bool:
        """It trains nothing."""

    @property
    def prompt_len(self) -> int:
        """Tokens of the prompt."""

    @property
    def response_len(self) -> int:
        """Tokens of the response."""

    @property
    def seq_len(self) -> int:
        """Tokens of both."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

class PaddingRow:
    """A row of two tokens that trains nothing."""

    @property
    def columns(self) -> list[PaddingColumn]:
        """Those of the schema, in order."""

    @property
    def tag(self) -> PaddingTag:
        """Beside the columns."""

    def __eq__(self, other: object, /) -> bool: ...

def padding_row(schema: Sequence[ColumnSchema], eos_token_id: int | None, uid: str) -> PaddingRow:
    """
    A row of two tokens that trains nothing, made from the schema alone.

    eos in prompts, responses and input_ids, 1 in attention_mask, `uid` in the column uid, 0 or nothing in every other column.
    """

class Timeline:
    """
    What a plan does, second by second. The arrays from rank to end_ns have one entry for each operation, ordered by rank, stage and begin.
    """

    @property
    def is_backward(self) -> Annotated[NDArray[numpy.bool_], dict(shape=(None,), writable=False)]:
        """True for a backward, False for a forward."""

    @property
    def step_ns(self) -> int:
        """End of the last operation."""

    @property
    def busy_ns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Of each rank and stage, at rank * stages + stage."""

    @property
    def peak_activation_bytes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Of each rank, on its fullest stage."""

    @property
    def rank(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """The rank of each operation."""

    @property
    def stage(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Its stage."""

    @property
    def slot(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """The slot that it runs."""

    @property
    def chunk(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Of layers, 0 to stages * virtual - 1."""

    @property
    def group(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """The group, as a position in its slot."""

    @property
    def begin_ns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """When it begins."""

    @property
    def end_ns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """When it ends."""

    def __len__(self) -> int: ...

    def trace_json(self) -> str:
        """The timeline in the trace format of Chrome and Perfetto."""

    def __repr__(self) -> str: ...

def simulate(plan: StepPlan, cost: CostModel | str | None = None) -> Timeline:
    """
    Plays a plan, with its own costs or others. ValueError for a plan that check() rejects or that has no micro-batches.
    """

def plan_step(lengths: isochron.arrays.IntegerArray | Batch, ranks: int, capacity: int, *, cost: CostModel | str | None = None, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None, stages: int = 1, virtual: int = 1, group: int | None = None, transfer_ns: int = 0, shares: Sequence[float] | None = None, rank_speed: Sequence[float] | None = None, context: str = 'static:1', min_context_size: int = 1, max_context_size: int = 0, sync: Literal['step', 'microbatch'] = 'step', counts: Literal['free', 'equal'] | None = None, pass_: Literal['train', 'forward'] = 'train', balance: bool = True, max_sequences: int = 0, tensor_parallel: int = 1, oversize: Literal['error', 'alone', 'widen'] | None = None, short: Literal['empty', 'error', 'drop'] = 'empty', keep_groups: Literal['none', 'rank', 'microbatch'] = 'none', pad: Literal['uneven', 'rows', 'error'] | None = None, pad_multiple: int = 1, max_activation_bytes: int = 0, effort: int | None = None) -> StepPlan:
    """
    Plans one step: which ranks run which sequences, with whom, in which order, so that the last rank finishes as early as the search can make it.

    Lengths over the capacity and counts that cannot be filled are outcomes (status, reason), decided by the options; ValueError for a question that cannot be asked. Equal inputs give equal plans on every machine.

    Args:
        lengths: tokens of each sequence, or a Batch
        extra_cost_ns: of each sequence, on top of what its length costs
        groups: of each sequence an integer or a text, equal where sequences share a prompt
        ranks: data x context parallel ranks; each is a pipeline of `stages`
        capacity: padded tokens of a micro-batch that one rank may hold
        cost: a CostModel or the name of a preset; qwen3-8b_h100 if None
        stages: devices of every rank
        virtual: chunks of layers per stage
        group: slots that a chunk runs before the next, if virtual; the stages if None
        transfer_ns: from the end of a chunk to the start of the next
        shares: of each chunk in the cost; all equal if None
        rank_speed: of each rank, 1: as fast as the cost model says; all 1 if None

    Options:
        context: ranks that share a sequence: static:C, dynamic (aligned), dynamic:powers or dynamic:any
        min_context_size: dynamic: ranks of a group, at least
        max_context_size: dynamic: ranks of a group, at most; 0: all
        sync: all ranks wait for each other after a step or a micro-batch
        counts: slots per rank; not given: free, equal where sync or stages ask for it
        pass_: forward and backward, or forward only
        balance: false: deal the input in order, as a loader would
        max_sequences: sequences that one micro-batch may hold; 0: no limit
        tensor_parallel: devices of a rank; lengths are padded to a multiple
        oversize: a sequence over the capacity; not given: widen where sizes are dynamic, else error
        short: too few sequences for the slots that are required
        keep_groups: where sequences of a prompt group stay together
        pad: rows that pad_multiple does not divide; not given: rows if it is above 1
        pad_multiple: the number of rows is a multiple of this, up to 1048576
        max_activation_bytes: of the slots in flight on a stage; 0: no limit
        effort: work of the search, in placements weighed; not given: grows with the batch
    """

def naive_plan(lengths: isochron.arrays.IntegerArray | Batch, ranks: int, capacity: int, *, cost: CostModel | str | None = None, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None, stages: int = 1, virtual: int = 1, group: int | None = None, transfer_ns: int = 0, shares: Sequence[float] | None = None, rank_speed: Sequence[float] | None = None, context: str = 'static:1', min_context_size: int = 1, max_context_size: int = 0, sync: Literal['step', 'microbatch'] = 'step', counts: Literal['free', 'equal'] | None = None, pass_: Literal['train', 'forward'] = 'train', balance: bool = True, max_sequences: int = 0, tensor_parallel: int = 1, oversize: Literal['error', 'alone', 'widen'] | None = None, short: Literal['empty', 'error', 'drop'] = 'empty', keep_groups: Literal['none', 'rank', 'microbatch'] = 'none', pad: Literal['uneven', 'rows', 'error'] | None = None, pad_multiple: int = 1, max_activation_bytes: int = 0, effort: int | None = None) -> StepPlan:
    """
    The step without a planner: sequence i goes to group i mod N, which packs next-fit.

    Args:
        lengths: tokens of each sequence, or a Batch
        extra_cost_ns: of each sequence, on top of what its length costs
        groups: of each sequence an integer or a text, equal where sequences share a prompt
        ranks: data x context parallel ranks; each is a pipeline of `stages`
        capacity: padded tokens of a micro-batch that one rank may hold
        cost: a CostModel or the name of a preset; qwen3-8b_h100 if None
        stages: devices of every rank
        virtual: chunks of layers per stage
        group: slots that a chunk runs before the next, if virtual; the stages if None
        transfer_ns: from the end of a chunk to the start of the next
        shares: of each chunk in the cost; all equal if None
        rank_speed: of each rank, 1: as fast as the cost model says; all 1 if None

    Options:
        context: ranks that share a sequence: static:C, dynamic (aligned), dynamic:powers or dynamic:any
        min_context_size: dynamic: ranks of a group, at least
        max_context_size: dynamic: ranks of a group, at most; 0: all
        sync: all ranks wait for each other after a step or a micro-batch
        counts: slots per rank; not given: free, equal where sync or stages ask for it
        pass_: forward and backward, or forward only
        balance: false: deal the input in order, as a loader would
        max_sequences: sequences that one micro-batch may hold; 0: no limit
        tensor_parallel: devices of a rank; lengths are padded to a multiple
        oversize: a sequence over the capacity; not given: widen where sizes are dynamic, else error
        short: too few sequences for the slots that are required
        keep_groups: where sequences of a prompt group stay together
        pad: rows that pad_multiple does not divide; not given: rows if it is above 1
        pad_multiple: the number of rows is a multiple of this, up to 1048576
        max_activation_bytes: of the slots in flight on a stage; 0: no limit
        effort: work of the search, in placements weighed; not given: grows with the batch
    """

def verl_plan(lengths: isochron.arrays.IntegerArray | Batch, ranks: int, capacity: int, *, cost: CostModel | str | None = None, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None, stages: int = 1, virtual: int = 1, group: int | None = None, transfer_ns: int = 0, shares: Sequence[float] | None = None, rank_speed: Sequence[float] | None = None, context: str = 'static:1', min_context_size: int = 1, max_context_size: int = 0, sync: Literal['step', 'microbatch'] = 'step', counts: Literal['free', 'equal'] | None = None, pass_: Literal['train', 'forward'] = 'train', balance: bool = True, max_sequences: int = 0, tensor_parallel: int = 1, oversize: Literal['error', 'alone', 'widen'] | None = None, short: Literal['empty', 'error', 'drop'] = 'empty', keep_groups: Literal['none', 'rank', 'microbatch'] = 'none', pad: Literal['uneven', 'rows', 'error'] | None = None, pad_multiple: int = 1, max_activation_bytes: int = 0, effort: int | None = None) -> StepPlan:
    """
    The step by the rules of verl 0.9.1, on static groups.

    Args:
        lengths: tokens of each sequence, or a Batch
        extra_cost_ns: of each sequence, on top of what its length costs
        groups: of each sequence an integer or a text, equal where sequences share a prompt
        ranks: data x context parallel ranks; each is a pipeline of `stages`
        capacity: padded tokens of a micro-batch that one rank may hold
        cost: a CostModel or the name of a preset; qwen3-8b_h100 if None
        stages: devices of every rank
        virtual: chunks of layers per stage
        group: slots that a chunk runs before the next, if virtual; the stages if None
        transfer_ns: from the end of a chunk to the start of the next
        shares: of each chunk in the cost; all equal if None
        rank_speed: of each rank, 1: as fast as the cost model says; all 1 if None

    Options:
        context: ranks that share a sequence: static:C, dynamic (aligned), dynamic:powers or dynamic:any
        min_context_size: dynamic: ranks of a group, at least
        max_context_size: dynamic: ranks of a group, at most; 0: all
        sync: all ranks wait for each other after a step or a micro-batch
        counts: slots per rank; not given: free, equal where sync or stages ask for it
        pass_: forward and backward, or forward only
        balance: false: deal the input in order, as a loader would
        max_sequences: sequences that one micro-batch may hold; 0: no limit
        tensor_parallel: devices of a rank; lengths are padded to a multiple
        oversize: a sequence over the capacity; not given: widen where sizes are dynamic, else error
        short: too few sequences for the slots that are required
        keep_groups: where sequences of a prompt group stay together
        pad: rows that pad_multiple does not divide; not given: rows if it is above 1
        pad_multiple: the number of rows is a multiple of this, up to 1048576
        max_activation_bytes: of the slots in flight on a stage; 0: no limit
        effort: work of the search, in placements weighed; not given: grows with the batch
    """

def megatron_schedule(lengths: isochron.arrays.IntegerArray, *, ranks: int, capacity: int, min_context_size: int = 1, slot_multiple: int = 1) -> list[list[list[int]]]:
    """
    DefaultDynamicCPScheduler of Megatron's development branch: the sequences of every micro-batch and rank.

    AssertionError and IndexError where it raises them, RuntimeError where it would not end.
    """

class PackedLayout:
    """
    The tokens of a micro-batch that one rank of a context-parallel group holds, packed.
    """

    @property
    def cu_seqlens(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """
        Starts of the padded sequences in the group, and behind them the end of the last; the rank holds 1/context_size of each.
        """

    @property
    def positions(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), writable=False)]:
        """Of each token its index in its sequence; 0 for padding."""

    @property
    def source(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """Which token of the concatenated sequences it is; -1 for padding."""

    @property
    def target(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """
        The next token of the same sequence; -1 for a last token and for padding.
        """

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

def packed_layout(lengths: isochron.arrays.IntegerArray, *, context_size: int = 1, context_rank: int = 0, tensor_parallel: int = 1) -> PackedLayout:
    """
    Which tokens a rank holds: with c > 1 ranks a sequence is padded to a multiple of 2 * c * tensor_parallel and cut into 2c chunks; rank r holds chunk r and behind it chunk 2c-1-r.
    """

def padded_length(length: int, ranks: int, tensor_parallel: int = 1) -> int:
    """Tokens that a sequence takes of the capacity of a group of `ranks`."""

def check(result: StepPlan | Balance | Packing | str, lengths: isochron.arrays.IntegerArray | Batch | None = None, *, extra_cost_ns: isochron.arrays.IntegerArray | None = None, groups: Sequence[int] | Sequence[str] | isochron.arrays.IntegerArray | None = None) -> str | None:
    """
    The first rule that a result breaks, in words; None if it is valid.

    Shares no algorithm with the planner: costs, sums, times and bounds are worked out again. With lengths the result must also have been made from them. ValueError for a text that is no result.
    """

def report(plans: StepPlan | Mapping[str, StepPlan | Sequence[StepPlan]]) -> str:
    """
    One HTML page that needs no other file and no network: summary, timeline, load, tokens, memory and padding.

    A plan alone stands beside naive packing and verl 0.9.1 on the same lengths; a dict of plans, or of lists of them for successive steps, stands side by side, the first as "before".
    """

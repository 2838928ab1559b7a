"""verl 0.9.1's own functions, called as its trainers call them, timed.

Times are processor time of one thread, as in planner_bench.
"""

import time

import torch
from tensordict import TensorDict
from verl.utils import seqlen_balancing

VERSION = "0.9.1"
torch.set_num_threads(1)


def workload(length):
    return 24576 * length + length * length


def timed(call):
    """(fastest seconds, result): of up to eleven calls within half a second, at least one."""
    times = []
    while not times or (len(times) < 11 and sum(times) < 0.5):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return min(times), result


def balance(lengths, ranks, equal_count):
    """Workloads as Python integers, the fastest form that verl takes."""
    costs = [workload(length) for length in lengths]
    seconds, parts = timed(
        lambda: seqlen_balancing.get_seqlen_balanced_partitions(costs, ranks, equal_count)
    )
    return {"time_us": seconds * 1e6, "max_cost": max(sum(costs[i] for i in part) for part in parts)}


def pack(lengths, capacity):
    """Includes cutting the batch, which verl's function does; the batch holds nothing but ids."""
    rows = [torch.zeros(length, dtype=torch.int64) for length in lengths]
    ids = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    batch = TensorDict({"input_ids": ids}, batch_size=[len(lengths)])
    start = time.process_time()
    _, parts = seqlen_balancing.rearrange_micro_batches(batch, max_token_len=capacity)
    seconds = time.process_time() - start
    return {
        "time_us": seconds * 1e6,
        "count": len(parts),
        "max_tokens": max(sum(lengths[i] for i in part) for part in parts),
        "max_cost": max(sum(workload(lengths[i]) for i in part) for part in parts),
    }

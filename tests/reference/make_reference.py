"""Writes verl_golden.json: answers of verl's own balancing functions on small random inputs.

    pip install "verl==0.9.1" "torch==2.13.0"
    python tests/reference/make_reference.py

Tests compare isochron's answers with this file; nobody edits it by hand.
"""

import json
import pathlib
import random
import socket
import sys
import tempfile

import torch
import torch.distributed as dist
import verl
from tensordict import TensorDict
from verl.utils import seqlen_balancing

OUTPUT = pathlib.Path(__file__).with_name("verl_golden.json")
NUM_PARTITIONS = 260
NUM_MICROBATCHES = 240
NUM_AGREED = 60  # two ranks each


def random_lengths(rng, count):
    high = rng.choice([1, 2, 5, 12, 100, 9000])
    return [rng.randint(1, high) for _ in range(count)]


def partition_case(rng):
    parts = rng.randint(1, 9)
    sizes = rng.choice(["equal", "free"])
    count = parts * rng.randint(1, 5) if sizes == "equal" else parts + rng.randint(0, 24)
    dtype = rng.choice(["int64", "float32", "float64"])
    lengths = torch.tensor(random_lengths(rng, count), dtype=getattr(torch, dtype))
    values = lengths
    kind = rng.randint(0, 2)
    if kind == 0:
        values = seqlen_balancing.calculate_workload(lengths)
    elif kind == 1 and dtype != "int64":
        values = lengths / 7
    as_list = values if dtype == "float32" else values.tolist()  # Python floats are float64
    raw = seqlen_balancing.karmarkar_karp(as_list, parts, sizes == "equal")
    ordered = seqlen_balancing.get_seqlen_balanced_partitions(as_list, parts, sizes == "equal")
    # A float32 is exact as a JSON number, since that is a float64.
    return {
        "dtype": dtype,
        "values": values.tolist(),
        "parts": parts,
        "sizes": sizes,
        "raw": raw,
        "sorted": ordered,
    }


def rearrange(lengths, options, group=None):
    width = max(lengths)
    mask = torch.tensor([[1] * n + [0] * (width - n) for n in lengths])
    batch = TensorDict({"input_ids": torch.zeros_like(mask), "attention_mask": mask}, len(lengths))
    try:
        _, indices = seqlen_balancing.rearrange_micro_batches(batch, dp_group=group, **options)
        return {"microbatches": indices}
    except (AssertionError, ValueError) as error:
        return {"error": type(error).__name__, "message": str(error)}


def random_options(rng, lengths, group_size, cap_floor):
    high = max(cap_floor, 2 * sum(lengths) // rng.randint(1, 6))
    options = {
        "max_token_len": rng.randint(cap_floor, high),
        "use_dynamic_bsz_balance": rng.random() < 0.8,
        "force_group_size": group_size,
    }
    if rng.random() < 0.4:
        options["num_batches_divided_by"] = rng.randint(1, 4)
    if rng.random() < 0.3:
        options["min_num_micro_batch"] = rng.randint(0, 4)
    return options


def microbatch_case(rng):
    group_size = rng.choice([1, 1, 1, 2, 3])
    count = group_size * rng.randint(1, 8)
    if rng.random() < 0.05:
        count += 1
    lengths = random_lengths(rng, count)
    floor = max(lengths) if rng.random() < 0.9 else max(1, max(lengths) - 1)
    options = random_options(rng, lengths, group_size, floor)
    return {"lengths": lengths, "options": options, **rearrange(lengths, options)}


def agreed_inputs(rng):
    of_ranks = [random_lengths(rng, 2 * rng.randint(1, 6)) for _ in range(2)]
    longest = max(max(lengths) for lengths in of_ranks)
    return of_ranks, random_options(rng, of_ranks[0], rng.choice([1, 1, 2]), longest)


def run_rank(rank, port, inputs, folder):
    seqlen_balancing.get_device_name = lambda: "cpu"  # verl would take the accelerator
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    answers = [rearrange(of_ranks[rank], o, dist.group.WORLD) for of_ranks, o in inputs]
    pathlib.Path(folder, f"{rank}.json").write_text(json.dumps(answers))
    dist.destroy_process_group()


def agreed_cases(rng, count):
    inputs = [agreed_inputs(rng) for _ in range(count)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run_rank, (port, inputs, folder), nprocs=2)
        answers = [json.loads(pathlib.Path(folder, f"{r}.json").read_text()) for r in range(2)]
    return [
        {"options": options, "ranks": [{"lengths": of_ranks[r], **answers[r][i]} for r in range(2)]}
        for i, (of_ranks, options) in enumerate(inputs)
    ]


def main(output, seed, num_partitions, num_microbatches, num_agreed):
    rng = random.Random(seed)
    golden = {
        "versions": {
            "verl": verl.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
        "partitions": [partition_case(rng) for _ in range(num_partitions)],
        "microbatches": [microbatch_case(rng) for _ in range(num_microbatches)],
        "agreed": agreed_cases(rng, num_agreed),
    }
    # One case a line: a change of one answer is one line of the diff.
    with open(output, "w") as file:
        file.write('{\n"versions": ' + json.dumps(golden["versions"]))
        for name in ("partitions", "microbatches", "agreed"):
            rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in golden[name])
            file.write(f',\n"{name}": [\n{rows}\n]')
        file.write("\n}\n")


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[2:]]
    main(
        sys.argv[1] if len(sys.argv) > 1 else OUTPUT,
        *(arguments or (20260825, NUM_PARTITIONS, NUM_MICROBATCHES, NUM_AGREED)),
    )

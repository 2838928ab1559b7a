"""verl with isochron's micro-batches: one line in the trainer, everything else stays.

python examples/use_in_verl.py
"""

import torch
from tensordict import TensorDict
from verl.utils import seqlen_balancing

from isochron.compat import verl as isochron_verl

LENGTHS = [6933, 3171, 6225, 7308, 3461, 347, 2137, 7925, 4204, 3996, 3333, 7538, 6436, 6814, 2500]
MAX_TOKEN_LEN = 16384


def batch_of(lengths: list[int]) -> TensorDict:
    """Rows as verl's engine gets them."""
    rows = [torch.arange(length) for length in lengths]
    ids = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    return TensorDict({"input_ids": ids}, batch_size=[len(rows)])


def show(title: str, rows: list[list[int]]) -> None:
    """How many there are, and how full."""
    tokens = [sum(LENGTHS[row] for row in part) for part in rows]
    print(f"{title}: {len(rows)} micro-batches, at most {max(tokens)} of {MAX_TOKEN_LEN} tokens")


def main() -> None:
    """The answer of verl, then that of the planner."""
    batch = batch_of([*LENGTHS])
    # verl's engine calls this function; so does whoever has imported it by name.
    _, rows = seqlen_balancing.rearrange_micro_batches(batch, MAX_TOKEN_LEN)
    show("verl", rows)

    isochron_verl.install()
    micro_batches, rows = seqlen_balancing.rearrange_micro_batches(batch, MAX_TOKEN_LEN)
    show("isochron", rows)

    # What the model returns goes back to the order of the batch, as before.
    outputs = torch.cat([part["input_ids"].offsets().diff() for part in micro_batches])
    restored = seqlen_balancing.restore_dynamic_batch(outputs, rows)
    assert restored.tolist() == LENGTHS
    isochron_verl.uninstall()


if __name__ == "__main__":
    main()

"""Writes mask_golden.json: which inputs dropout keeps, by the definition in words and nothing else.

    python tests/reference/make_mask_reference.py

A resumed run takes the masks of the run before it, so they never change; nobody edits the file by
hand.
"""

import json
import pathlib
import random

OUTPUT = pathlib.Path(__file__).with_name("mask_golden.json")
WIDTH = 41
INPUTS = ["qkv", "output", "gate_up", "down"]


def number_at(stream, index):
    """Number `index` of SplitMix64 seeded with `stream`."""
    z = (stream + (index + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def is_kept(case, feature):
    stream = 0
    for index in (case["seed"], case["step"], case["row"], case["position"],
                  256 * case["layer"] + INPUTS.index(case["input"]), feature // 2):  # fmt: skip
        stream = number_at(stream, index)
    half = stream >> 32 if feature % 2 else stream % 2**32
    signed = half - 2**32 if half >= 2**31 else half
    return signed >= int(case["probability"] * 2**32) - 2**31


def main():
    rng = random.Random(1)
    cases = []
    for number in range(60):
        case = {
            "seed": rng.choice([42, 0, -1, 2**62]),
            "step": rng.choice([0, 1, rng.randrange(10**6)]),
            "row": rng.choice([0, 1, rng.randrange(10**12), -1]),
            "position": rng.choice([0, 1, rng.randrange(2**31)]),
            "layer": rng.randrange(130),
            "input": INPUTS[number % 4],
            "probability": rng.choice([0.1, 0.5, 0.01, 0.999]),
        }
        case["kept"] = "".join(str(int(is_kept(case, feature))) for feature in range(WIDTH))
        cases.append(case)
    lines = ",\n".join(" " + json.dumps(case) for case in cases)
    OUTPUT.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()

"""The program, to compare with, and random questions to ask both."""

import os
import pathlib
import random
import subprocess
from typing import Any

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = os.environ.get("ISOCHRON_PROGRAM", str(ROOT / "build" / "isochron"))


def run_program(
    folder: pathlib.Path, verb: str, lengths: list[int], *flags: object, **columns: list[Any]
) -> str:
    """What the program writes about lengths (and groups, extra costs) as JSON.

    An outcome that is no answer (exit 1) is written like any other.
    """
    rows = zip(lengths, *columns.values(), strict=True)
    text = "\n".join(",".join(map(str, row)) for row in [["length", *columns], *rows])
    (folder / "lengths.csv").write_text(text)
    arguments = [PROGRAM, verb, "--lengths", folder / "lengths.csv", *flags, "--json", "-"]
    result = subprocess.run(
        [str(argument) for argument in arguments], capture_output=True, text=True, timeout=120
    )
    assert result.returncode in (0, 1), result.stderr
    return result.stdout


def flags_of(options: dict[str, Any]) -> list[str]:
    """Keyword arguments as the program has them."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        flags += [flag] if value is True else [flag, str(value)]
    return flags


def random_lengths(seed: int, longest: int = 20000) -> list[int]:
    """Some lengths with a long tail."""
    generator = random.Random(seed)
    count = generator.choice([1, 2, 7, 30, 200])
    return [min(longest, 1 + int(generator.lognormvariate(6, 1.5))) for _ in range(count)]


def chosen(generator: random.Random, choices: dict[str, list[Any]]) -> dict[str, Any]:
    """Of some options a value each; None leaves the option out."""
    options = {name: generator.choice(values) for name, values in choices.items()}
    return {name: value for name, value in options.items() if value is not None}

"""Conversations that a tiny model learns within some dozens of steps, with long-tailed lengths.

Each turn asks for one of four patterns whose answer follows from the question: counting, repeating,
copying, sorting. The tokens of a conversation follow a log-normal distribution: most are short,
a few are very long, and those decide how long a step takes.
"""

import json
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from isochron.console import InputError

WORDS = ("ash", "bay", "elm", "fir", "fig", "ivy", "oak", "pea", "rye", "yew")
MIN_TOKENS = 96  # holds a turn of every task with one item
MARKUP_TOKENS = 40  # of a turn: roles, special tokens, line breaks, the words of the question


def count(items: int, generator: random.Random) -> tuple[str, str]:
    """Numbers with equal steps between them."""
    start, step = generator.randrange(10), generator.randrange(1, 6)
    numbers = " ".join(str(start + step * i) for i in range(items))
    return f"count {items} from {start} by {step}", numbers


def repeat(items: int, generator: random.Random) -> tuple[str, str]:
    """A word over and over."""
    word = generator.choice(WORDS)
    return f"repeat {word} {items}", " ".join([word] * items)


def copy(items: int, generator: random.Random) -> tuple[str, str]:
    """The words of the question."""
    words = " ".join(generator.choice(WORDS) for _ in range(items))
    return f"copy {words}", words


def sort(items: int, generator: random.Random) -> tuple[str, str]:
    """The words of the question in the order of the alphabet."""
    words = [generator.choice(WORDS) for _ in range(items)]
    return f"sort {' '.join(words)}", " ".join(sorted(words))


Task = Callable[[int, random.Random], tuple[str, str]]
# Tokens that one more item adds, at most: question and answer, 6 digits and a blank.
TASKS: tuple[tuple[Task, int], ...] = ((count, 7), (repeat, 4), (copy, 8), (sort, 8))


def conversations(
    rows: int, seed: int, max_length: int, median: float, sigma: float
) -> Iterator[dict[str, Any]]:
    """`rows` conversations of at most `max_length` tokens of tiny.tokenizer, around `median`.

    `sigma` is the standard deviation of the logarithm of their lengths. Equal arguments give equal
    conversations. Raises InputError.
    """
    if rows < 1:
        raise InputError(f"rows is {rows}, must be at least 1")
    if max_length < MIN_TOKENS:
        raise InputError(f"max_length is {max_length}, must be at least {MIN_TOKENS}")
    if not (math.isfinite(median) and median > 0 and math.isfinite(sigma) and sigma >= 0):
        raise InputError(
            f"median is {median}, must be positive; sigma is {sigma}, must not be negative"
        )
    generator = random.Random(seed)
    for _ in range(rows):
        target = int(min(generator.lognormvariate(math.log(median), sigma), max_length))
        yield _conversation(max(target, MIN_TOKENS), generator)


def _conversation(target: int, generator: random.Random) -> dict[str, Any]:
    num_turns = min(generator.choice((1, 1, 2, 3)), target // MIN_TOKENS)
    messages = []
    for _ in range(num_turns):
        task, tokens_per_item = generator.choice(TASKS)
        room = target // num_turns - MARKUP_TOKENS
        question, answer = task(max(1, room // tokens_per_item), generator)
        messages += [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ]
    return {"messages": messages}


def write_conversations(path: str, **arguments: Any) -> None:
    """conversations() as JSONL."""
    lines = [json.dumps(row) + "\n" for row in conversations(**arguments)]
    with open(path, "w", encoding="utf-8") as stream:
        stream.writelines(lines)

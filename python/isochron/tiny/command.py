"""The whole of `python -m isochron.tiny`: a model and two files of conversations."""

import os
from collections.abc import Sequence

from isochron.console import Parser
from isochron.prepare.options import parse_object
from isochron.tiny.conversations import write_conversations
from isochron.tiny.model import DTYPES, MODEL_TYPES, make_model


def main(arguments: Sequence[str]) -> None:
    """Does what a command line asks for and names what it wrote."""
    parser = Parser(
        prog="python -m isochron.tiny",
        description="Makes a tiny random model and conversations that it can learn.",
    )
    parser.add_argument("output", metavar="OUT", help="folder for model/, train.jsonl, val.jsonl")
    parser.add_argument("--model-type", choices=MODEL_TYPES, default="qwen3", help="[qwen3]")
    parser.add_argument(
        "--config",
        type=parse_object,
        default={},
        metavar="JSON",
        help='fields of config.json, such as {"num_hidden_layers": 4} [{}]',
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="[float32]")
    parser.add_argument("--rows", type=int, default=1024, help="conversations to train on [1024]")
    parser.add_argument("--val-rows", type=int, default=64, help="and to validate on [64]")
    parser.add_argument("--max-length", type=int, default=1024, help="most tokens of one [1024]")
    parser.add_argument("--median", type=float, default=160.0, help="median of their tokens [160]")
    parser.add_argument(
        "--sigma",
        type=float,
        default=0.8,
        help="standard deviation of the logarithm of their tokens [0.8]",
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and conversations [0]")
    options = parser.parse_args(arguments)

    model = os.path.join(options.output, "model")
    make_model(model, options.model_type, options.seed, options.dtype, options.config)
    print(model)
    for name, rows, seed in (
        ("train.jsonl", options.rows, 2 * options.seed),
        ("val.jsonl", options.val_rows, 2 * options.seed + 1),
    ):
        path = os.path.join(options.output, name)
        write_conversations(
            path,
            rows=rows,
            seed=seed,
            max_length=options.max_length,
            median=options.median,
            sigma=options.sigma,
        )
        print(path)

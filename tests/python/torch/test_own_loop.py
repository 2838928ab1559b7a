"""What docs/own_loop.md shows is what happens."""

import pathlib
import re
import subprocess
import sys

import isochron.torch

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "own_loop.md").read_text()


def opening_example() -> str:
    """What the page says the example prints."""
    block = PAGE.split("    $ python examples/own_loop.py\n")[1].split("\n\n")[0]
    return "".join(line[4:] + "\n" for line in block.splitlines())


def test_the_example_prints_what_the_page_says():
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "own_loop.py"],
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == opening_example()


def test_the_code_of_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


def test_the_page_names_what_the_package_offers():
    inner = {"Microbatch", "Shard", "gather_shards", "join_shards"}  # what others return or call
    missing = [name for name in isochron.torch.__all__ if name not in PAGE]
    assert set(missing) <= inner

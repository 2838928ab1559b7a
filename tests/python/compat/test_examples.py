"""The examples run, and print what the page says."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs" / "use_in_peers.md"


def shown(script: str) -> str:
    """The lines below the command in the page."""
    lines = iter(PAGE.read_text().splitlines())
    assert any(line == f"    $ python examples/{script}" for line in lines)
    output = ""
    for line in lines:
        if not line.startswith("    "):
            break
        output += line[4:] + "\n"
    return output


@pytest.mark.parametrize("script", ["use_in_verl.py", "use_in_slime.py", "use_in_megatron.py"])
def test_an_example_prints_what_the_page_shows(script: str):
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / script], capture_output=True, text=True, timeout=400
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == shown(script)

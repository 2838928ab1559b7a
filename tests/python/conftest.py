"""Puts the package of the tree in front of any that is installed, here and in child processes."""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

PACKAGE = str(pathlib.Path(__file__).parents[2] / "python")
sys.path.insert(0, PACKAGE)
os.environ["PYTHONPATH"] = PACKAGE
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run() -> Run:
    """Runs `python -m isochron.NAME ARGUMENTS..` and returns what it said."""

    def run_module(name: str, *arguments: object, **options: object):
        command = [sys.executable, "-m", f"isochron.{name}", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)

    return run_module


def error_of(result: subprocess.CompletedProcess[str]) -> str:
    """The one line of an error; a machine that is busy also shows progress."""
    lines = [
        line for line in result.stderr.splitlines() if not re.fullmatch(r"\d+ of \d+ \w+", line)
    ]
    assert len(lines) == 1, result.stderr
    return lines[0]

"""How commands speak."""

import io
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import Run, error_of
from isochron.console import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bar_is_redrawn_on_a_terminal_and_erased_at_the_end():
    terminal, clock = Terminal(), Clock()
    with Progress("rows", 8, terminal, clock) as progress:
        clock.now = 0.2
        progress.set_done(2)
        progress.set_done(3)  # too soon
        clock.now = 0.4
        progress.set_done(8)
    bars = terminal.getvalue().split("\r")
    assert bars == [
        "",
        "[" + "#" * 10 + " " * 30 + "] 2 of 8 rows",
        "[" + "#" * 40 + "] 8 of 8 rows",
        " " * len("[" + "#" * 40 + "] 8 of 8 rows"),
        "",
    ]


def test_lines_are_few_where_there_is_no_terminal():
    log, clock = io.StringIO(), Clock()
    with Progress("rows", 100, log, clock) as progress:
        for done in range(100):
            clock.now = done * 0.2
            progress.set_done(done)
    assert log.getvalue() == "25 of 100 rows\n50 of 100 rows\n75 of 100 rows\n"


def test_short_work_says_nothing():
    log = Terminal()
    with Progress("rows", 3, log, Clock()) as progress:
        progress.set_done(3)
    assert log.getvalue() == ""


@pytest.mark.parametrize(("name", "package"), [("prepare", "safetensors"), ("tiny", "torch")])
def test_a_missing_package_is_one_line(tmp_path: pathlib.Path, run: Run, name: str, package: str):
    absent = f"raise ModuleNotFoundError('No module named {package}', name='{package}')"
    (tmp_path / f"{package}.py").write_text(absent)
    path = f"{os.environ['PYTHONPATH']}:{tmp_path}"
    arguments = {"prepare": ["a", "--model", "b", "-o", "c"], "tiny": [tmp_path / "out"]}[name]
    result = run(name, *arguments, env={**os.environ, "PYTHONPATH": path})
    assert result.returncode == 3
    assert error_of(result) == (
        f"isochron: [{name}] the package {package} is missing: pip install {package}"
    )


def test_the_package_needs_nothing_but_python_to_be_imported():
    code = (
        "import sys, isochron, isochron.console, isochron.track.command, isochron.tiny.command; "
        "heavy = {'torch', 'transformers', 'tensorboard', 'wandb', 'mlflow', 'numpy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")

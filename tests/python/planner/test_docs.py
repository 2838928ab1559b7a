"""The page says what is true: its examples run, in order, and print what they show."""

import doctest
import pathlib
import subprocess
import sys

import isochron

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python.md"


def test_the_examples_of_the_page_give_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(
        str(PAGE),
        module_relative=False,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert tried > 20
    assert failed == 0


def test_the_docstrings_of_the_package_are_true():
    from isochron import layouts

    for module in (isochron, layouts):
        failed, tried = doctest.testmod(module)
        assert tried > 0
        assert failed == 0


def test_the_page_names_everything_public():
    text = PAGE.read_text()
    assert [
        name for name in isochron.__all__ if f"`{name}`" not in text and f"{name}(" not in text
    ] == []


def test_the_example_runs():
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "plan_steps.py"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "step 3" in result.stdout

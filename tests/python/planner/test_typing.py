"""The types that the package promises are the ones it has."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = ROOT / "python" / "isochron"
PLANNER_FILES = ["__init__.py", "_planner.pyi", "arrays.py", "layouts.py", "notebook.py"]

WRONG = """
import isochron

isochron.balance(["a"], 2)
isochron.pack([1], capacity=2, oversize="widen")
isochron.plan_step([1], 2)
isochron.plan_step([1], 2, 3).imbalance = 1
answer: int = isochron.balance([1], 2).status
isochron.balanse([1], 2)
"""


def mypy(cache: pathlib.Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(cache)]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_package_and_the_example_are_typed_strictly(tmp_path: pathlib.Path):
    files = [*(PACKAGE / name for name in PLANNER_FILES), *(PACKAGE / "compat").glob("*.py")]
    result = mypy(tmp_path, *files, ROOT / "examples" / "plan_steps.py")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_type_checker_finds_mistakes(tmp_path: pathlib.Path):
    (tmp_path / "wrong.py").write_text(WRONG)
    result = mypy(tmp_path / "cache", tmp_path / "wrong.py")
    lines = {int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error: " in line}
    assert lines == {4, 5, 6, 7, 8, 9}, result.stdout


def test_the_stub_is_the_one_of_the_extension(tmp_path: pathlib.Path):
    stub = tmp_path / "_planner.pyi"
    command = ["-m", "nanobind.stubgen", "-q", "-P", "-m", "isochron._planner", "-o", str(stub)]
    subprocess.run([sys.executable, *command], check=True, timeout=60)
    assert stub.read_text() == (PACKAGE / "_planner.pyi").read_text(), "make stubs"


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()

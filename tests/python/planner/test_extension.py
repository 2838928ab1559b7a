"""What the extension needs, and what needs the extension."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from isochron import _planner

PACKAGE = pathlib.Path(_planner.__file__).parent
RUNTIME = re.compile(
    r"(libc|libm|libstdc\+\+|libgcc_s|ld-linux-x86-64|ld-linux-aarch64)\.so(\.\d+)?"
)


def test_it_links_nothing_but_the_runtime():
    text = subprocess.run(
        ["readelf", "-d", _planner.__file__], check=True, capture_output=True, text=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert needed
    assert [name for name in needed if not RUNTIME.fullmatch(name)] == []


def test_it_shows_nothing_but_its_entry():
    # Another copy of the planner in the same process must not meet this one.
    text = subprocess.run(
        ["readelf", "-W", "--dyn-syms", _planner.__file__],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = [line for line in text.splitlines() if " DEFAULT " in line and " UND " not in line]
    assert [line.split()[-1] for line in lines] == ["PyInit__planner"]


def without_extension(tmp_path: pathlib.Path, code: str) -> subprocess.CompletedProcess[str]:
    package = tmp_path / "isochron"
    if not package.exists():
        ignored = shutil.ignore_patterns("_planner*.so", "__pycache__")
        shutil.copytree(PACKAGE, package, ignore=ignored)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_what_needs_no_planner_works_without_it(tmp_path: pathlib.Path):
    for module in ("isochron.prepare.command", "isochron.track.command", "isochron.tiny.command"):
        result = without_extension(tmp_path, f"import isochron, {module}; print(isochron.__file__)")
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith(str(tmp_path))
    assert without_extension(tmp_path, "from isochron import prepare").returncode == 0


def test_what_needs_the_planner_says_so(tmp_path: pathlib.Path):
    result = without_extension(tmp_path, "import isochron; isochron.balance([1], 1)")
    assert result.stderr.splitlines()[-1] == (
        "ImportError: [isochron] balance needs the extension isochron._planner, "
        "which is not built: pip install . or make wheel"
    )

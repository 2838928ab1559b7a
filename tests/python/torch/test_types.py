"""The types that the package promises are the ones it has."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]


def test_the_package_is_typed_strictly(tmp_path: pathlib.Path):
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path, "-p", "isochron.torch"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert result.returncode == 0, result.stdout + result.stderr

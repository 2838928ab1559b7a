"""The types that the package promises are the ones it has."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]


def test_the_package_is_typed_strictly_by_the_types_of_torch(tmp_path: pathlib.Path):
    options = ["--strict", "--ignore-missing-imports", "--config-file=", "--cache-dir", tmp_path]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "-p", "isochron.torch"],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert result.returncode == 0, result.stdout + result.stderr

"""`pip install .` gives a package that plans, where there is nothing else of isochron."""

import os
import pathlib
import subprocess
import sysconfig
import venv

import isochron

ROOT = pathlib.Path(__file__).parents[3]

CODE = """
import pathlib, sys, isochron
plan = isochron.plan_step([7258, 7812, 8030, 2606], ranks=2, capacity=16384)
assert plan.status == "optimal" and plan.check() is None
folder = pathlib.Path(isochron.__file__).parent
assert sys.prefix in str(folder), folder
names = {path.name for path in folder.iterdir()}
assert {"py.typed", "_planner.pyi", "prepare"} <= names, names
assert len([name for name in names if name.startswith("_planner") and name.endswith(".so")]) == 1
assert "torch" not in sys.modules
print(plan.hash)
"""


def test_pip_installs_the_package_from_the_tree(tmp_path: pathlib.Path):
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=True)
    python = fresh / "bin" / "python"
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    # What a build needs comes from here, not from the network: nothing of isochron is in there.
    folder = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    pathlib.Path(folder, "build_tools.pth").write_text(sysconfig.get_path("purelib"))
    install = [python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps"]
    result = subprocess.run(
        [*install, ROOT],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=1500,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    said = subprocess.run(
        [python, "-c", CODE], env=environment, check=True, capture_output=True, text=True,
        cwd=tmp_path, timeout=60,
    ).stdout.strip()  # fmt: skip
    assert said == isochron.plan_step([7258, 7812, 8030, 2606], ranks=2, capacity=16384).hash

"""Installs a build and builds a stranger's program: consumer.py BUILD SOURCE CMAKE CXX [TORCH]

The program in SOURCE finds isochron as an installed package and nothing else, save the package of
libtorch in the folder TORCH: fmt and nlohmann_json are switched off, since what is installed must
not need them.
"""

import pathlib
import subprocess
import sys
import tempfile


def main():
    build, source, cmake, compiler, *torch = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        prefix, consumer = pathlib.Path(folder, "prefix"), pathlib.Path(folder, "consumer")
        subprocess.run([cmake, "--install", build, "--prefix", prefix], check=True)
        options = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}"]
        options += [f"-DTorch_DIR={package}" for package in torch]
        options += [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "nlohmann_json")]
        subprocess.run([cmake, "-G", "Ninja", "-S", source, "-B", consumer, *options], check=True)
        subprocess.run([cmake, "--build", consumer], check=True)
        subprocess.run([consumer / "consumer"], check=True)
        for program in ["isochron", "isochron-engine"] if torch else ["isochron"]:
            subprocess.run([prefix / "bin" / program, "--version"], check=True)


if __name__ == "__main__":
    main()

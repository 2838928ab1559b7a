"""Equal inputs give equal bytes: compare_builds.py SOURCE FOLDER CMAKE

Builds print_plans in FOLDER with two compilers: one optimises all it can for the machine at hand,
which may fuse multiply and add, the other not at all. Compares what they print, byte for byte; once
also with eight threads at the same time. A third and a fourth build would prove little more, and
building is what takes the time.
"""

import os
import pathlib
import subprocess
import sys

BUILDS = {
    "clang++_O0": ("clang++", "-O0"),
    "g++_O3": ("g++", "-O3 -march=native"),
}


def build(source, folder, cmake, compiler, flags):
    configure = [cmake, "-G", "Ninja", "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE="]
    configure += [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CXX_FLAGS={flags}"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    jobs = os.environ.get("JOBS", "2")
    subprocess.run([cmake, "--build", folder, "-j", jobs, "--target", "print_plans"], check=True)
    return folder / "print_plans"


def printed(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def first_difference(a, b):
    for left, right in zip(a.splitlines(), b.splitlines()):
        if left != right:
            return f"{left!r} against {right!r}"
    return "the number of lines"


def main():
    source, folder, cmake = sys.argv[1:]
    outputs = {}
    for name, (compiler, flags) in BUILDS.items():
        program = build(source, pathlib.Path(folder, name), cmake, compiler, flags)
        outputs[name] = printed(program)
    outputs["eight threads"] = printed(program, "--threads", "8")

    reference, *others = outputs
    print(outputs[reference].splitlines()[-1])
    different = [name for name in others if outputs[name] != outputs[reference]]
    for name in different:
        difference = first_difference(outputs[reference], outputs[name])
        print(f"{reference} and {name} differ: {difference}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

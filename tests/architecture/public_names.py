"""The public names equal a list, so that the API changes only on purpose.

    public_names.py LIST PUBLIC_HEADERS PROGRAM

LIST has lines such as `header isochron/pack/pack.h` and `verb pack`; PUBLIC_HEADERS the headers that
are installed, one per line. The verbs are asked of the program.
"""

import pathlib
import re
import subprocess
import sys


def verbs_of(program):
    """The names under the heading Subcommands of the program's help."""
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    section = text.partition("Subcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\w+)", section, re.MULTILINE)


def main():
    listed, headers, program = sys.argv[1:]
    lines = pathlib.Path(listed).read_text().splitlines()
    expected = [line for line in lines if line and not line.startswith("#")]
    actual = [f"header {name}" for name in pathlib.Path(headers).read_text().split()]
    actual += [f"verb {name}" for name in verbs_of(program)]
    for name in sorted(set(actual) - set(expected)):
        print(f"{name}: is public and not on the list {pathlib.Path(listed).name}")
    for name in sorted(set(expected) - set(actual)):
        print(f"{name}: is on the list {pathlib.Path(listed).name} and not public")
    return 0 if sorted(actual) == sorted(expected) else 1


if __name__ == "__main__":
    sys.exit(main())

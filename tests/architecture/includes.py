"""Who may include whom: includes.py ROOT PUBLIC_HEADERS

ROOT holds the folder isochron/; PUBLIC_HEADERS is a file with one path per line, relative to ROOT.
A folder includes itself and folders above it in the list; check/ only core/ and step/, so that it
shares no mistake with what it checks; only engine/ sees torch. A public header includes the
standard library and public headers, so that the installed package stands alone.

Prints a line per violation and exits 1 if there is one.
"""

import pathlib
import re
import sys

FOLDERS = [
    "core", "files", "cost", "step", "balance", "pack", "pad", "schedule", "simulate", "plan",
    "layout", "check", "report", "store", "engine",
]  # fmt: skip
ONLY = {"check": ["core", "step", "check"]}
TORCH = re.compile(r"(torch|ATen|c10|caffe2|nccl|cuda)\w*[/.]")
THIRD_PARTY = re.compile(r".*/.*|.*\.(h|hpp)")  # <fmt/format.h>; the standard library has neither
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes_of(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1) == '"', match.group(2)


def violation(folder, is_public, is_quoted, name, public):
    """What is wrong with including `name` in a file of `folder`, or None."""
    if not is_quoted:
        if TORCH.match(name) and folder != "engine":
            return "only engine/ may see torch"
        if is_public and THIRD_PARTY.fullmatch(name):
            return "a public header may include the standard library and public headers only"
        return None
    parts = name.split("/")
    if len(parts) < 3 or parts[0] != "isochron":
        return 'a quoted include must be a path "isochron/<folder>/<file>"'
    if parts[1] not in FOLDERS:
        return f"no folder {parts[1]}/ in the list of layers"
    allowed = ONLY.get(folder, FOLDERS[: FOLDERS.index(folder) + 1])
    if parts[1] not in allowed:
        return f"{folder}/ may include {', '.join(allowed)} only"
    if is_public and name not in public:
        return "a public header may include the standard library and public headers only"
    return None


def violations(root, public):
    root = pathlib.Path(root)
    paths = sorted(p for p in root.glob("isochron/**/*") if p.suffix in (".h", ".cpp", ".cu", ".cuh"))
    if not paths:
        yield f"{root}: no sources in isochron/"
    for path in paths:
        relative = path.relative_to(root).as_posix()
        folder = relative.split("/")[1]
        if folder not in FOLDERS:
            yield f"{relative}: no folder {folder}/ in the list of layers"
            continue
        for number, is_quoted, name in includes_of(path):
            if text := violation(folder, relative in public, is_quoted, name, public):
                yield f"{relative}:{number}: includes {name}: {text}"
    for header in sorted(public):
        if not (root / header).is_file():
            yield f"{header}: is public and does not exist"


def main():
    root, headers = sys.argv[1:]
    public = set(pathlib.Path(headers).read_text().split())
    found = list(violations(root, public))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

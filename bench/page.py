"""What the comparisons share: the program that answers, the page that is printed and written, lengths."""

import csv
import datetime
import json
import os
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


class Program:
    """Asks a benchmark program, which checks each answer with the independent checker first."""

    def __init__(self, program):
        pipe = subprocess.PIPE
        self._name = pathlib.Path(program).name
        self._process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True)

    def ask(self, **question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._name} stopped without an answer")
        return json.loads(line)


class Page:
    """What is printed and written: text, tables, targets."""

    def __init__(self):
        self.lines = []
        self.targets = []

    def add(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def table(self, *names):
        self.add()
        self.row(*names)
        self.row(*["---"] * len(names))

    def row(self, *cells):
        self.add("| " + " | ".join(str(cell) for cell in cells) + " |")

    def judge(self, is_met):
        self.targets.append(is_met)
        return "pass" if is_met else "FAIL"

    def head(self, title, is_quick, command="make bench"):
        changes = output_of("git", "status", "--porcelain", "--", ".", ":!bench/results")
        commit = output_of("git", "rev-parse", "--short=12", "HEAD") or "unknown"
        self.add(f"# {title}")
        self.add()
        self.add(f"- commit: {commit}{' with changes' if changes else ''}")
        self.add(f"- command: `{command}`{' (quick)' if is_quick else ''}")
        self.add(f"- date: {datetime.date.today().isoformat()}")
        self.add(f"- hardware: {hardware()}; load average {os.getloadavg()[0]:.1f} at the start")

    def close(self, question, is_quick):
        """Counts the targets, and writes results/<question>_<hardware>_<yyyymm>.md."""
        met = self.targets.count(True)
        self.add()
        self.add(f"{met} targets met, {len(self.targets) - met} missed")
        if is_quick:
            return
        slug = re.sub(r"[^a-z0-9]+", "_", hardware().lower()).strip("_")
        path = HERE / "results" / f"{question}_{slug}_{datetime.date.today():%Y%m}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(self.lines) + "\n")
        print(f"written to {path.relative_to(ROOT)}")


def lognormal(count, mu, sigma, longest, seed):
    generator = random.Random(f"{count} {mu} {sigma} {longest} {seed}")
    return [
        min(longest, max(1, int(generator.lognormvariate(mu, sigma)))) for _ in range(count)
    ]


def read_lengths(path):
    text = path.read_text(encoding="utf-8-sig")
    if text.lstrip().startswith("["):
        return json.loads(text)
    lines = lines_of(text)
    if re.search("[a-zA-Z]", lines[0]):
        return [int(row["length"]) for row in csv.DictReader(lines)]
    return [int(line) for line in lines]


def read_groups(path):
    """The column `group` of a CSV file."""
    return [row["group"] for row in csv.DictReader(lines_of(path.read_text(encoding="utf-8-sig")))]


def lines_of(text):
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    except FileNotFoundError:
        return ""


def hardware():
    names = re.findall(r"^model name\s*:\s*(.+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return f"{names[0] if names else os.uname().machine}, {len(os.sched_getaffinity(0))} cores"

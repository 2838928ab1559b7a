"""Runs the tests of presets, one after the other: run.py JOBS default sanitize

Prints the ten slowest tests and, last, "N passed, N failed" over all presets. Exits 1 unless every
test passed or was skipped; what was skipped is named.
"""

import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree


def run(preset, jobs):
    """The tests of a preset as (seconds, name, outcome)."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "tests.xml")
        command = ["ctest", "--preset", preset, "-j", jobs, "--output-junit", str(report)]
        status = subprocess.run(command).returncode
        cases = []
        if report.exists():
            outcome_of = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}
            for case in xml.etree.ElementTree.parse(report).iter("testcase"):
                outcome = outcome_of.get(case.get("status"), "failed")
                cases.append((float(case.get("time", 0)), f"{preset}: {case.get('name')}", outcome))
    if status != 0 and all(outcome != "failed" for _, _, outcome in cases):
        # A program that is missing or cannot list its tests reads like a skipped test.
        cases.append((0.0, f"{preset}: ctest itself, exit {status}", "failed"))
    return cases


def main():
    jobs, *presets = sys.argv[1:]
    cases = [case for preset in presets for case in run(preset, jobs)]
    print("\nThe ten slowest tests:")
    for seconds, name, _ in sorted(cases, reverse=True)[:10]:
        print(f"{seconds:9.2f} s  {name}")
    for _, name, outcome in cases:
        if outcome != "passed":
            print(f"{outcome}: {name}")
    outcomes = [outcome for _, _, outcome in cases]
    print(f"{outcomes.count('passed')} passed, {outcomes.count('failed')} failed", flush=True)
    return 1 if "failed" in outcomes or not cases else 0


if __name__ == "__main__":
    sys.exit(main())

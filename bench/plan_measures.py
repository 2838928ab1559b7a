"""What is measured of step plans, and the rows of the tables that show it."""

import dataclasses
import json
import math
import statistics
import sys
from typing import Optional

from page import HERE

FILES = {
    "Mooncake": "mooncake_conversation.txt",
    "Wikipedia": "wikipedia.txt",
    "Azure": "azure_conversation.txt",
}
K = 1024
ROWS = [  # ranks, capacity, sequences
    (8, 16 * K, 64), (8, 16 * K, 256), (16, 16 * K, 256), (64, 16 * K, 1024), (64, 8 * K, 1024),
    (256, 16 * K, 4096),
]  # fmt: skip
MOST_BATCHES = 20
MIN_TIMES = 20  # of a median
NOT_FELT_MS = 1  # whatever the step takes: most plans are made while the step before runs
ARE_TIMES_JUDGED = True


@dataclasses.dataclass
class Aim:
    """Upper limits; None: not stated."""

    mean: Optional[float]
    max: Optional[float]
    ms: Optional[float]  # to 64 ranks
    ms_large: Optional[float]  # beyond
    share: float = 0.0125  # about a hundredth of the step that the bound allows, for planning


# Where nothing else is stated, planning is not to be felt.
UNFELT = Aim(None, None, None, None)


@dataclasses.dataclass
class Measured:
    predicted: list
    bounds: list
    times_ms: list

    @property
    def ratios(self):
        return [ours / bound for ours, bound in zip(self.predicted, self.bounds)]

    @property
    def ms(self):
        return statistics.median(self.times_ms)

    @property
    def share(self):
        return self.ms * 1e6 / statistics.mean(self.bounds)

    def meets(self, aim, ranks):
        def within(value, limit):
            return limit is None or value <= limit

        is_good = within(statistics.mean(self.ratios), aim.mean) and within(max(self.ratios), aim.max)
        is_unfelt = self.ms <= NOT_FELT_MS or within(self.share, aim.share)
        is_fast = within(self.ms, aim.ms if ranks <= 64 else aim.ms_large) and is_unfelt
        return is_good and (is_fast or not ARE_TIMES_JUDGED)


def ratio(value):
    return f"{value:.4f}"


def cost_model(name):
    return json.loads((HERE / "cost" / f"{name}.json").read_text())


def cut(lengths, ranks, capacity, count):
    """Batches of consecutive lengths; what all ranks together cannot hold is left out."""
    kept = [length for length in lengths if length <= ranks * capacity]
    starts = range(0, len(kept) - count + 1, count)
    return [kept[start : start + count] for start in starts][:MOST_BATCHES]


def measure(planner, batches, question, groups=None):
    """`question`: cost, ranks, capacity and options. One plan is made of every batch, some again
    until there are times enough for a median."""
    result = Measured([], [], [])
    runs = math.ceil(MIN_TIMES / len(batches))
    for index, batch in enumerate(batches):
        extra = {"groups": groups[index]} if groups else {}
        answer = planner.ask(verb="plan", lengths=batch, runs=runs, **extra, **question)
        if answer["status"] not in ("optimal", "feasible"):
            sys.exit(f"no plan: {answer['status']}, {answer['reason']}, {question['options']}")
        result.predicted.append(answer["predicted_step_ns"])
        result.bounds.append(answer["lower_bound_ns"])
        result.times_ms += [time / 1e3 for time in answer["times_us"]]
    return result


@dataclasses.dataclass
class Rival:
    """Megatron's scheduler on the same batches."""

    predicted: list  # None: it fails

    def compare(self, ours):
        """(cells, whether we are never behind and ahead on average)."""
        pairs = [
            (mine, theirs, bound)
            for mine, theirs, bound in zip(ours.predicted, self.predicted, ours.bounds)
            if theirs is not None
        ]
        failed = len(self.predicted) - len(pairs)
        if not pairs:
            return ["-", "-", f"fails on all {failed}"], True
        ratios = [theirs / bound for _, theirs, bound in pairs]
        num_behind = sum(mine > theirs for mine, theirs, _ in pairs)
        is_ahead = sum(mine for mine, _, _ in pairs) < sum(theirs for _, theirs, _ in pairs)
        note = f"behind on {num_behind}" + (f", it fails on {failed}" if failed else "")
        cells = [ratio(statistics.mean(ratios)), ratio(max(ratios)), note]
        return cells, num_behind == 0 and is_ahead


def ask_rival(planner, batches, question):
    answers = [planner.ask(verb="megatron", lengths=batch, **question) for batch in batches]
    return Rival([answer.get("predicted_step_ns") for answer in answers])


class Bench:
    def __init__(self, planner, page, sources, rows):
        self.planner = planner
        self.page = page
        self.sources = sources
        self.rows = rows
        self.cost = cost_model("7b_h100")
        self.shares = []  # of the step, of all rows that are judged by it

    def question(self, ranks, capacity, options, **more):
        return {"cost": self.cost, "ranks": ranks, "capacity": capacity, "options": options, **more}

    def batches(self):
        for name, lengths in self.sources.items():
            for ranks, capacity, count in self.rows:
                batches = cut(lengths, ranks, capacity, count)
                if batches:
                    yield name, ranks, capacity, count, batches

    def table(self, title, text, *columns):
        self.page.add()
        self.page.add(f"## {title}")
        self.page.add()
        self.page.add(text)
        self.page.table(
            "lengths", "N / C / n", "batches", "over bound", "max", "median ms", "of step",
            *columns,
        )  # fmt: skip

    def row(self, name, ranks, capacity, count, measured, *cells):
        if ranks <= 256:
            self.shares.append(measured.share)
        self.page.row(
            name, f"{ranks} / {capacity // K}k / {count}", len(measured.predicted),
            ratio(statistics.mean(measured.ratios)), ratio(max(measured.ratios)),
            f"{measured.ms:.2f}", f"{measured.share:.2%}", *cells,
        )  # fmt: skip

    def mode(self, title, text, options, aim_of, never_slower_than=None, more=None, rival=True):
        """Every row under the same options; the results by row."""
        columns = ("Megatron", "max", "we are") if rival else ()
        self.table(title, text, *columns, "target")
        results = {}
        for name, ranks, capacity, count, batches in self.batches():
            question = self.question(ranks, capacity, options, **(more or {}))
            ours = measure(self.planner, batches, question)
            results[name, ranks, capacity, count] = ours
            aim = aim_of(name, ranks, capacity, batches)
            is_met = aim is None or ours.meets(aim, ranks)
            cells = []
            if rival:
                cells, is_ahead = ask_rival(self.planner, batches, question).compare(ours)
                is_met = is_met and is_ahead
            if never_slower_than:
                seeds = never_slower_than[name, ranks, capacity, count].predicted
                is_met = is_met and all(a <= b for a, b in zip(ours.predicted, seeds))
            has_target = aim is not None or rival or never_slower_than
            verdict = self.page.judge(is_met) if has_target else "-"
            self.row(name, ranks, capacity, count, ours, *cells, verdict)
        return results

    def overall(self, what, results, limit):
        """Over all rows: the mean of their means."""
        if not results:
            return
        mean = statistics.mean(statistics.mean(measured.ratios) for measured in results)
        verdict = self.page.judge(mean <= limit)
        self.page.add()
        self.page.add(f"{what}, over all rows: {ratio(mean)}, target {limit}: {verdict}")


def is_real(name):
    return name in FILES

"""The whole of `python -m isochron.track`: what is new in metrics.jsonl goes to a tracker.

Sending comes first and the cursor after it, so a crash between the two repeats a step rather than
losing it.
"""

import os
import signal
import time
from collections.abc import Sequence

from isochron.console import InputError, Parser, WorldError, say
from isochron.track.cursor import Cursor, load_cursor
from isochron.track.metrics import read_metrics
from isochron.track.trackers import Tracker, open_tracker

TRACKERS = ("tensorboard", "wandb", "mlflow")
METRICS, REPORT = "metrics.jsonl", "report.html"


def main(arguments: Sequence[str]) -> None:
    """Does what a command line asks for and says how many steps were sent."""
    parser = Parser(
        prog="python -m isochron.track", description="Forwards the metrics of a run to a tracker."
    )
    parser.add_argument("run", metavar="RUN", help="folder of the run, with metrics.jsonl")
    parser.add_argument("--to", required=True, choices=TRACKERS, help="the tracker")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="go on until the run is over (its report.html is there) or interrupted",
    )
    parser.add_argument(
        "--interval",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="between looks at a run that is followed [2]",
    )
    parser.add_argument(
        "--destination",
        metavar="WHERE",
        help="tensorboard: folder [RUN/tensorboard]; mlflow: tracking address "
        "[$MLFLOW_TRACKING_URI or RUN/mlruns]",
    )
    parser.add_argument("--project", default="isochron", help="wandb, mlflow: project [isochron]")
    parser.add_argument("--name", help="wandb, mlflow: name of the run [that of its folder]")
    options = parser.parse_args(arguments)
    if not options.interval > 0:
        raise InputError(f"interval is {options.interval}, must be positive")
    if not os.path.isdir(options.run):
        raise WorldError(f"{options.run}: no such folder")
    if not options.follow and not os.path.exists(os.path.join(options.run, METRICS)):
        raise WorldError(f"{os.path.join(options.run, METRICS)}: no such file")
    if options.to == "wandb" and options.destination:
        raise InputError("destination is for tensorboard and mlflow; wandb has WANDB_BASE_URL")

    name = options.name or os.path.basename(os.path.abspath(options.run))
    cursor = load_cursor(options.run, options.to)
    tracker = open_tracker(
        options.to, options.run, cursor, options.project, name, options.destination
    )
    forwarder = Forwarder(options.run, cursor, tracker)
    try:
        cursor.save()  # the run of the tracker is found again, whatever happens next
        if options.follow:
            forwarder.follow(options.interval)
        else:
            forwarder.forward()
    finally:
        tracker.close()
    print(f"{forwarder.num_sent} steps sent to {options.to}")


class Forwarder:
    """Sends what is new in a run."""

    def __init__(self, run: str, cursor: Cursor, tracker: Tracker) -> None:
        self._metrics = os.path.join(run, METRICS)
        self._report = os.path.join(run, REPORT)
        self._cursor = cursor
        self._tracker = tracker
        self.num_sent = 0

    def forward(self) -> None:
        """Sends all steps that are complete in the file and were not sent."""
        cursor = self._cursor
        reading = read_metrics(self._metrics, cursor.position)
        for problem in reading.problems:
            say("track", f"{self._metrics}: {problem}")
        if reading.started_anew:
            say("track", f"{self._metrics} was written anew and is read from its start")
        kept_back = []
        for step, numbers in reading.steps:
            if step <= cursor.last_step:
                if not self._tracker.can_rewind:
                    kept_back.append(step)
                    continue
                self._tracker.rewind(step)
            self._tracker.send(step, numbers)
            cursor.last_step = step
            self.num_sent += 1
        if kept_back:
            say(
                "track",
                f"steps {min(kept_back)} to {max(kept_back)} were sent before the run "
                "wrote them again; the tracker keeps the earlier numbers",
            )
        if reading.position != cursor.position:
            self._tracker.flush()
            cursor.position = reading.position
            cursor.save()

    def follow(self, interval_s: float) -> None:
        """Sends what is new until the run is over, or SIGINT or SIGTERM arrives."""
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            while True:
                is_over = self._is_over()  # asked first, so that the last lines are read after it
                if os.path.exists(self._metrics):
                    self.forward()
                if is_over:
                    return
                time.sleep(interval_s)
        except KeyboardInterrupt:
            say("track", "interrupted; the next call goes on from here")

    def _is_over(self) -> bool:
        """Whether the report is there; one older than the metrics is of an earlier part."""
        try:
            return os.stat(self._report).st_mtime_ns >= os.stat(self._metrics).st_mtime_ns
        except FileNotFoundError:
            return False

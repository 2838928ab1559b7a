"""How the commands of this package speak to people: one line per error, exit codes, progress.

Exit codes are those of the `isochron` program: 0 done, 2 bad input, 3 the world failed.
"""

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import NoReturn, TextIO


class InputError(ValueError):
    """The caller's mistake: a bad option, a file that reads but says nonsense. Exit 2."""


class WorldError(RuntimeError):
    """The world failed: a missing file, a missing package, a full disk. Exit 3."""


class Parser(argparse.ArgumentParser):
    """Reports what it does not understand as an InputError; options are never abbreviated."""

    def __init__(self, **arguments: object) -> None:
        super().__init__(allow_abbrev=False, **arguments)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Raises `message` instead of leaving the process."""
        raise InputError(message)


def one_line(text: object) -> str:
    """`text` without line breaks or runs of blanks."""
    return " ".join(str(text).split())


def say(where: str, what: object) -> None:
    """Writes one line `isochron: [where] what` to standard error."""
    print(f"isochron: [{where}] {one_line(what)}", file=sys.stderr, flush=True)


def describe_os_error(error: OSError) -> str:
    """What failed and where, without the number of the error."""
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def run_command(where: str) -> NoReturn:
    """Runs `main` of isochron.WHERE.command on the arguments of the process and leaves.

    A package that is not installed is an error of one line like any other.
    """
    try:
        importlib.import_module(f"isochron.{where}.command").main(sys.argv[1:])
    except InputError as error:
        say(where, error)
        sys.exit(2)
    except WorldError as error:
        say(where, error)
        sys.exit(3)
    except ModuleNotFoundError as error:
        say(where, f"the package {error.name} is missing: pip install {error.name}")
        sys.exit(3)
    except OSError as error:
        say(where, describe_os_error(error))
        sys.exit(3)
    except KeyboardInterrupt:
        say(where, "interrupted")
        sys.exit(130)
    sys.exit(0)


class Progress:
    """A bar that is redrawn in place on a terminal, otherwise a plain line now and then.

    Work that is over soon says nothing.
    """

    BAR_WIDTH = 40
    REDRAW_S = 0.1
    LINE_S = 5.0  # a log should not drown in progress

    def __init__(
        self,
        noun: str,
        total: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Of `total` things called `noun` ("rows")."""
        self._noun = noun
        self._total = total
        self._stream = stream if stream is not None else sys.stderr
        self._is_bar = self._stream.isatty()
        self._clock = clock
        self._last = clock()
        self._shown_width = 0

    def set_done(self, done: int) -> None:
        """Shows that `done` of them are done, if the last word on that is old enough."""
        now = self._clock()
        if now - self._last < (self.REDRAW_S if self._is_bar else self.LINE_S):
            return
        self._last = now
        text = f"{done} of {self._total} {self._noun}"
        if not self._is_bar:
            print(text, file=self._stream, flush=True)
            return
        filled = self.BAR_WIDTH * min(done, self._total) // max(self._total, 1)
        line = f"[{'#' * filled}{' ' * (self.BAR_WIDTH - filled)}] {text}"
        self._stream.write("\r" + line.ljust(self._shown_width))
        self._stream.flush()
        self._shown_width = len(line)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown_width > 0:
            self._stream.write("\r" + " " * self._shown_width + "\r")
            self._stream.flush()


def quiet_transformers() -> None:
    """Keeps transformers from speaking, and from asking the network for what a folder lacks."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

"""What has been sent to a tracker, kept in the run folder so that no step is sent twice."""

import dataclasses
import json
import os

from isochron.console import InputError
from isochron.track.metrics import Position


@dataclasses.dataclass
class Cursor:
    """How far the forwarding of a run to one tracker has come."""

    path: str
    position: Position = dataclasses.field(default_factory=Position)
    last_step: int = -1  # the largest that was sent
    tracker_run: str = ""  # what the tracker calls the run
    names: dict[str, str] = dataclasses.field(default_factory=dict)  # metric to name in the tracker

    def save(self) -> None:
        """Writes the cursor in place of the one before."""
        temporary = f"{self.path}.tmp"
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump(
                {
                    "offset": self.position.offset,
                    "checksum": self.position.checksum,
                    "last_step": self.last_step,
                    "tracker_run": self.tracker_run,
                    "names": self.names,
                },
                stream,
            )
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, self.path)


def load_cursor(run: str, tracker: str) -> Cursor:
    """The cursor of a run for a tracker; at the start if there is none yet."""
    path = os.path.join(run, f"track_{tracker}.json")
    if not os.path.exists(path):
        return Cursor(path)
    try:
        with open(path, encoding="utf-8") as stream:
            saved = json.load(stream)
        return Cursor(
            path,
            Position(int(saved["offset"]), int(saved["checksum"])),
            int(saved["last_step"]),
            str(saved["tracker_run"]),
            dict(saved["names"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged; without it everything is sent again") from error

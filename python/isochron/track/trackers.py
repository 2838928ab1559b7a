"""TensorBoard, Weights & Biases and MLflow behind one interface; each is imported when it is used.

Where a run resumes, it writes steps again that may have been sent. TensorBoard takes them back: a
mark in its file says that everything from this step on is void. The others cannot.
"""

import os
import pathlib
import posixpath
import re
import time
import uuid
import zlib
from typing import Any, Protocol

from isochron.console import WorldError
from isochron.track.cursor import Cursor


class Tracker(Protocol):
    """Where metrics go. The name of its run is kept in the cursor."""

    can_rewind: bool  # whether rewind() works

    def send(self, step: int, numbers: dict[str, float]) -> None:
        """Hands over the numbers of a step."""
        ...

    def rewind(self, step: int) -> None:
        """Takes back this step and all after it."""
        ...

    def flush(self) -> None:
        """Returns when all that was handed over is in safe hands."""
        ...

    def close(self) -> None:
        """Ends the connection; the run in the tracker can be continued."""
        ...


def missing_package(tracker: str, package: str) -> WorldError:
    """The error for a tracker whose package is not installed."""
    return WorldError(f"{tracker} needs the package {package}: pip install {package}")


class TensorBoard:
    """Event files in a folder."""

    can_rewind = True

    def __init__(self, folder: str) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise missing_package("tensorboard", "tensorboard") from error
        self._event = event_pb2
        self._summary = summary_pb2
        self._open = lambda: EventFileWriter(folder)
        self._writer: Any = None  # opened when there is something to write

    def send(self, step: int, numbers: dict[str, float]) -> None:
        values = [
            self._summary.Summary.Value(tag=name, simple_value=number)
            for name, number in numbers.items()
        ]
        self._add(step, summary=self._summary.Summary(value=values))

    def rewind(self, step: int) -> None:
        self._add(step, session_log=self._event.SessionLog(status=self._event.SessionLog.START))

    def _add(self, step: int, **content: Any) -> None:
        self._writer = self._writer or self._open()
        self._writer.add_event(self._event.Event(wall_time=time.time(), step=step, **content))

    def flush(self) -> None:
        if self._writer:
            self._writer.flush()

    def close(self) -> None:
        if self._writer:
            self._writer.close()


class WandB:
    """A run of Weights & Biases; WANDB_MODE=offline keeps it on this machine."""

    can_rewind = False

    def __init__(self, run: str, cursor: Cursor, project: str, name: str) -> None:
        try:
            import wandb
        except ImportError as error:
            raise missing_package("wandb", "wandb") from error
        cursor.tracker_run = cursor.tracker_run or uuid.uuid4().hex[:12]
        try:
            self._run = wandb.init(
                project=project,
                name=name,
                id=cursor.tracker_run,
                dir=run,
                resume="allow",
                settings=wandb.Settings(console="off", silent=True),
            )
        except wandb.errors.Error as error:
            raise WorldError(f"wandb does not start: {error}") from error

    def send(self, step: int, numbers: dict[str, float]) -> None:
        self._run.log(numbers, step=step, commit=True)

    def rewind(self, step: int) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        """Wandb writes in its own process, and takes no step twice."""

    def close(self) -> None:
        self._run.finish()


class MLflow:
    """A run of MLflow at a tracking address."""

    can_rewind = False

    def __init__(self, cursor: Cursor, uri: str, project: str, name: str) -> None:
        try:
            import mlflow
            from mlflow.entities import Metric
        except ImportError as error:
            raise missing_package("mlflow", "mlflow") from error
        self._metric = Metric
        self._error = mlflow.exceptions.MlflowException
        self._names = cursor.names
        try:
            self._client = mlflow.MlflowClient(tracking_uri=uri)
            if not cursor.tracker_run:
                experiment = self._client.get_experiment_by_name(project)
                number = (
                    experiment.experiment_id
                    if experiment
                    else self._client.create_experiment(project)
                )
                cursor.tracker_run = self._client.create_run(number, run_name=name).info.run_id
            self._run = cursor.tracker_run
            self._client.update_run(self._run, status="RUNNING")
        except self._error as error:
            raise WorldError(f"mlflow at {uri} does not answer: {error}") from error

    def send(self, step: int, numbers: dict[str, float]) -> None:
        now_ms = int(time.time() * 1000)
        metrics = [
            self._metric(self._name(name), number, now_ms, step) for name, number in numbers.items()
        ]
        try:
            for first in range(0, len(metrics), 1000):  # MLflow's limit for one call
                self._client.log_batch(self._run, metrics=metrics[first : first + 1000])
        except self._error as error:
            raise WorldError(f"mlflow does not take step {step}: {error}") from error

    def _name(self, name: str) -> str:
        """A name that MLflow takes; different metrics keep different names."""
        if name not in self._names:
            plain = mlflow_name(name)
            if plain in self._names.values():
                plain = f"{plain}_{zlib.crc32(name.encode()):08x}"
            self._names[name] = plain
        return self._names[name]

    def rewind(self, step: int) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        """A call of the client returns when the server has the numbers."""

    def close(self) -> None:
        self._client.set_terminated(self._run)


def mlflow_name(name: str) -> str:
    """`name` with `_` for every character that MLflow rejects, as a relative path."""
    plain = posixpath.normpath(re.sub(r"[^\w\-. /]", "_", name, flags=re.ASCII))
    return re.sub(r"^(\.\./|/)+|^\.+$", "", plain)[:250] or "_"


def open_tracker(
    kind: str, run: str, cursor: Cursor, project: str, name: str, destination: str | None
) -> Tracker:
    """The tracker of this kind. Raises WorldError if its package or its server is missing."""
    if kind == "tensorboard":
        return TensorBoard(destination or os.path.join(run, "tensorboard"))
    if kind == "wandb":
        return WandB(run, cursor, project, name)
    uri = destination or os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # recent ones ask for consent
        uri = pathlib.Path(run, "mlruns").absolute().as_uri()
    return MLflow(cursor, uri, project, name)

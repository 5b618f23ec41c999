"""The recorder itself: events go into the spool at once, and a background thread carries the spool to MLflow."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.events import Event, RunEnded
from orchestrator.names import short_name
from orchestrator.recorders.mlflow.environment import environment
from orchestrator.recorders.mlflow.model import model_operation
from orchestrator.recorders.mlflow.operations import Operations
from orchestrator.recorders.mlflow.replay import replay
from orchestrator.recorders.mlflow.spool import SPOOL, Operation, Spool
from orchestrator.recorders.mlflow.store import Store, checked_uri
from orchestrator.recorders.secrets import mask

# What other recorders and the launch wrote into the folder of a run, or of several.
_ARTIFACTS = (
    "result.json", "report.html", "figures/*.png", "plan.json", "compare.png", "compare.txt",
    "results.csv", "sweep.png", "best.yaml",
)  # fmt: skip
_DELIVERY_SECONDS = 2.0
_LONGEST_PAUSE = 20.0
_HEARTBEAT_SECONDS = 30.0


class MlflowRecorder:
    """Records a run in MLflow at `uri`. Neither `record` nor MLflow's troubles ever raise or wait.

    A folder that already has an MLflow run goes on with that one. Close this recorder last: it uploads what the others
    wrote. `outputs` is searched for runs whose end MLflow has not heard of yet.
    earlier: the run's events of other processes. parent: the folder of several runs that this one belongs to.
    model_megabytes: the largest weights that go along as an MLflow model; 0: none.
    """

    def __init__(
        self,
        folder: Path,
        uri: str,
        experiment: str,
        outputs: Path,
        close_seconds: float = 20.0,
        *,
        earlier: Sequence[Event] = (),
        parent: str | None = None,
        model_megabytes: float = 0.0,
    ) -> None:
        self._store = Store(checked_uri(uri))
        self._spool = Spool(folder.absolute())
        self._experiment = short_name(experiment)
        self._spool.keep(
            uri=mask(self._store.uri), experiment=self._experiment, **({"parent": parent} if parent else {})
        )
        self._outputs = outputs.absolute()
        self._close_seconds = close_seconds
        self._model_megabytes = model_megabytes
        self._operations = Operations(earlier)
        self._state = "FAILED"  # of a run that closes without having said how it ended
        self._lost = 0
        self._trouble: str | None = None
        self._tidied = False  # whether runs that died earlier have been seen to
        self._attached = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._carry, name="mlflow", daemon=True)
        self._thread.start()

    def record(self, event: Event) -> None:
        """Queue one event."""
        if isinstance(event, RunEnded):
            self._state = event.state
        for operation in self._operations.of(event):
            self._append(operation)

    def close(self) -> None:
        """Queue artifacts and the end, and give MLflow `close_seconds` to take it all."""
        for pattern in _ARTIFACTS:
            for path in sorted(self._spool.folder.glob(pattern)):
                self._append({"op": "artifact", "file": str(path.relative_to(self._spool.folder))})
        if self._state == "FINISHED":
            for operation in model_operation(self._spool.folder, self._model_megabytes):
                self._append(operation)
        self._append({"op": "status", "state": self._state})
        self._closing.set()
        self._thread.join(self._close_seconds)

    def run_id(self, timeout: float = 0.0) -> str | None:
        """MLflow's id of this run; None if MLflow has not given one within `timeout` seconds."""
        self._attached.wait(timeout)
        return self._spool.run_id

    @property
    def notice(self) -> str | None:
        """After closing: one sentence if MLflow does not have everything, else None."""
        if self._lost:
            return f"MLflow misses {self._lost} entries: {self._spool.folder} could not be written"
        if not self._spool.is_empty:
            kept = self._spool.folder / SPOOL
            return f"MLflow did not take everything ({self._trouble or 'too slow'}); {kept} is sent at the next start"
        return None

    def _append(self, operation: Operation) -> None:
        try:
            self._spool.append(operation)
        except OSError:
            self._lost += 1

    def _carry(self) -> None:
        """The thread: deliver now and then until closed; after a failure wait longer each time."""
        self._append({"op": "environment", "found": environment(Path.cwd())})
        pause = _DELIVERY_SECONDS
        beaten = time.monotonic()
        while True:
            closing = self._closing.is_set()
            try:
                self._deliver()
                if time.monotonic() - beaten > _HEARTBEAT_SECONDS and not closing:
                    beaten = time.monotonic()
                    self._store.beat(self._spool.run_id or "")
                pause = _DELIVERY_SECONDS
            except Exception as error:  # whatever MLflow and what it rests on can raise
                self._trouble = _first_line(error)
                pause = min(2 * pause, _LONGEST_PAUSE)
            if closing:
                break
            self._closing.wait(pause)
        with suppress(OSError):
            self._spool.close()

    def _deliver(self) -> None:
        if not self._attached.is_set():
            self._store.attach(self._spool, self._experiment)
            self._attached.set()
        self._store.deliver(self._spool)
        if not self._tidied:
            self._store.reap()
            replay(self._outputs, self._store)
            self._tidied = True


def _first_line(error: Exception) -> str:
    return mask(str(error).partition("\n")[0]) or type(error).__name__

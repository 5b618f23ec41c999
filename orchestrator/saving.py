"""Snapshots of one gang's training: at the end of a stage at once, within a stage written beside the training.

One that cannot be written costs an event, never the run: the older ones stay good, and the next is tried when it is
due.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Protocol, Self

from orchestrator.cluster.snapshots import NoSpaceError, SnapshotStore, StoredSnapshot
from orchestrator.events import SnapshotFailed, SnapshotSaved
from orchestrator.execution import Progress
from orchestrator.learning_rate.policy import Policy
from orchestrator.probing import Emit
from orchestrator.run_folder import SNAPSHOTS

Json = dict[str, Any]


class Savable(Protocol):
    """What is needed of a job; `orchestrator.cluster.job.Job` is one."""

    def save(self, folder: Path) -> Json:
        """Write the whole state; returns what to note about it."""

    def begin_save(self, folder: Path) -> Json:
        """Copy the whole state and let it be written beside what is called next; returns what to note about it."""

    def is_saving(self) -> bool:
        """Whether that is still under way."""

    def finish_save(self, folder: Path) -> None:
        """Wait for it. OSError where it failed."""


@dataclass
class _Underway:
    """A snapshot that is being written. `seconds`: for which training stood still."""

    step: int
    folder: Path
    content: Json
    seconds: float
    sealing: "Future[StoredSnapshot] | None" = None


class Saving:
    """Takes the snapshots of a job. At the end of the block whatever is being sealed is waited for, the rest given up.

    every: real steps between snapshots within a stage; None: there are none.
    """

    def __init__(self, job: Savable, store: SnapshotStore, policy: Policy, emit: Emit, every: int | None) -> None:
        self._job, self._store, self._policy, self._emit, self._every = job, store, policy, emit, every
        self._underway: _Underway | None = None
        self._failing = False  # what has been said once is not said again until a snapshot succeeds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sealing")

    def within_stage(self, step: int, progress: Progress) -> None:
        """Training pauses at `step`: see how the last snapshot is doing, and begin one where it is due."""
        self._attend()
        if self._every is None or step % self._every or self._underway is not None:
            return
        begin = monotonic()
        folder = None
        try:
            folder = self._store.begin()
            content = self._job.begin_save(folder)
        except (NoSpaceError, OSError) as error:
            self._failed(step, folder, error)
            return
        whole = {**content, "policy": self._policy.state(), "within": asdict(progress)}
        self._underway = _Underway(step, folder, whole, monotonic() - begin)

    def at_stage_end(self, step: int) -> None:
        """Take one now; it is on disk when this returns, unless the disk does not take it."""
        self._finish()
        begin = monotonic()
        try:
            saved = self._store.save(step, lambda folder: {**self._job.save(folder), "policy": self._policy.state()})
        except (NoSpaceError, OSError) as error:
            self._failed(step, None, error)
            return
        self._saved(saved, monotonic() - begin)

    def _attend(self) -> None:
        """Take the one that is under way as far as it goes without waiting."""
        under = self._underway
        if under is None:
            return
        if under.sealing is None and not self._job.is_saving():
            self._seal(under)
        elif under.sealing is not None and under.sealing.done():
            self._settle(under.sealing)

    def _finish(self) -> None:
        """Wait for the one that is under way."""
        if self._underway is not None and self._underway.sealing is None:
            self._seal(self._underway)
        if self._underway is not None and self._underway.sealing is not None:
            self._settle(self._underway.sealing)

    def _seal(self, under: _Underway) -> None:
        """All its files are written or failed: sums and names are a matter of the driver's own thread."""
        try:
            self._job.finish_save(under.folder)
        except OSError as error:
            self._failed(under.step, under.folder, error)
            return
        under.sealing = self._thread.submit(self._store.seal, under.folder, under.step, under.content, within=True)

    def _settle(self, sealing: "Future[StoredSnapshot]") -> None:
        under = self._underway
        assert under is not None
        try:
            saved = sealing.result()
        except OSError as error:
            self._failed(under.step, under.folder, error)
            return
        self._underway = None
        self._saved(saved, under.seconds)

    def _saved(self, saved: StoredSnapshot, seconds: float) -> None:
        self._failing = False
        self._emit(SnapshotSaved(saved.step, f"{SNAPSHOTS}/{saved.path.name}", seconds))

    def _failed(self, step: int, folder: Path | None, error: Exception) -> None:
        self._underway = None
        if folder is not None:
            self._store.abandon(folder)
        if not self._failing:
            self._emit(SnapshotFailed(step, f"{error}; training goes on, and a resume would begin further back"))
        self._failing = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        under, self._underway = self._underway, None
        self._thread.shutdown()
        if under is not None and under.sealing is None:
            self._store.abandon(under.folder)
        elif under is not None and under.sealing is not None:
            with suppress(OSError):
                self._saved(under.sealing.result(), under.seconds)

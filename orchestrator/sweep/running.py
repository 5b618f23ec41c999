"""One run of a sweep in a thread of its own, so that whoever asks for its next validation can also end it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from signal import SIGTERM
from threading import Semaphore, Thread
from time import monotonic

from orchestrator.cluster.crew import Crew
from orchestrator.config import Config
from orchestrator.events import Event, RunEnded, SnapshotSaved, StepsTrained, Validated
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.launch import go_on, launch
from orchestrator.run_state import RunState
from orchestrator.stopping import Stopped


class EndedEarly(Stopped):
    """Whoever searches has seen enough of this run."""

    def __init__(self, reason: str) -> None:
        BaseException.__init__(self, reason)
        self.number = SIGTERM


@dataclass(frozen=True)
class Report:
    """A validation. step: real ones so far. rate: the last one used. seconds: since this process began with the run."""

    loss: float
    step: int
    rate: float | None
    seconds: float


class Running:
    """A run that goes on in its folder, or begins there; a recorder of its own events.

    by_stages: whether it tells of the ends of stages alone, and waits at each, but for the last, to be asked for more.
    """

    def __init__(self, config: Config, folder: Path, crew: Crew, by_stages: bool = False) -> None:
        self._config, self._folder, self._crew, self._by_stages = config, folder, crew, by_stages
        self._reports: SimpleQueue[Report | BaseException | None] = SimpleQueue()
        self._asked = Semaphore(0)  # how often more was asked for and not given yet
        self._begin = monotonic()
        self._rate: float | None = None
        self._validated: Report | None = None
        self._ending: str | None = None
        self._thread = Thread(target=self._run, name=folder.name, daemon=True)
        self._thread.start()

    def next(self) -> Report | None:
        """The next validation but the last, those before a resume included; None at the run's end.

        Raises what ended it, if it is a fault of ours.
        """
        self._asked.release()
        report = self._reports.get()
        if isinstance(report, BaseException):
            raise report
        return report

    @property
    def last(self) -> Report | None:
        """The last validation so far."""
        return self._validated

    def end(self, reason: str) -> None:
        """End the run, as KILLED, unless it has ended."""
        self._ending = reason
        self._asked.release()
        self._thread.join()

    def record(self, event: Event) -> None:
        """Hear of an event; raises EndedEarly in the run's thread once it is to end."""
        match event:
            case StepsTrained() if event.rates:
                self._rate = event.rates[-1]
            case Validated(split="validation"):
                self._validated = Report(event.metrics["loss"], event.step, self._rate, monotonic() - self._begin)
                if not self._by_stages and event.step < self._config.steps:  # schedulers stop what has all its steps
                    self._reports.put(self._validated)
            case SnapshotSaved() if self._by_stages and event.step < self._config.steps:
                self._stand_still(event.step)
        if self._ending is not None and not isinstance(event, RunEnded):
            reason, self._ending = self._ending, None
            raise EndedEarly(reason)

    def close(self) -> None:
        """Nothing is left to write."""

    def _stand_still(self, step: int) -> None:
        """Tell of the end of a stage, unless it is an earlier one's, and wait to be asked for more."""
        if self._validated is not None and self._validated.step == step:
            self._reports.put(self._validated)
            self._asked.acquire()

    def _run(self) -> None:
        self._asked.acquire()
        try:
            if earlier := _begun(self._folder):
                for event in () if self._by_stages else earlier:
                    self.record(event)
                if not _is_finished(earlier):
                    go_on(self._config, self._folder, [self], self._crew)
            else:
                launch(self._config, self._folder, [self], self._crew)
            self._reports.put(None)
        except BaseException as error:
            self._reports.put(error)


def _begun(folder: Path) -> Sequence[Event]:
    """The events of a run that was interrupted; none where it was before its first one was written."""
    journal = folder / JOURNAL
    events = read_journal(journal) if journal.is_file() else []
    if not events:
        journal.unlink(missing_ok=True)
    return events


def _is_finished(events: Sequence[Event]) -> bool:
    return isinstance(events[-1], RunEnded) and events[-1].state == RunState.FINISHED

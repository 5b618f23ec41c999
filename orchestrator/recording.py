"""The recorders of one run, put together: each event goes to all of them, and only the journal may stop the run."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.config import Config
from orchestrator.decide.words import with_cost
from orchestrator.events import Decided, Event, Recorder, RunStarted, Warned
from orchestrator.journal_file import JOURNAL
from orchestrator.recorders.journal import Journal, read_journal
from orchestrator.recorders.mlflow import MlflowRecorder
from orchestrator.recorders.quiet import QuietRecorder
from orchestrator.recorders.ray_metrics import RayMetricsRecorder
from orchestrator.recorders.report import ReportRecorder
from orchestrator.recorders.terminal import TerminalRecorder
from orchestrator.stopping import ignoring_signals


class Recording:
    """Remembers every event of the run, those of earlier processes included, in `events`.

    Holds the run folder for this process alone; UserError where another one has it. `listeners` hear of events last.
    """

    def __init__(self, config: Config, folder: Path, listeners: Sequence[Recorder] = ()) -> None:
        self.folder = folder
        self._journal = Journal(folder / JOURNAL)
        self.events: list[Event] = read_journal(folder / JOURNAL)
        self._mlflow: MlflowRecorder | None = None
        if config.tracking.uri is not None:
            self._mlflow = MlflowRecorder(
                folder,
                config.tracking.uri,
                config.tracking.experiment,
                Path(config.outputs),
                earlier=self.events,
                parent=config.parent,
                model_megabytes=config.tracking.model_megabytes,
            )
        # MLflow comes last: when it closes it uploads what the others wrote.
        terminal = _terminal(config, _beginning(self.events, folder))
        metrics = RayMetricsRecorder(self.events, self._journal.seconds)
        own: list[Recorder | None] = [ReportRecorder(folder, self.events), terminal, metrics, self._mlflow]
        self._listeners: list[Recorder] = [*(listener for listener in own if listener is not None), *listeners]

    @property
    def seconds(self) -> float:
        """How long the run has been worked on, over all its processes."""
        return self._journal.seconds

    def emit(self, event: Event) -> None:
        """Let everyone know."""
        self.events.append(event)
        self._journal.record(event)
        for listener in list(self._listeners):
            self._guarded(listener, lambda heard=listener: heard.record(event))  # type: ignore[misc]

    def mlflow_run_id(self) -> str | None:
        """MLflow's id of this run, if it has given one."""
        return self._mlflow.run_id(timeout=5.0) if self._mlflow is not None else None

    def close(self) -> None:
        """Let every recorder write out what is left."""
        with ignoring_signals():
            for listener in list(self._listeners):
                self._guarded(listener, listener.close)
        if self._mlflow is not None and self._mlflow.notice:
            print(self._mlflow.notice)
        self._journal.close()

    def _guarded(self, listener: Recorder, act: Callable[[], None]) -> None:
        """A recorder that fails is dropped with a warning; what it records can be made again from the journal."""
        try:
            act()
        except Exception as error:
            self._listeners.remove(listener)
            name = type(listener).__name__
            with suppress(Exception):
                self.emit(Warned(f"{name} stopped: {error}; 'orchestrate report' makes the report from the journal"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _terminal(config: Config, started: RunStarted | None) -> Recorder:
    """What a person sees; runs of one launch make a table, if nothing else is asked for."""
    quiet = config.terminal == "quiet" or (config.terminal == "auto" and config.parent is not None)
    return QuietRecorder(started=started) if quiet else TerminalRecorder(started=started)


def _beginning(events: list[Event], folder: Path) -> RunStarted | None:
    """How a run taken up again began; its folder may have been moved since."""
    first = events[0] if events else None
    if not isinstance(first, RunStarted):
        return None
    decided = (event for event in events if isinstance(event, Decided))
    return reduce(with_cost, decided, replace(first, folder=str(folder.absolute())))

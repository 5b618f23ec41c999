"""What a person sees of a run: what it will cost, one progress line, each decision, where the results are.

On a terminal the progress line is live; in a pipe it becomes a plain line now and then. Everything fits 80 columns and
needs no colour to be understood.
"""

import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.text import Text

from orchestrator.events import (
    CommunicationMeasured,
    Decided,
    Event,
    ForecastMade,
    JobReady,
    OverlapPlanned,
    PlanChosen,
    ProbeRan,
    RangeChosen,
    RateChosen,
    RateLowered,
    Recovered,
    RunEnded,
    RunResumed,
    RunStarted,
    SnapshotFailed,
    StepsTrained,
    Validated,
    Warned,
)
from orchestrator.learning_rate.policy import Forecast
from orchestrator.overlap_words import overlap_sentence
from orchestrator.recorders import messages
from orchestrator.recorders.live_line import LiveLine
from orchestrator.recorders.progress import Progress
from orchestrator.recorders.secrets import mask
from orchestrator.words import lowered_text, recovered_text

_PLAIN_SECONDS = 5.0  # between two progress lines where there is no terminal


class TerminalRecorder:
    """Shows a run on `console`. `clock` gives seconds and only ever grows; `started`: how a resumed run began."""

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        started: RunStarted | None = None,
    ) -> None:
        self._console = console or Console(highlight=False)
        self._clock = clock
        self._progress = Progress(clock)
        self._progress.started = started
        self._forecasts: list[Forecast] = []
        self._decided = 0  # decisions shown so far
        self._line = LiveLine(self._console)
        self._shown = clock()

    def record(self, event: Event) -> None:
        """Show what there is to show of one event."""
        self._progress.note(event)
        match event:
            case RunStarted():
                self._print(messages.start(event))
            case RunResumed():
                self._print(messages.resumed(event))
            case Recovered():
                self._print(Text(mask(recovered_text(event))))
            case RateLowered():
                self._print(Text(f"! {lowered_text(event)}", style="yellow"))
            case SnapshotFailed():
                self._print(Text(f"! no snapshot of step {event.step}: {event.reason}", style="yellow"))
            case JobReady():
                self._print(messages.workers(event))
            case PlanChosen() if event.source != "none":
                self._print(messages.plan(event))
            case CommunicationMeasured():
                self._print(messages.communication(event))
            case OverlapPlanned():
                self._print(Text(overlap_sentence(event)))
            case Decided():
                self._print(messages.decided(event, with_heading=not self._decided))
                self._decided += 1
            case RangeChosen():
                self._print(messages.interval(event.found))
            case ForecastMade():
                self._forecasts.append(event.forecast)
            case RateChosen():
                self._print(messages.decision(event.choice, self._forecasts))
                self._forecasts = []
            case Warned():
                self._print(Text(f"! {mask(event.message)}", style="yellow"))
            case ProbeRan() | StepsTrained() | Validated():
                self._show_progress()
            case RunEnded():
                self.close()
                self._print(messages.end(event, self._progress.started))

    def close(self) -> None:
        """Give the terminal back."""
        self._line.stop()

    def _print(self, content: RenderableType) -> None:
        self._console.print(content, soft_wrap=not self._console.is_terminal)  # a file's lines have no width

    def _show_progress(self) -> None:
        if self._console.is_terminal:
            self._line.show(self._progress.line())
        elif self._clock() - self._shown >= _PLAIN_SECONDS:
            self._shown = self._clock()
            self._print(Text(self._progress.line()))

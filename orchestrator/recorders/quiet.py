"""One line a run, once it has ended; on a terminal its progress is seen until then. Several runs make a table."""

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from orchestrator.events import Event, ProbeRan, RunEnded, RunStarted, StepsTrained, Validated, Warned
from orchestrator.recorders.live_line import LiveLine
from orchestrator.recorders.progress import Progress
from orchestrator.recorders.secrets import mask
from orchestrator.words import clock_text, count_text, loss_text, policy_name, task_name


class QuietRecorder:
    """Shows a run on `console`. `clock` gives seconds and only ever grows; `started`: how a resumed run began."""

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        started: RunStarted | None = None,
    ) -> None:
        self._console = console or Console(highlight=False)
        self._line = LiveLine(self._console)
        self._progress = Progress(clock)
        self._progress.started = started
        self._warnings = 0

    def record(self, event: Event) -> None:
        """Show what there is to show of one event."""
        self._progress.note(event)
        match event:
            case Warned():
                self._warnings += 1
            case ProbeRan() | StepsTrained() | Validated() if self._console.is_terminal:
                self._line.show(self._progress.line())
            case RunEnded():
                self.close()
                self._console.print(Text(self._row(event)), soft_wrap=True)

    def close(self) -> None:
        """Give the terminal back."""
        self._line.stop()

    def _row(self, event: RunEnded) -> str:
        """State, time, losses or what went wrong, which run, remarks, folder: in columns that rows below share."""
        parts = [f"{event.state:<8}", f"{clock_text(event.result.get('wall_seconds', 0.0)):>7}"]
        parts.append(_losses(event) if event.state == "FINISHED" else mask(event.reason or "no reason given"))
        if (started := self._progress.started) is not None:
            config = started.config
            parts += [f"{task_name(config)}, {policy_name(config)}, seed {config.get('seed')}", _near(started.folder)]
        if self._warnings:
            parts.append(f"({count_text(self._warnings, 'warning')} in the report)")
        return "  ".join(parts)


def _losses(event: RunEnded) -> str:
    test = (event.result.get("test") or {}).get("loss")
    return f"val {loss_text(event.result.get('validation_loss')):<8}  test {loss_text(test):<8}"


def _near(folder: str) -> str:
    """The folder's path from here, where it lies below."""
    here = Path.cwd()
    return str(Path(folder).relative_to(here)) if Path(folder).is_relative_to(here) else folder

"""What a person sees of a sweep: a live table on a terminal, in a log one line a trial."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from orchestrator.run_state import RunState
from orchestrator.sweep.book import Trial, best_of
from orchestrator.sweep.words import cells, trial_line

_SHOWN = 8  # of the trials that have ended, besides the best and those under way


class SweepTerminal:
    """Hears of each trial as it goes on. `earlier`: the trials of the processes before."""

    def __init__(self, keys: Sequence[str], trials: int, earlier: Sequence[Trial], console: Console) -> None:
        self._keys, self._trials, self._console = keys, trials, console
        self._known = {trial.number: trial for trial in earlier}
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def tell(self, trial: Trial) -> None:
        """Show what is new."""
        self._known[trial.number] = trial
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
        elif trial.state != RunState.RUNNING:
            self._console.print(escape(trial_line(trial, self._trials)), soft_wrap=True)

    def _table(self) -> Table:
        trials = sorted(self._known.values(), key=lambda trial: trial.number)
        running = [trial for trial in trials if trial.state == RunState.RUNNING]
        ended = [trial for trial in trials if trial.state != RunState.RUNNING]
        return trial_table([*ended[-_SHOWN:], *running], self._keys, best_of(trials))

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


def trial_table(trials: Sequence[Trial], keys: Sequence[str], best: Trial | None) -> Table:
    """A trial a row; the best one stands out, with a star where there are no colours."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black", pad_edge=False)
    for title in ("trial", *keys, "state", "steps", "val", "time", ""):
        table.add_column(title, justify="left" if title in (*keys, "state") else "right", overflow="fold")
    for trial in trials:
        is_best = best is not None and trial.number == best.number
        table.add_row(*map(escape, cells(trial, keys)), "★" if is_best else "", style="bold" if is_best else None)
    return table

"""One line at the bottom of a terminal that changes while a run goes on and is gone afterwards."""

from rich.console import Console
from rich.live import Live
from rich.text import Text


class LiveLine:
    """Takes the terminal's last line with the first `show`, and gives it back with `stop`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def show(self, words: str) -> None:
        """Put these words in place of what the line said, cut where the terminal ends."""
        line = Text(words, no_wrap=True, overflow="ellipsis")
        if self._live is None:
            self._live = Live(line, console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(line, refresh=True)

    def stop(self) -> None:
        """Nothing is shown any more."""
        if self._live is not None:
            self._live.stop()
            self._live = None

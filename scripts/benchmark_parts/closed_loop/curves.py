"""A run's validation losses against wall-clock time since its launch, and when they first were good enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.events import RunStarted, Validated
from orchestrator.journal_file import Entry


@dataclass(frozen=True)
class Curve:
    """`losses[i]` was seen `seconds[i]` after the launch."""

    seconds: Sequence[float]
    losses: Sequence[float]

    def reached(self, target: float) -> float | None:
        """Seconds until the first loss at or under the target; None: there was none."""
        pairs = zip(self.seconds, self.losses, strict=True)
        return next((seconds for seconds, loss in pairs if loss <= target), None)


def curve_of_lines(lines: Iterable[tuple[float, float]], launched: float) -> Curve:
    """The curve of lines (seconds since the epoch, loss); `launched`: seconds since the epoch."""
    rows = list(lines)
    return Curve([at - launched for at, _ in rows], [loss for _, loss in rows])


def curve_of_journal(entries: Sequence[Entry], launched: float) -> Curve:
    """The curve of a run's journal, whose clock began some time after the launch."""
    start = next(entry for entry in entries if isinstance(entry.event, RunStarted))
    assert isinstance(start.event, RunStarted)
    before = start.event.started_at - launched - start.at
    seen = [
        (before + entry.at, entry.event.metrics["loss"])
        for entry in entries
        if isinstance(entry.event, Validated) and entry.event.split == "validation"
    ]
    return curve_of_lines(seen, 0.0)

"""What planning came to: the layout to follow, what was predicted and measured, and timelines to look at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from trainers.overlap.training.layout import Layout

Row = tuple[str, str, float, float]
"""(stream, operation, begin, end) in seconds since the step began."""


@dataclass(frozen=True)
class Decision:
    """Equal on all ranks, but for the timelines, which are each rank's own.

    seconds: measured, a step, by way: serial, ddp and each layout tried; samples of the slowest rank.
    predicted_seconds: of a step as followed; None where that is DDP's way. timelines: predicted and measured, before
    (everything in turn) and after. rejected: samples of the profile that were too slow to be true.
    """

    layout: Layout
    machine: str
    seconds: dict[str, list[float]]
    chosen: str
    predicted_seconds: float | None
    predicted_serial_seconds: float
    timelines: dict[str, list[Row]]
    rejected: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        timelines = {title: [list(row) for row in rows] for title, rows in self.timelines.items()}
        return {**asdict(self), "layout": self.layout.to_json(), "timelines": timelines}

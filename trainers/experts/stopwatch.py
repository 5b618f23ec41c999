"""Seconds that work takes on its device, without waiting for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch


class Stopwatch:
    """Adds up; on a GPU by events on the current stream, which are waited for only when the sum is read."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._laps: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    @contextmanager
    def running(self, device: torch.device) -> Iterator[None]:
        """Time a block."""
        if device.type == "cuda":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            yield
            end.record()
            self._laps.append((begin, end))
        else:
            started = perf_counter()
            yield
            self._seconds += perf_counter() - started

    def read(self) -> float:
        """Seconds so far."""
        for begin, end in self._laps:
            end.synchronize()
            self._seconds += begin.elapsed_time(end) / 1000
        self._laps.clear()
        return self._seconds

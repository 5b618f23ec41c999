"""How long operations take here: medians of samples that others have not disturbed, alone and side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from threading import Event
from time import perf_counter

import numpy as np

from trainers.overlap.executor.worker import Worker

NOISY = 2.0  # times the quickest half's median: a sample above this was disturbed
Action = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of an operation: the median of the samples kept, and how many were not."""

    seconds: float
    rejected: int


def timing(samples: Sequence[float]) -> Timing:
    """Of one operation at different times; noise only ever makes it longer."""
    ordered = sorted(samples)
    limit = NOISY * median(ordered[: (len(ordered) + 1) // 2])
    kept = [sample for sample in ordered if sample <= limit]
    return Timing(median(kept), len(samples) - len(kept))


def timed(action: Action, repeats: int) -> Timing:
    """Do it so often, after once for nothing."""
    action()
    return timing([_seconds(action) for _ in range(repeats)])


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(seconds, seconds a byte) through (bytes, seconds), neither negative, errors taken relative to the seconds."""
    sizes, seconds = np.array(points).T
    columns = np.stack([np.ones(len(sizes)), sizes], axis=1) / seconds[:, None]
    fixed, each = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)[0]
    if fixed < 0 or each < 0:
        return (0.0, float(np.mean(seconds / sizes))) if fixed < 0 else (float(np.mean(seconds)), 0.0)
    return float(fixed), float(each)


def side_by_side(compute: Action, other: Action, threads: int, repeats: int) -> tuple[float, float]:
    """(R, P): the part of its speed that `compute` loses beside `other`, and the part that `other` keeps.

    `other` runs in a thread of its own with so many threads. Each is timed alone, and while the other goes on and on.
    """
    alone = timed(compute, repeats).seconds, _in_worker(other, threads, repeats, None)
    beside = _beside(compute, other, threads, repeats), _in_worker(other, threads, repeats, compute)
    lost = 1 - min(1.0, alone[0] / beside[0])
    return min(max(lost, 0.01), 0.99), min(max(alone[1] / beside[1], 0.01), 1.0)


def _beside(compute: Action, other: Action, threads: int, repeats: int) -> float:
    """Seconds of `compute` while `other` goes on in a worker."""
    stop = Event()

    def go_on() -> None:
        while not stop.is_set():
            other()

    worker = Worker("profiled", threads, lambda _: None)
    worker.put(go_on)
    try:
        return timed(compute, repeats).seconds
    finally:
        stop.set()
        worker.close()


def _in_worker(other: Action, threads: int, repeats: int, meanwhile: Action | None) -> float:
    """Seconds of `other` in a worker, while this thread does `meanwhile` on and on."""
    found: list[Timing] = []
    done = Event()

    def time_it() -> None:
        try:
            found.append(timed(other, repeats))
        finally:
            done.set()

    worker = Worker("profiled", threads, lambda _: None)
    worker.put(time_it)
    while not done.is_set():
        meanwhile() if meanwhile else done.wait()
    worker.close()
    return found[0].seconds


def _seconds(action: Action) -> float:
    begun = perf_counter()
    action()
    return perf_counter() - begun

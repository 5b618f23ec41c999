"""An event simulator of streams that share one device: what a schedule takes, before it is run.

Operations of one stream run in launch order, each as soon as what it waits for is done. At any instant the shares of
those that run add up to one at most, and each runs at the speed P of its share (NanoFlow, arXiv 2408.12757, section
4.1.3). Compute takes what the others leave; what runs alone has the whole device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trainers.overlap.interference import InterferenceTable
from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import Launch
from trainers.overlap.schedule import Needs, Schedule
from trainers.overlap.times import Times

Shares = Mapping[str, float]
Spans = dict[Launch, tuple[float, float]]
"""When each operation of each iteration began and ended, in seconds."""


@dataclass(frozen=True)
class Device:
    """What is simulated: a graph, its times alone, and how its operations slow each other down."""

    graph: OperationGraph
    times: Times
    table: InterferenceTable

    def simulate(self, launches: Mapping[Resource, Sequence[Launch]], shares: Shares) -> Spans:
        """Run what each stream launches; what waits for something that never ends is missing in the answer."""
        return _Simulation(self, launches, shares).run()

    def needs(self, iterations: int) -> tuple[dict[Launch, int], dict[Launch, list[Launch]]]:
        """For each operation of so many iterations: how many it waits for, and which wait for it."""
        if iterations not in self._needs:
            self._needs[iterations] = Needs(self.graph).table(iterations)
        missing, readers = self._needs[iterations]
        return missing.copy(), readers

    def speeds(self, shares: tuple[float | None, ...]) -> tuple[float, ...]:
        """P of what runs on each resource of the graph, by the share planned for it; None and 0 where nothing runs."""
        if shares not in self._speeds:
            self._speeds[shares] = tuple(self._speeds_of(shares))
        return self._speeds[shares]

    def _speeds_of(self, shares: tuple[float | None, ...]) -> Iterator[float]:
        running = {each: share for each, share in zip(self.graph.resources, shares, strict=True) if share is not None}
        taken = _taken({each: share for each, share in running.items() if self.table.competes(each)})
        for each in self.graph.resources:
            yield self.table.speed(each, taken.get(each, 1.0)) if each in running else 0.0

    @cached_property
    def _needs(self) -> dict[int, tuple[dict[Launch, int], dict[Launch, list[Launch]]]]:
        return {}

    @cached_property
    def _speeds(self) -> dict[tuple[float | None, ...], tuple[float, ...]]:
        return {}


@dataclass(frozen=True)
class Steady:
    """One iteration amid many: seconds since it began, and from iteration to iteration."""

    starts: dict[str, float]
    ends: dict[str, float]
    period: float


def steady(device: Device, schedule: Schedule, shares: Shares, periodic: bool = True) -> Steady | None:
    """What a schedule comes to with shares; None if its order lets streams wait for each other for ever.

    periodic: iterations without a pause; otherwise one by itself, whose time is the period.
    """
    found: Steady | None = None
    for window in _WINDOWS if periodic else (_Window(0, 0, 0),):
        spans = device.simulate(schedule.launches(device.graph, window.iterations), shares)
        if len(spans) < window.iterations * len(device.graph):
            return None
        found = window.measure(spans, device.graph.names)
        if not periodic or window.settled(spans, device.graph.names, found.period):
            break
    return found


@dataclass(frozen=True)
class _Window:
    """Iterations that are simulated: before the measurement, in it, and after it, so that it is amid many."""

    warm: int
    measured: int
    cool: int

    @property
    def iterations(self) -> int:
        return self.warm + self.measured + self.cool + 1

    def measure(self, spans: Spans, names: Sequence[str]) -> Steady:
        middle = self.warm + self.measured // 2
        begin = min(spans[middle, name][0] for name in names)
        starts = {name: spans[middle, name][0] - begin for name in names}
        ends = {name: spans[middle, name][1] - begin for name in names}
        return Steady(starts, ends, self._period(spans, names) if self.measured else max(ends.values()))

    def _period(self, spans: Spans, names: Sequence[str]) -> float:
        """Mean from beginning to beginning or from end to end, whichever is longer: neither may fall behind."""
        last = self.warm + self.measured
        begins = min(spans[last, name][0] for name in names) - min(spans[self.warm, name][0] for name in names)
        ends = max(spans[last, name][1] for name in names) - max(spans[self.warm, name][1] for name in names)
        return max(begins, ends) / self.measured

    def settled(self, spans: Spans, names: Sequence[str], period: float) -> bool:
        """Whether every iteration measured repeats the one before."""
        return all(
            abs(spans[turn + 1, name][0] - spans[turn, name][0] - period) < 1e-9 * period
            for turn in range(self.warm, self.warm + self.measured)
            for name in names
        )


_WINDOWS = (_Window(3, 2, 2), _Window(12, 24, 4))
"""The second where the first has not settled: iterations may alternate, or run ahead for long."""


class _Simulation:
    """Streams are numbered here; of each the running operation and what is left of it, in seconds alone, are kept."""

    def __init__(self, device: Device, launches: Mapping[Resource, Sequence[Launch]], shares: Shares) -> None:
        iterations = 1 + max((turn for queue in launches.values() for turn, _ in queue), default=-1)
        self._device, self._shares = device, shares
        self._missing, self._readers = device.needs(iterations)
        self._queues = [list(reversed(launches.get(each, ()))) for each in device.graph.resources]
        self._running: list[Launch | None] = [None] * len(self._queues)
        self._left = [0.0] * len(self._queues)
        self._began = [0.0] * len(self._queues)
        self._spans: Spans = {}
        self._now = 0.0

    def run(self) -> Spans:
        while self._start():
            self._advance()
        return self._spans

    def _start(self) -> bool:
        """Start what is next and ready; whether anything runs."""
        for stream, queue in enumerate(self._queues):
            if queue and self._running[stream] is None and not self._missing[queue[-1]]:
                launch = self._running[stream] = queue.pop()
                self._left[stream] = self._device.times[launch[1]]
                self._began[stream] = self._now
        return any(self._running)

    def _advance(self) -> None:
        """To the next end of an operation."""
        speeds = self._device.speeds(tuple(launch and self._shares[launch[1]] for launch in self._running))
        step = min(left / speed for left, speed in zip(self._left, speeds, strict=True) if speed)
        self._now += step
        for stream, launch in enumerate(self._running):
            if launch is None:
                continue
            self._left[stream] -= speeds[stream] * step
            if self._left[stream] <= 1e-12 * self._device.times[launch[1]]:
                self._end(stream, launch)

    def _end(self, stream: int, launch: Launch) -> None:
        self._spans[launch] = self._began[stream], self._now
        self._running[stream] = None
        for reader in self._readers.get(launch, ()):
            self._missing[reader] -= 1


def _taken(rivals: dict[Resource, float]) -> dict[Resource, float]:
    """Shares at an instant: all for one alone; otherwise as planned, at most one in sum, and compute gets the rest."""
    if len(rivals) < 2:
        return dict.fromkeys(rivals, 1.0)
    planned = sum(share for each, share in rivals.items() if each != Resource.COMPUTE)
    scale = max(planned, 1.0)
    taken = {each: share / scale for each, share in rivals.items()}
    return taken | ({Resource.COMPUTE: 1 - planned / scale} if Resource.COMPUTE in rivals else {})

"""List schedules: whenever a stream is free it takes, of the operations that are ready, the one a rule puts first.

Good schedules in no time, with which the exact search starts and which stand in for it when time is up.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from trainers.overlap.interference import InterferenceTable
from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import Launch
from trainers.overlap.schedule import Needs, Schedule
from trainers.overlap.simulator import Device, steady
from trainers.overlap.times import Times

Rule = Callable[[OperationGraph, Times], dict[str, float]]
"""A number for each operation; the least goes first."""

_WARM = 6


def longest_tail(graph: OperationGraph, times: Times) -> dict[str, float]:
    """The operation with the longest way to the end of the iteration goes first (critical-path scheduling)."""
    tails = dict.fromkeys(graph.names, 0.0)
    for name in reversed(graph.order()):
        tails[name] += times[name]
        for source in graph[name].inputs:
            tails[source] = max(tails[source], tails[name])
    return {name: -tail for name, tail in tails.items()}


def first_tokens(graph: OperationGraph, times: Times) -> dict[str, float]:
    """The operation on the earlier tokens goes first: one half of the batch is always ahead."""
    return {name: graph.range_of(name)[0] for name in graph.names}


def as_given(graph: OperationGraph, times: Times) -> dict[str, float]:
    """The operation that comes first in the graph goes first: both halves advance side by side."""
    return {name: float(place) for place, name in enumerate(graph.names)}


def soonest_needed(graph: OperationGraph, times: Times) -> dict[str, float]:
    """The operation with the longest way through the next iteration goes first: what its beginning waits for."""
    tails = longest_tail(graph, times)
    needed = dict.fromkeys(graph.names, 0.0)
    for reader in graph.operations:
        for source in reader.after:
            needed[source] = min(needed[source], tails[reader.name])
    for name in reversed(graph.order()):
        for source in graph[name].inputs:
            needed[source] = min(needed[source], needed[name] - times[name])
    return needed


RULES: tuple[Rule, ...] = (first_tokens, longest_tail, as_given, soonest_needed)


def list_schedule(graph: OperationGraph, times: Times, rule: Rule, periodic: bool) -> Schedule:
    """Schedule one iteration, or one amid many, without interference."""
    first = _WARM if periodic else 0
    starts = _Run(graph, times, rule(graph, times), 2 * first + 1).starts()
    begin = min(starts[first, name] for name in graph.names)
    of_one = {name: starts[first, name] - begin for name in graph.names}
    alone = max(of_one[name] + times[name] for name in graph.names)
    if not periodic:
        return Schedule(of_one, alone, rule.__name__)
    period = min(starts[first + 1, name] for name in graph.names) - begin
    device, shares = Device(graph, times, InterferenceTable({})), dict.fromkeys(graph.names, 1.0)
    candidates = (Schedule(of_one, seconds, rule.__name__) for seconds in (period, alone))
    found = next(found for each in candidates if (found := steady(device, each, shares)))
    return Schedule(found.starts, found.period, rule.__name__)


class _Run:
    """Time moves from end to end; of each stream's ready operations the least by (iteration, rule) is taken."""

    def __init__(self, graph: OperationGraph, times: Times, ranks: dict[str, float], iterations: int) -> None:
        self._graph, self._times, self._ranks = graph, times, ranks
        self._missing, self._readers = Needs(graph).table(iterations)
        self._place = {name: place for place, name in enumerate(graph.names)}
        self._starts: dict[Launch, float] = {}
        self._ready: dict[Resource, list[tuple[int, float, int, str]]] = {each: [] for each in graph.resources}
        for launch in [launch for launch, count in self._missing.items() if not count]:
            self._push(launch)

    def starts(self) -> dict[Launch, float]:
        busy: set[Resource] = set()
        ends: list[tuple[float, int, str]] = []
        now = 0.0
        while True:
            for resource, queue in self._ready.items():
                if queue and resource not in busy:
                    turn, _, _, name = heappop(queue)
                    self._starts[turn, name] = now
                    busy.add(resource)
                    heappush(ends, (now + self._times[name], turn, name))
            if not ends:
                return self._starts
            now = ends[0][0]
            while ends and ends[0][0] <= now:
                _, turn, name = heappop(ends)
                busy.discard(self._graph[name].resource)
                self._done((turn, name))

    def _done(self, launch: Launch) -> None:
        for reader in self._readers.get(launch, ()):
            self._missing[reader] -= 1
            if not self._missing[reader]:
                self._push(reader)

    def _push(self, launch: Launch) -> None:
        turn, name = launch
        heappush(self._ready[self._graph[name].resource], (turn, self._ranks[name], self._place[name], name))
